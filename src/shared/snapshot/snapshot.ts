/**
 * The snapshot: all known tools with a prebuilt search index, in one block of bytes. Owns the layout and its version.
 * The cache worker writes it; main reads it in the factory from a file, and later from a catalog event. The writer
 * bounds its bytes, texts and tools (workers/cache/snapshot/make.ts), since main reads it in one go. To add a field:
 * contract.ts, columns.ts, and a new `SNAPSHOT_VERSION`.
 *
 * Layout, numbers uint32 LE: 4 bytes magic, 1 byte version, 3 bytes zero, checksum (CRC-32) of everything behind the
 * next 16 bytes, 16 bytes of fingerprint (the source), length of the index, length of the body, 4 bytes zero; the index,
 * padded to a multiple of 4; the body (msgpackr, `Columns`). So the index starts at a multiple of 4, and main reads it
 * without a copy.
 */

import { decode, encode } from "../protocol/calls.ts";
import { type Columns, openColumns, type Packing, toColumns } from "./columns.ts";
import type { OpenSnapshot, Snapshot } from "./contract.ts";

const MAGIC = [0x50, 0x4d, 0x54, 0x53] as const; // "PMTS"
export const HEADER_BYTES = 40;
const SOURCE_AT = 12;
export const SOURCE_BYTES = 16;
/** Covers lengths, index and body, not the source: equal content has equal checksums whatever it was built from. */
const CHECKED_FROM = SOURCE_AT + SOURCE_BYTES;
/**
 * Also changes with the meaning of the content, not only with the layout: the factory declares the tools of a stored
 * snapshot before any worker can make a new one. 11: texts are clean and bounded. 12: columns tell where parts start. 13:
 * settings have `autoAuth`. 14: servers have prompts. 15: large catalogs are deflated. 16: no tool is there
 * that a server keeps for its own pages. 17: no name begins with a digit or a hyphen.
 */
export const SNAPSHOT_VERSION = 18;

/** The position of an MCP tool's output schema in the output schema of its Pi tool. */
export const STRUCTURED_POINTER = "#/properties/structuredContent";
export type Checksum = (bytes: Uint8Array) => number;

const aligned = (length: number): number => Math.ceil(length / 4) * 4;

/**
 * Encodes a snapshot with its header. `checksum`: CRC-32, passed in since this folder does not know Node. `source`:
 * `SOURCE_BYTES` that stand for everything the snapshot is made from, the code included; absent if that is unknown.
 * `deflate`: for a catalog so large that its size is what its reading costs.
 */
export function encodeSnapshot(
  snapshot: Snapshot,
  checksum: Checksum,
  source?: Uint8Array,
  deflate?: Packing,
): Uint8Array<ArrayBuffer> {
  const { index } = snapshot;
  const body = encode(toColumns(snapshot, deflate));
  const bodyAt = HEADER_BYTES + aligned(index.length);
  const bytes = new Uint8Array(bodyAt + body.length);
  bytes.set(MAGIC, 0);
  bytes[4] = SNAPSHOT_VERSION;
  if (source) bytes.set(source, SOURCE_AT);
  const view = new DataView(bytes.buffer);
  bytes.set(index, HEADER_BYTES);
  bytes.set(body, bodyAt);
  view.setUint32(CHECKED_FROM, index.length, true);
  view.setUint32(CHECKED_FROM + 4, body.length, true);
  view.setUint32(8, checksum(bytes.subarray(CHECKED_FROM)), true);
  return bytes;
}

/** The fingerprint in the header. */
export const snapshotSource = (header: Uint8Array): Uint8Array => header.subarray(SOURCE_AT, CHECKED_FROM);

/**
 * The checksum in the header, or undefined if the bytes are not a snapshot of this version. The first `HEADER_BYTES` are
 * enough.
 */
export function snapshotChecksum(bytes: Uint8Array): number | undefined {
  if (bytes.length < HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) return undefined;
  if (bytes[4] !== SNAPSHOT_VERSION || bytes[5] || bytes[6] || bytes[7]) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
}

/**
 * Opens a snapshot; undefined for bytes that are not a whole snapshot of this version. Never throws. Without `checksum`
 * the content is not checked, which is for bytes that were never on a disk.
 */
export function decodeSnapshot(
  bytes: Uint8Array,
  inflate: Packing,
  checksum?: Checksum,
): OpenSnapshot | undefined {
  const stated = snapshotChecksum(bytes);
  if (stated === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const indexEnd = HEADER_BYTES + view.getUint32(CHECKED_FROM, true);
  const bodyAt = aligned(indexEnd);
  if (bodyAt + view.getUint32(CHECKED_FROM + 4, true) !== bytes.length) return undefined;
  if (checksum && checksum(bytes.subarray(CHECKED_FROM)) !== stated) return undefined;
  try {
    // The checksum proves that our own writer made this body, so its shape is not checked again.
    const columns = decode(bytes.subarray(bodyAt)) as Columns;
    return openColumns(columns, bytes.subarray(HEADER_BYTES, indexEnd), inflate);
  } catch {
    // A newer msgpackr made this body. It counts as no snapshot.
    return undefined;
  }
}
