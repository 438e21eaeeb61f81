/**
 * Which files and folders hold secrets safely. Owns the rule that a sign-in is read from and written to nothing but a
 * regular file of this user in real folders of this user: whoever can put a link there, or owns the file, decides which
 * tokens are used and where new tokens go.
 */
import type { BigIntStats } from "node:fs";
import { chmod, lstat, mkdir, realpath } from "node:fs/promises";
import { basename } from "node:path";
import { reasonOf } from "../../../shared/files/file-system.ts";
import { codeOf, irregularKind, PRIVATE_FILE, PRIVATE_FOLDER } from "../../../shared/files/read-regular.ts";
import type { Place } from "./place.ts";

/** The bits that let others in. */
const OTHERS = 0o077;

/** The id of this user; undefined on Windows, where a file has no such owner. */
export const ownId = (): number | undefined => process.getuid?.();

type Owned = Pick<BigIntStats, "uid"> & Parameters<typeof irregularKind>[0];

/** Why something must not be used as a file or a folder, in words behind "it is"; undefined if it may. Pure. */
export function refusal(
  found: Owned,
  wanted: "file" | "folder",
  user: number | undefined,
): string | undefined {
  if (found.isSymbolicLink()) return "it is a link";
  if (wanted === "folder" && !found.isDirectory()) return "it is not a folder";
  if (wanted === "file" && !found.isFile()) return `it is ${irregularKind(found)}, not a regular file`;
  return user !== undefined && Number(found.uid) !== user ? "it belongs to another user" : undefined;
}

export type Look =
  | { kind: "missing" }
  /** `what`: why the file is not used. */
  | { kind: "refused"; stamp: string; what: string }
  /** `stamp`: differs after each change. `mode`: the permission bits. */
  | { kind: "file"; stamp: string; modifiedMs: number; mode: number };

/** Looks at a file with one call, and follows no link at its end. Never throws. */
export async function lookAtFile(path: string): Promise<Look> {
  try {
    const found = await lstat(path, { bigint: true });
    const stamp = [found.dev, found.ino, found.size, found.mtimeNs].join(":");
    const what = refusal(found, "file", ownId());
    if (what !== undefined) return { kind: "refused", stamp, what };
    return { kind: "file", stamp, modifiedMs: Number(found.mtimeMs), mode: Number(found.mode) & 0o777 };
  } catch (error) {
    const code = codeOf(error);
    return code === "ENOENT"
      ? { kind: "missing" }
      : { kind: "refused", stamp: `${code}`, what: reasonOf(error) };
  }
}

export interface Refused {
  path: string;
  what: string;
}

/** The first folder of the place that must not be used. A missing folder may be made. Never throws. */
export async function refusedFolder({ root, folder }: Place): Promise<Refused | undefined> {
  for (const path of [root, folder]) {
    try {
      const what = refusal(await lstat(path, { bigint: true }), "folder", ownId());
      if (what !== undefined) return { path, what };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") return { path, what: reasonOf(error) };
    }
  }
  return undefined;
}

/** Makes the folders of the place, and shuts others out of them. Throws what the file system throws. */
export async function makePrivate({ root, folder }: Place): Promise<void> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  for (const path of [root, folder]) {
    if (Number((await lstat(path)).mode) & OTHERS) await chmod(path, PRIVATE_FOLDER);
  }
}

/** Shuts others out of a file that is about to be replaced, since its mode is kept. */
export async function shutOthersOut(path: string, mode: number): Promise<void> {
  if (mode & OTHERS) await chmod(path, PRIVATE_FILE);
}

/**
 * The name of the folder as the disk has it; undefined if the folder is gone. Where case does not count, a folder that was
 * made for the server `linear` is also found as `Linear`.
 */
export async function nameOnDisk(folder: string): Promise<string | undefined> {
  try {
    return basename(await realpath(folder));
  } catch {
    // Whoever reads the file next learns why.
    return undefined;
  }
}
