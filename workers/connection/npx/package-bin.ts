/**
 * Owns: the commands that an installed package offers, read from its package.json, and npm's rule for which of several
 * commands npx runs.
 */

import { basename, join, normalize } from "node:path";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";

export interface Manifest {
  name: string;
  version: string;
  /** Command name -> path below the package. */
  bin: Record<string, string>;
}

const unscoped = (name: string): string => name.replace(/^@[^/]+\//, "");

/** Follows npm-normalize-package-bin: no command and no path leads out of the package's folder. */
function normalizeBin(name: string, bin: unknown): Record<string, string> {
  const entries =
    typeof bin === "string" ? [[unscoped(name), bin]] : isObject(bin) ? Object.entries(bin) : [];
  const normal = entries.flatMap(([key, path]): [string, string][] => {
    const command = basename(String(key).replaceAll("\\", "/"));
    if (typeof path !== "string" || command === "" || /^\.+$/.test(command)) return [];
    const inside = normalize(join("/", path)).slice(1);
    return inside === "" ? [] : [[command, inside]];
  });
  return Object.fromEntries(normal);
}

/** `value`: content of a package.json. Undefined if such a package could not be installed. */
export function toManifest(value: unknown): Manifest | undefined {
  if (!isObject(value) || typeof value.name !== "string" || typeof value.version !== "string") {
    return undefined;
  }
  return { name: value.name, version: value.version, bin: normalizeBin(value.name, value.bin) };
}

/** Content of the package.json in a folder; undefined if there is none that can be read. */
export async function readPackageJson(folder: string): Promise<Record<string, unknown> | undefined> {
  try {
    const parsed: unknown = JSON.parse(await readTextOrThrow(join(folder, "package.json"), SMALL_FILE_BYTES));
    return isObject(parsed) ? parsed : undefined;
  } catch {
    // A package.json that is absent, unreadable or broken is no package for npx either.
    return undefined;
  }
}

export const readManifest = async (folder: string): Promise<Manifest | undefined> =>
  toManifest(await readPackageJson(folder));

/**
 * The command that npx runs for a package (libnpmexec, get-bin-from-manifest): the only command, or any of several
 * names of one file, or the command with the package's own name. Undefined: npx fails.
 */
export function chooseBin({ name, bin }: Manifest): string | undefined {
  if (new Set(Object.values(bin)).size === 1) return Object.keys(bin)[0];
  return Object.hasOwn(bin, unscoped(name)) ? unscoped(name) : undefined;
}
