/**
 * What a snapshot is made of, in a few bytes: by them a start finds that the stored one still holds, without building
 * the index of all tools anew. The code that makes snapshots counts: after an update they are made anew.
 */
import { createHash, hash } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { HEADER_BYTES, SOURCE_BYTES, snapshotChecksum, snapshotSource } from "../../src/protocol/snapshot.ts";

/** The one file that this code is bundled into. Raw TypeScript is many files, which are being worked on. */
async function bundle(url: string): Promise<Buffer | undefined> {
  if (url.endsWith(".ts")) return undefined;
  // Gone: the package is being updated.
  return readFile(fileURLToPath(url)).catch(() => undefined);
}

/** Undefined where it cannot be told. `content` is JSON. `url`: of the file that makes snapshots. */
export async function sourceOf(content: unknown, url: string): Promise<Uint8Array | undefined> {
  const code = await bundle(url);
  if (!code) return undefined;
  const digest = createHash("sha256").update(hash("sha256", code)).update(JSON.stringify(content)).digest();
  return new Uint8Array(digest.subarray(0, SOURCE_BYTES));
}

export interface StoredSnapshot {
  path: string;
  /** Of what main has. */
  checksum: number;
}

/** Whether the file holds what main has, made of `source`. False where it cannot be read. */
export async function isMadeOf({ path, checksum }: StoredSnapshot, source: Uint8Array): Promise<boolean> {
  const header = new Uint8Array(HEADER_BYTES);
  try {
    const file = await open(path);
    try {
      await file.read(header, 0, HEADER_BYTES, 0);
    } finally {
      await file.close();
    }
  } catch {
    return false;
  }
  return snapshotChecksum(header) === checksum && Buffer.compare(snapshotSource(header), source) === 0;
}
