/**
 * The snapshot: all known tools with a prebuilt search index, in one block of bytes. The cache worker
 * writes it; main reads it in the factory from a file, and later from a catalog event. Whoever makes it bounds its
 * bytes, its texts and its tools (workers/cache/snapshot/fit.ts), since main reads it in one go.
 *
 * Layout, numbers uint32 LE: 4 bytes magic, 1 byte version, 3 bytes zero, checksum (CRC-32) of all behind the next 16
 * bytes, 16 bytes that tell what it was made of, length of the index, length of the body, 4 bytes zero; the index,
 * filled up to a multiple of 4; the body (msgpackr, `Columns`). So the index starts at a multiple of 4 and main reads it
 * where it lies.
 */

import { decode, encode } from "../protocol/codec.ts";
import { type Columns, openColumns, toColumns } from "./columns.ts";
import type { OpenSnapshot, Snapshot } from "./contract.ts";

const MAGIC = [0x50, 0x4d, 0x54, 0x53] as const; // "PMTS"
export const HEADER_BYTES = 40;
const SOURCE_AT = 12;
export const SOURCE_BYTES = 16;
/** The checksum covers all content, the lengths too: what is made of other things and says the same has the same. */
const CHECKED_FROM = SOURCE_AT + SOURCE_BYTES;
/**
 * A change of what may stand in a snapshot counts too, not only a change of its layout: the factory declares what
 * it finds before any worker can make a new one. 11: texts are clean and bounded.
 */
export const SNAPSHOT_VERSION = 11;

/** Where in the output schema of a Pi tool the tool's own one stands. */
export const STRUCTURED_POINTER = "#/properties/structuredContent";
export type Checksum = (bytes: Uint8Array) => number;

const aligned = (length: number): number => Math.ceil(length / 4) * 4;

/**
 * Encodes with header. `checksum` is CRC-32; passed in since this folder knows no Node. `source`: `SOURCE_BYTES` that
 * stand for all that it is made of, and for the code that makes it; left out, nothing is known of that.
 */
export function encodeSnapshot(
  snapshot: Snapshot,
  checksum: Checksum,
  source?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const { index } = snapshot;
  const body = encode(toColumns(snapshot));
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

/** What a snapshot was made of, as its header states it. */
export const snapshotSource = (header: Uint8Array): Uint8Array => header.subarray(SOURCE_AT, CHECKED_FROM);

/**
 * Checksum that the header states, or undefined where the bytes are no snapshot of this version. The first
 * `HEADER_BYTES` are enough.
 */
export function snapshotChecksum(bytes: Uint8Array): number | undefined {
  if (bytes.length < HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) return undefined;
  if (bytes[4] !== SNAPSHOT_VERSION || bytes[5] || bytes[6] || bytes[7]) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
}

/**
 * Decodes, or answers undefined for anything that is not a whole snapshot of this version. Never throws. Without
 * `checksum` the content counts as whole: for bytes that never lay on a disk.
 */
export function decodeSnapshot(bytes: Uint8Array, checksum?: Checksum): OpenSnapshot | undefined {
  const stated = snapshotChecksum(bytes);
  if (stated === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const indexEnd = HEADER_BYTES + view.getUint32(CHECKED_FROM, true);
  const bodyAt = aligned(indexEnd);
  if (bodyAt + view.getUint32(CHECKED_FROM + 4, true) !== bytes.length) return undefined;
  if (checksum && checksum(bytes.subarray(CHECKED_FROM)) !== stated) return undefined;
  try {
    // The checksum proves that our own writer made this body, so its shape needs no second proof.
    const columns = decode(bytes.subarray(bodyAt)) as Columns;
    return openColumns(columns, bytes.subarray(HEADER_BYTES, indexEnd));
  } catch {
    // A body of our writer that msgpackr cannot read was made by a newer msgpackr: the same as no snapshot.
    return undefined;
  }
}
