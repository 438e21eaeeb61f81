/**
 * The snapshot: all known tools with a prebuilt search index, in one block of bytes. The cache worker
 * writes it; main reads it in the factory from a file, and later from a catalog event. It is laid out in
 * columns, so that main decodes a few long strings instead of thousands of small maps; schemas stay
 * encoded until somebody looks at them. Whoever makes it bounds its bytes, its texts and its tools
 * (workers/cache/fit-catalog.ts), since main decodes it in one go.
 *
 * Layout, numbers uint32 LE: 4 bytes magic, 1 byte version, 3 bytes zero, checksum (CRC-32) of all behind the next 16
 * bytes, 16 bytes that tell what it was made of, length of the index, length of the body, 4 bytes zero; the index,
 * filled up to a multiple of 4; the body (msgpackr, `Columns`). So the index starts at a multiple of 4 and main reads it
 * where it lies.
 */
import { decode, encode } from "./codec.ts";
import type { RootKey } from "./root-keys.ts";
import type { ToolAnnotations } from "./types.ts";

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

/** Between the entries of a column of texts; a text that holds it loses it. */
const SEPARATOR = "\u0000";

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
/** Settings that main must know before a worker runs. */
export interface CatalogSettings {
  /** How ToolSearch ranks: as src/search/README.md says, or by the 10/5/4/3 weights. The index is of this kind. */
  search: "ranked" | "weighted";
  /** What the description of ToolSearch lists. */
  catalog: "tools" | "servers" | "off";
  /** One tool `mcp` in place of ToolSearch. */
  proxyTool: boolean;
  /** What the configuration was read from, also files that are not there. Absolute. */
  files: readonly string[];
}

export const DEFAULT_CATALOG_SETTINGS: CatalogSettings = {
  search: "ranked",
  catalog: "tools",
  proxyTool: false,
  files: [],
};

export interface Snapshot<Tool = SnapshotTool> {
  settings: CatalogSettings;
  /** Of the tool that finds the others, which names the servers and their tools. */
  description: string;
  servers: SnapshotServer[];
  tools: Tool[];
  /** Bytes of the search index over `tools`, by position. */
  index: Uint8Array;
}

interface Columns {
  settings: CatalogSettings;
  description: string;
  servers: SnapshotServer[];
  count: number;
  names: string;
  tools: string;
  descriptions: string;
  /** One number a tool, as here and below: uint32 LE, since a list of them is decoded one by one. */
  serverOf: Uint8Array;
  /** JSON of the root keys of each kind, as a column of texts: nobody needs those of all tools. */
  roots: string;
  rootOf: Uint8Array;
  /** Two bits a hint: given, and its value. */
  hints: Uint8Array;
  /** Positions of direct tools, and of those with bare names. */
  direct: number[];
  bare: number[];
  schemas: Uint8Array;
  /** Length of each tool's schema, in order. */
  schemaBytes: Uint8Array;
  outputSchemas: Uint8Array;
  /** The same of output schemas; 0 without. */
  outputSchemaBytes: Uint8Array;
}

export type Checksum = (bytes: Uint8Array) => number;

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

function packHints(annotations: ToolAnnotations | undefined): number {
  let bits = 0;
  HINTS.forEach((hint, i) => {
    const value = annotations?.[hint];
    if (typeof value === "boolean") bits |= (value ? 3 : 1) << (2 * i);
  });
  return bits;
}

/** Tools share one object for each combination of hints. */
function createHintReader(): (bits: number) => ToolAnnotations | undefined {
  const made: (ToolAnnotations | undefined)[] = [];
  return (bits) => {
    if (bits === 0) return undefined;
    made[bits] ??= Object.fromEntries(
      HINTS.map((hint, i) => [hint, (bits >> (2 * i)) & 3] as const)
        .filter(([, pair]) => pair !== 0)
        .map(([hint, pair]) => [hint, pair === 3]),
    );
    return made[bits];
  };
}

const joined = (texts: readonly string[]): string =>
  texts.map((text) => text.replaceAll(SEPARATOR, "")).join(SEPARATOR);

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const packNumbers = (numbers: readonly number[]): Uint8Array =>
  new Uint8Array(Uint32Array.from(numbers).buffer);

/** From a copy, since a column may start anywhere; not by `slice`, which does not copy a `Buffer`. */
const unpackNumbers = (bytes: Uint8Array): Uint32Array => new Uint32Array(new Uint8Array(bytes).buffer);

/** A part of a `Buffer` takes twice as long as one of these, which counts for thousands. */
const plainBytes = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length);

function toColumns({ settings, description, servers, tools }: Snapshot): Columns {
  const roots = new Map<string, number>();
  const rootOf = tools.map(({ rootKeys }) => {
    const key = JSON.stringify(rootKeys);
    const found = roots.get(key) ?? roots.size;
    roots.set(key, found);
    return found;
  });
  return {
    settings,
    description,
    servers,
    count: tools.length,
    names: joined(tools.map((tool) => tool.name)),
    tools: joined(tools.map((tool) => tool.tool)),
    descriptions: joined(tools.map((tool) => tool.description)),
    serverOf: packNumbers(tools.map((tool) => tool.server)),
    roots: joined([...roots.keys()]),
    rootOf: packNumbers(rootOf),
    hints: packNumbers(tools.map((tool) => packHints(tool.annotations))),
    direct: tools.flatMap((tool, i) => (tool.direct ? [i] : [])),
    bare: tools.flatMap((tool, i) => (tool.bare ? [i] : [])),
    schemas: concat(tools.map((tool) => tool.schema)),
    schemaBytes: packNumbers(tools.map((tool) => tool.schema.length)),
    outputSchemas: concat(tools.flatMap((tool) => tool.outputSchema ?? [])),
    outputSchemaBytes: packNumbers(tools.map((tool) => tool.outputSchema?.length ?? 0)),
  };
}

/** Where each part of a column begins, and the end of the last one. */
function startsOf(lengths: Uint32Array): Uint32Array {
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = (starts[i] ?? 0) + (lengths[i] ?? 0);
  return starts;
}

function openSchemas(columns: Columns): StoredSchemas {
  const roots = columns.roots.split(SEPARATOR);
  const rootOf = unpackNumbers(columns.rootOf);
  const readRoots: RootKey[][] = [];
  const inputs = plainBytes(columns.schemas);
  const outputs = plainBytes(columns.outputSchemas);
  const inputAt = startsOf(unpackNumbers(columns.schemaBytes));
  const outputAt = startsOf(unpackNumbers(columns.outputSchemaBytes));
  return {
    rootKeys: (at) => {
      const root = rootOf[at] ?? 0;
      readRoots[root] ??= JSON.parse(roots[root] ?? "[]") as RootKey[];
      return readRoots[root];
    },
    input: (at) => inputs.subarray(inputAt[at], inputAt[at + 1]),
    output: (at) =>
      outputAt[at] !== outputAt[at + 1] ? outputs.subarray(outputAt[at], outputAt[at + 1]) : undefined,
  };
}

function fromColumns(columns: Columns, index: Uint8Array): Snapshot<StoredTool> {
  const { settings, description, servers, count } = columns;
  const names = columns.names.split(SEPARATOR);
  const toolNames = columns.tools.split(SEPARATOR);
  const descriptions = columns.descriptions.split(SEPARATOR);
  const serverOf = unpackNumbers(columns.serverOf);
  const hints = unpackNumbers(columns.hints);
  const schemas = openSchemas(columns);
  const hintsOf = createHintReader();
  const tools: StoredTool[] = [];
  for (let at = 0; at < count; at++) {
    const annotations = hintsOf(hints[at] ?? 0);
    const tool: StoredTool = {
      name: names[at] ?? "",
      server: servers[serverOf[at] ?? 0] as SnapshotServer,
      tool: toolNames[at] ?? "",
      description: descriptions[at] ?? "",
      schemas,
      at,
    };
    if (annotations) tool.annotations = annotations;
    tools.push(tool);
  }
  for (const at of columns.direct) {
    const tool = tools[at];
    if (tool) tool.direct = true;
  }
  for (const at of columns.bare) {
    const tool = tools[at];
    if (tool) tool.bare = true;
  }
  return { settings, description, servers, tools, index };
}

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
export function decodeSnapshot(bytes: Uint8Array, checksum?: Checksum): Snapshot<StoredTool> | undefined {
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
    return fromColumns(columns, bytes.subarray(HEADER_BYTES, indexEnd));
  } catch {
    // A body of our writer that msgpackr cannot read was made by a newer msgpackr: the same as no snapshot.
    return undefined;
  }
}
