/**
 * The snapshot: all known tools with a prebuilt search index, in one block of bytes. The cache worker
 * writes it; main reads it in the factory from a file, and later from a catalog event. Schemas stay
 * encoded until somebody looks at them.
 *
 * Layout: 4 bytes magic, 1 byte version, 3 bytes zero, uint32 LE checksum (CRC-32) of the body,
 * uint32 LE body length, body (msgpackr).
 */
import { decode, encode } from "./codec.ts";
import type { ToolAnnotations } from "./types.ts";

const MAGIC = [0x50, 0x4d, 0x54, 0x53] as const; // "PMTS"
const HEADER_BYTES = 16;
export const SNAPSHOT_VERSION = 1;

export interface SnapshotServer {
  name: string;
  /** What the server is for, in a line; from the configuration or the server's own words. */
  description?: string;
  /** Defined by a file of the project, so it counts only while the project is trusted. */
  project: boolean;
}

export interface SnapshotTool {
  /** Name in Pi. */
  name: string;
  /** Index into `servers`. */
  server: number;
  /** Name at the server. */
  tool: string;
  description: string;
  annotations?: ToolAnnotations;
  /** Keys of the root of the input schema, so that it can be decoded on first access. */
  schemaKeys: string[];
  /** msgpackr bytes of the input schema: always an object whose `type` is `object`. */
  schema: Uint8Array;
}

export interface Snapshot {
  servers: SnapshotServer[];
  tools: SnapshotTool[];
  /** Bytes of the search index over `tools`, by position. */
  index: Uint8Array;
}

export type Checksum = (bytes: Uint8Array) => number;

/** Encodes with header. `checksum` is CRC-32; passed in since this folder knows no Node. */
export function encodeSnapshot(snapshot: Snapshot, checksum: Checksum): Uint8Array<ArrayBuffer> {
  const body = encode(snapshot);
  const bytes = new Uint8Array(HEADER_BYTES + body.length);
  bytes.set(MAGIC, 0);
  bytes[4] = SNAPSHOT_VERSION;
  const view = new DataView(bytes.buffer);
  view.setUint32(8, checksum(body), true);
  view.setUint32(12, body.length, true);
  bytes.set(body, HEADER_BYTES);
  return bytes;
}

/** Checksum that the header states, or undefined where the bytes are no snapshot of this version. */
export function snapshotChecksum(bytes: Uint8Array): number | undefined {
  if (bytes.length < HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) return undefined;
  if (bytes[4] !== SNAPSHOT_VERSION) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
}

/** Decodes, or answers undefined for anything that is not a whole snapshot of this version. Never throws. */
export function decodeSnapshot(bytes: Uint8Array, checksum: Checksum): Snapshot | undefined {
  const stated = snapshotChecksum(bytes);
  if (stated === undefined) return undefined;
  const body = bytes.subarray(HEADER_BYTES);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);
  if (length !== body.length || checksum(body) !== stated) return undefined;
  try {
    // The checksum proves that our own writer made this body, so its shape needs no second proof.
    return decode(body) as Snapshot;
  } catch {
    // A body of our writer that msgpackr cannot read was made by a newer msgpackr: the same as no snapshot.
    return undefined;
  }
}
