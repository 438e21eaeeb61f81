/**
 * The tools of a snapshot in columns: main decodes a few long strings instead of thousands of small maps, and makes an
 * object only for a tool that is asked for. Schemas stay encoded. Descriptions lie in blocks, most of which are never
 * read.
 */

import { decode, encode } from "../protocol/calls.ts";
import type { CatalogSettings, ToolAnnotations } from "../protocol/session.ts";
import type {
  OpenSnapshot,
  RootKey,
  Snapshot,
  SnapshotServer,
  SnapshotTool,
  StoredSchemas,
  StoredTool,
} from "./contract.ts";

export interface Columns {
  settings: CatalogSettings;
  description: string;
  servers: SnapshotServer[];
  count: number;
  /** Names of all tools, one behind the other. */
  names: string;
  /**
   * Where each name starts, in characters, and behind them where the last one ends: main adds nothing up. Columns of
   * numbers hold uint32 LE, since msgpackr would decode a list of numbers one by one.
   */
  nameStarts: Uint8Array;
  tools: string;
  toolStarts: Uint8Array;
  /** True if the blocks of descriptions and schemas are deflated, which a large catalog's are: main reads half as much. */
  deflated: boolean;
  /** One entry for each `BLOCK` tools: the msgpackr bytes of their descriptions. */
  descriptions: Uint8Array[];
  descriptionStarts: Uint8Array;
  /** Positions of the tools in the order of their names: main looks up a few names without a map of all. */
  byName: Uint8Array;
  serverOf: Uint8Array;
  /** Different lists of root keys as JSON. They are parsed on demand, since no start needs all. */
  roots: string[];
  /** Position in `roots` by tool. */
  rootOf: Uint8Array;
  /**
   * Two bits for each hint: whether it is given, and its value. Then a bit each for a direct tool, a bare name, a tool that
   * reads a resource, and one that loads a skill.
   */
  flags: Uint8Array;
  /** One entry for each `SCHEMA_BLOCK` tools if they are deflated, else one for all. */
  schemas: Uint8Array[];
  /** Where each tool's schema starts, in bytes of all, and where the last one ends. */
  schemaStarts: Uint8Array;
  outputSchemas: Uint8Array[];
  /** As `schemaStarts`. A tool without an output schema has no bytes here. */
  outputSchemaStarts: Uint8Array;
}

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;
const DIRECT = 1 << (2 * HINTS.length);
const BARE = DIRECT << 1;
const RESOURCE = BARE << 1;
const SKILL = RESOURCE << 1;
const HINT_BITS = DIRECT - 1;

function packFlags({ annotations, direct, bare, kind }: SnapshotTool): number {
  const made = kind === undefined ? 0 : kind === "skill" ? SKILL : RESOURCE;
  let bits = (direct ? DIRECT : 0) | (bare ? BARE : 0) | made;
  HINTS.forEach((hint, i) => {
    const value = annotations?.[hint];
    if (typeof value === "boolean") bits |= (value ? 3 : 1) << (2 * i);
  });
  return bits;
}

/** Makes a reader of flags. Tools with equal hints share one object. */
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

const packNumbers = (numbers: readonly number[]): Uint8Array =>
  new Uint8Array(Uint32Array.from(numbers).buffer);

/** Copies the column, since it may start at any byte. `slice` would not do, since it does not copy a `Buffer`. */
const unpackNumbers = (bytes: Uint8Array): Uint32Array => new Uint32Array(new Uint8Array(bytes).buffer);

/** Where each part starts, and where the last one ends. */
function packStarts(lengths: readonly number[]): Uint8Array {
  const starts = [0];
  for (const length of lengths) starts.push((starts.at(-1) ?? 0) + length);
  return packNumbers(starts);
}

const startsOf = (texts: readonly string[]): Uint8Array => packStarts(texts.map((text) => text.length));

/** The columns of a snapshot that is to be written. `deflate`: for a large catalog. */
export function toColumns(
  { settings, description, servers, tools }: Snapshot,
  deflate: Packing | undefined,
): Columns {
  const roots = new Map<string, number>();
  const rootOf = tools.map(({ rootKeys }) => {
    const key = JSON.stringify(rootKeys);
    const found = roots.get(key) ?? roots.size;
    roots.set(key, found);
    return found;
  });
  // A lone surrogate would be decoded to another number of characters.
  const texts = (key: "name" | "tool" | "description"): string[] =>
    tools.map((tool) => tool[key].toWellFormed());
  const [names, locals, descriptions] = [texts("name"), texts("tool"), texts("description")];
  const isBefore = (a: number, b: number): boolean => (names[a] ?? "") < (names[b] ?? "");
  return {
    settings,
    description,
    servers,
    count: tools.length,
    names: names.join(""),
    nameStarts: startsOf(names),
    tools: locals.join(""),
    toolStarts: startsOf(locals),
    deflated: deflate !== undefined,
    descriptions: packTextBlocks(descriptions, deflate),
    descriptionStarts: startsOf(descriptions),
    byName: packNumbers([...tools.keys()].sort((a, b) => (isBefore(a, b) ? -1 : 1))),
    serverOf: packNumbers(tools.map((tool) => tool.server)),
    roots: [...roots.keys()],
    rootOf: packNumbers(rootOf),
    flags: packNumbers(tools.map(packFlags)),
    schemas: packParts(
      tools.map((tool) => tool.schema),
      deflate,
    ),
    schemaStarts: packStarts(tools.map((tool) => tool.schema.length)),
    outputSchemas: packParts(
      tools.map((tool) => tool.outputSchema ?? NONE),
      deflate,
    ),
    outputSchemaStarts: packStarts(tools.map((tool) => tool.outputSchema?.length ?? 0)),
  };
}

type TextReader = (at: number) => string;

function readTexts(texts: string, column: Uint8Array): TextReader {
  const starts = unpackNumbers(column);
  return (at) => texts.slice(starts[at], starts[at + 1]);
}

function openSchemas(columns: Columns, inflate: Packing | undefined): StoredSchemas {
  const { roots } = columns;
  const rootOf = unpackNumbers(columns.rootOf);
  const readRoots: RootKey[][] = [];
  const outputAt = unpackNumbers(columns.outputSchemaStarts);
  const input = readParts(columns.schemas, unpackNumbers(columns.schemaStarts), inflate);
  const output = readParts(columns.outputSchemas, outputAt, inflate);
  return {
    rootKeys: (at) => {
      const root = rootOf[at] ?? 0;
      readRoots[root] ??= JSON.parse(roots[root] ?? "[]") as RootKey[];
      return readRoots[root];
    },
    input,
    decoded: (at) => decode(input(at)) as Record<string, unknown>,
    output: (at) => (outputAt[at] === outputAt[at + 1] ? undefined : output(at)),
  };
}

/** Opens the columns of a stored snapshot. `index`: the bytes of its search index. */
export function openColumns(columns: Columns, index: Uint8Array, inflates: Packing): OpenSnapshot {
  const { settings, description, servers, count } = columns;
  const inflate = columns.deflated ? inflates : undefined;
  const nameOf = readTexts(columns.names, columns.nameStarts);
  const toolOf = readTexts(columns.tools, columns.toolStarts);
  const descriptionOf = readTextBlocks(
    columns.descriptions,
    unpackNumbers(columns.descriptionStarts),
    inflate,
  );
  const serverOf = unpackNumbers(columns.serverOf);
  const flags = unpackNumbers(columns.flags);
  const byName = unpackNumbers(columns.byName);
  const schemas = openSchemas(columns, inflate);
  const hintsOf = createHintReader();
  const made: (StoredTool | undefined)[] = [];

  const make = (at: number): StoredTool => {
    const bits = flags[at] ?? 0;
    const annotations = hintsOf(bits & HINT_BITS);
    const tool: StoredTool = {
      name: nameOf(at),
      server: servers[serverOf[at] ?? 0] as SnapshotServer,
      tool: toolOf(at),
      description: descriptionOf(at),
      schemas,
      at,
    };
    if (annotations) tool.annotations = annotations;
    if (bits & DIRECT) tool.direct = true;
    if (bits & BARE) tool.bare = true;
    if (bits & SKILL) tool.kind = "skill";
    else if (bits & RESOURCE) tool.kind = "resource";
    return tool;
  };

  return {
    settings,
    description,
    servers,
    index,
    count,
    tool: (at) => {
      const known = made[at];
      if (known) return known;
      const tool = make(at);
      made[at] = tool;
      return tool;
    },
    find: (name) => {
      let [low, high] = [0, count];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (nameOf(byName[middle] ?? 0) < name) low = middle + 1;
        else high = middle;
      }
      const at = byName[low];
      return at !== undefined && nameOf(at) === name ? at : -1;
    },
    marked: () => {
      const found: number[] = [];
      for (let at = 0; at < count; at++) if ((flags[at] ?? 0) & (DIRECT | BARE)) found.push(at);
      return found;
    },
  };
}

/** Descriptions that are decoded together. Decoding one by one is slower for all, all at once is slower for a few. */
const BLOCK = 128;

/** Schemas that are inflated together, in a twentieth of a millisecond. */
const SCHEMA_BLOCK = 32;

/** Deflates or inflates bytes, without a header. Passed in, since this folder does not know Node. */
export type Packing = (bytes: Uint8Array) => Uint8Array;

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The bytes as a plain array: `subarray` of a `Buffer` takes twice as long, which counts for thousands of tools. */
const plainBytes = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length);

/** Texts of the tools in blocks of msgpackr bytes. */
function packTextBlocks(texts: readonly string[], deflate: Packing | undefined): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < texts.length; at += BLOCK) blocks.push(encode(texts.slice(at, at + BLOCK).join("")));
  return deflate ? blocks.map(deflate) : blocks;
}

/** `parts` of the tools in one array, or in deflated blocks. */
function packParts(parts: readonly Uint8Array[], deflate: Packing | undefined): Uint8Array[] {
  if (!deflate) return [concat(parts)];
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < parts.length; at += SCHEMA_BLOCK) {
    blocks.push(deflate(concat(parts.slice(at, at + SCHEMA_BLOCK))));
  }
  return blocks;
}

const NONE: Uint8Array = new Uint8Array();

/** Reads the bytes of one tool. Of deflated blocks the last one is kept. */
function readParts(
  blocks: readonly Uint8Array[],
  starts: Uint32Array,
  inflate: Packing | undefined,
): (at: number) => Uint8Array {
  let last = inflate ? -1 : 0;
  let bytes: Uint8Array = inflate ? NONE : plainBytes(blocks[0] as Uint8Array);
  return (at) => {
    const block = inflate ? Math.floor(at / SCHEMA_BLOCK) : 0;
    if (inflate && block !== last) {
      bytes = plainBytes(inflate(blocks[block] as Uint8Array));
      last = block;
    }
    const from = starts[block * SCHEMA_BLOCK] ?? 0;
    return bytes.subarray((starts[at] ?? 0) - from, (starts[at + 1] ?? 0) - from);
  };
}

/** Reads the text of one tool. Each block is decoded once. */
function readTextBlocks(
  blocks: readonly Uint8Array[],
  starts: Uint32Array,
  inflate: Packing | undefined,
): (at: number) => string {
  const read: string[] = [];
  return (at) => {
    const block = Math.floor(at / BLOCK);
    // Only `decode` may be used here: the encoder would be a quarter of what main loads.
    read[block] ??= String(
      decode(inflate ? inflate(blocks[block] as Uint8Array) : (blocks[block] as Uint8Array)),
    );
    const from = starts[block * BLOCK] ?? 0;
    return read[block].slice((starts[at] ?? 0) - from, (starts[at + 1] ?? 0) - from);
  };
}
