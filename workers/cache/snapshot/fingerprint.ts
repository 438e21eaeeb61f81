/**
 * The fingerprint of everything a snapshot is made from, in a few bytes. A start compares it with the stored snapshot's
 * and then need not build the index of all tools again. The fingerprint covers the code that makes snapshots, so after
 * an update each snapshot is made again.
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
 * Hash of the file that the code is bundled into. Undefined for raw TypeScript, which is many files under work, and if
 * the file is gone because the package is being updated.
 */
async function codeHash(url: string): Promise<string | undefined> {
  if (url.endsWith(".ts")) return undefined;
  const code = await readFile(fileURLToPath(url)).catch(() => undefined);
  return code && hash("sha256", code);
}

/** Read once, when this code is loaded: an update may replace the file while the code runs. */
const ownCode = codeHash(import.meta.url);

/**
 * `SOURCE_BYTES` that stand for `content` and the code. Undefined if the code is unknown. `content`: JSON. `url`: URL of
 * the file that makes snapshots.
 */
export async function fingerprintOf(content: unknown, url: string): Promise<Uint8Array | undefined> {
  const code = await (url === import.meta.url ? ownCode : codeHash(url));
  if (code === undefined) return undefined;
  const digest = createHash("sha256").update(code).update(JSON.stringify(content)).digest();
  return new Uint8Array(digest.subarray(0, SOURCE_BYTES));
}

/** Whether the file holds the snapshot with that checksum, made from `source`. False if the file cannot be read. */
export async function fingerprintMatches(
  { path, checksum }: StoredSnapshot,
  source: Uint8Array,
): Promise<boolean> {
  const read = await readStart(path, HEADER_BYTES);
  if (read.kind !== "bytes" || snapshotChecksum(read.bytes) !== checksum) return false;
  return Buffer.compare(snapshotSource(read.bytes), source) === 0;
}
