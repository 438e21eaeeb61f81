/**
 * What a snapshot is made of, in a few bytes: by them a start finds that the stored one still holds, without building
 * the index of all tools anew. The code that makes snapshots counts: after an update they are made anew.
 */

import { createHash, hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  HEADER_BYTES,
  SOURCE_BYTES,
  snapshotChecksum,
  snapshotSource,
} from "../../../src/shared/snapshot/snapshot.ts";
import { readStart } from "../../shared/files/read-regular.ts";
import type { StoredSnapshot } from "../../shared/tasks.ts";

/**
 * Hash of the one file that code is bundled into. Undefined for raw TypeScript, which is many files that are being
 * worked on, and where the file is gone: the package is being updated.
 */
async function codeHash(url: string): Promise<string | undefined> {
  if (url.endsWith(".ts")) return undefined;
  const code = await readFile(fileURLToPath(url)).catch(() => undefined);
  return code && hash("sha256", code);
}

/** Read when this code is loaded, and once: an update may put another file in its place while it runs. */
const ownCode = codeHash(import.meta.url);

/** Undefined where it cannot be told. `content` is JSON. `url`: of the file that makes snapshots. */
export async function sourceOf(content: unknown, url: string): Promise<Uint8Array | undefined> {
  const code = await (url === import.meta.url ? ownCode : codeHash(url));
  if (code === undefined) return undefined;
  const digest = createHash("sha256").update(code).update(JSON.stringify(content)).digest();
  return new Uint8Array(digest.subarray(0, SOURCE_BYTES));
}

/** Whether the file holds what main has, made of `source`. False where it cannot be read. */
export async function isMadeOf({ path, checksum }: StoredSnapshot, source: Uint8Array): Promise<boolean> {
  const read = await readStart(path, HEADER_BYTES);
  if (read.kind !== "bytes" || snapshotChecksum(read.bytes) !== checksum) return false;
  return Buffer.compare(snapshotSource(read.bytes), source) === 0;
}
