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

import type { CatalogSettings, ToolAnnotations } from "../protocol/catalog.ts";
import { decode, encode } from "../protocol/codec.ts";
import { type Columns, openColumns, toColumns } from "./columns.ts";
import type { RootKey } from "./root-keys.ts";

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

export interface SnapshotServer {
  name: string;
  /** What the server is for, in a line; from the configuration or the server's own words. */
  description?: string;
  /** The server's own words on how to use it, bounded. */
  instructions?: string;
  /** Whether the server, or a cache, has told its tools; otherwise it is only configured. */
  toolsKnown: boolean;
  /** Defined by a file of the project, so it counts only while the project is trusted. */
  project: boolean;
}

interface DescribedTool {
  /** Name in Pi. */
  name: string;
  /** Name at the server, as the server wrote it. */
  tool: string;
  description: string;
  annotations?: ToolAnnotations;
  /** Declared to the model from the first request on, without a search. */
  direct?: boolean;
  /** Its name has no server in it: a tool of another extension may bear it too. */
  bare?: boolean;
}

/** A tool as it is written. */
export interface SnapshotTool extends DescribedTool {
  /** Index into `servers`. */
  server: number;
  /** Of the input schema, so that the schema can be decoded on first access. */
  rootKeys: readonly RootKey[];
  /** msgpackr bytes of the input schema: always an object whose `type` is `object`. */
  schema: Uint8Array;
  /** msgpackr bytes of the output schema, with references that start at `STRUCTURED_POINTER`. */
  outputSchema?: Uint8Array;
}

/** The schemas of all tools of a snapshot, by position, read on demand: a view a tool costs more than all else. */
export interface StoredSchemas {
  /** Of the input schema. Tools of equal roots share one list. */
  rootKeys(at: number): readonly RootKey[];
  input(at: number): Uint8Array;
  /** Undefined for a tool without one. */
  output(at: number): Uint8Array | undefined;
}

/** A tool as it is read. */
export interface StoredTool extends DescribedTool {
  server: SnapshotServer;
  schemas: StoredSchemas;
  /** Position in `schemas`. */
  at: number;
}

/** Where in the output schema of a Pi tool the tool's own one stands. */
export const STRUCTURED_POINTER = "#/properties/structuredContent";
interface SnapshotHead {
  settings: CatalogSettings;
  /** Of the tool that finds the others, which names the servers and their tools. */
  description: string;
  servers: SnapshotServer[];
  /** Bytes of the search index over the tools, by position. */
  index: Uint8Array;
}

/** A snapshot as it is written. */
export interface Snapshot extends SnapshotHead {
  tools: SnapshotTool[];
}

/** A snapshot as it is read: a tool is made when somebody asks for it, since there may be thousands. */
export interface OpenSnapshot extends SnapshotHead {
  /** Number of tools. */
  count: number;
  /** The same object each time. */
  tool(at: number): StoredTool;
  /** Position of the tool of that name in Pi, or -1. */
  find(name: string): number;
}

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
