/**
 * The tools that Pi's main thread knows, made from a snapshot: finds a tool by its name, compares two definitions of a
 * tool, and walks over thousands of tools in slices. A schema is decoded when it is first used. Must not: know Pi, Pi's
 * own form of a tool, or the runtime. To add a field of a tool: shared/snapshot, then `fromSnapshot`.
 */
import { crc32, inflateRawSync } from "node:zlib";
import { TOOL_SEARCH_HEAD } from "../shared/naming.ts";
import {
  type CatalogSettings,
  DEFAULT_CATALOG_SETTINGS,
  type RemovedTools,
} from "../shared/protocol/session.ts";
import {
  type OpenSnapshot,
  type RootKey,
  rootKeysOf,
  type SnapshotServer,
  type StoredSchemas,
  type StoredTool,
} from "../shared/snapshot/contract.ts";
import { decodeSnapshot, snapshotChecksum } from "../shared/snapshot/snapshot.ts";

export interface CatalogTool extends StoredTool {
  /** For a tool that comes from a transcript: its schema is decoded already, and has no bytes. */
  inputSchema?: Record<string, unknown>;
}

export interface Catalog {
  /** Checksum of the snapshot; undefined for the empty catalog. */
  checksum: number | undefined;
  settings: CatalogSettings;
  /** Description of the tool that finds the others. */
  description: string;
  servers: readonly SnapshotServer[];
  /** Number of tools. */
  count: number;
  /** All tools, made at the first access. `tool` and `eachTool` make single ones. */
  readonly tools: readonly CatalogTool[];
  /** The tool at a position from 0 to `count - 1`. */
  tool(at: number): CatalogTool;
  get(name: string): CatalogTool | undefined;
  /** The direct tools, and those whose names have no server in them: few, however many tools there are. */
  marked(): CatalogTool[];
  /** The snapshot as it came, before `catalogWithout`: the search index refers to its positions. */
  indexed: { index: Uint8Array; count: number; tool(at: number): CatalogTool };
}

/** Makes the tools one by one, so that a walk over thousands of them can pause. */
export function* eachTool({ count, tool }: Pick<Catalog, "count" | "tool">): Generator<CatalogTool> {
  for (let at = 0; at < count; at++) yield tool(at);
}

const EMPTY: OpenSnapshot = {
  settings: DEFAULT_CATALOG_SETTINGS,
  description: TOOL_SEARCH_HEAD,
  servers: [],
  index: new Uint8Array(),
  count: 0,
  tool: () => {
    throw new RangeError("an empty catalog has no tools");
  },
  find: () => -1,
  marked: () => [],
};

function fromSnapshot(snapshot: OpenSnapshot, checksum: number | undefined): Catalog {
  const { settings, description, servers, count, tool, find, index } = snapshot;
  let tools: CatalogTool[] | undefined;
  return {
    checksum,
    settings,
    description,
    servers,
    count,
    get tools() {
      tools ??= [...eachTool({ count, tool })];
      return tools;
    },
    tool,
    get: (name) => {
      const at = find(name);
      return at === -1 ? undefined : tool(at);
    },
    marked: () => snapshot.marked().map(tool),
    indexed: { index, count, tool },
  };
}

export const emptyCatalog = (): Catalog => fromSnapshot(EMPTY, undefined);

/**
 * Undefined for bytes that are not a whole snapshot of this version. `isWhole` skips the check for bytes that nothing
 * can have cut or changed: those of another thread.
 */
export function catalogFrom(bytes: Uint8Array, { isWhole = false } = {}): Catalog | undefined {
  const snapshot = decodeSnapshot(bytes, inflateRawSync, isWhole ? undefined : crc32);
  return snapshot && fromSnapshot(snapshot, snapshotChecksum(bytes));
}

/** The catalog without these servers and tools. */
export function catalogWithout(catalog: Catalog, { servers, tools }: RemovedTools): Catalog {
  const goneServers = new Set(servers);
  const goneTools = new Map<string, Set<string>>();
  for (const { server, tool } of tools) {
    const ofServer = goneTools.get(server) ?? new Set();
    goneTools.set(server, ofServer.add(tool));
  }
  const isThere = ({ server, tool }: CatalogTool): boolean =>
    !goneServers.has(server.name) && !goneTools.get(server.name)?.has(tool);
  const kept = catalog.tools.filter(isThere);
  const { checksum, settings, description, indexed } = catalog;
  return {
    checksum,
    settings,
    description,
    servers: catalog.servers.filter(({ name }) => !goneServers.has(name)),
    count: kept.length,
    tools: kept,
    tool: (at) => kept[at] as CatalogTool,
    get: (name) => {
      const tool = catalog.get(name);
      return tool && isThere(tool) ? tool : undefined;
    },
    marked: () => catalog.marked().filter(isThere),
    indexed,
  };
}

/** Decodes the tool's input schema. */
export const inputSchemaOf = (tool: CatalogTool): Record<string, unknown> =>
  tool.inputSchema ?? tool.schemas.decoded(tool.at);

/** Top-level keys of the tool's input schema, without decoding the schema. */
export const inputKeysOf = ({ inputSchema, schemas, at }: CatalogTool): readonly RootKey[] =>
  inputSchema ? rootKeysOf(inputSchema) : schemas.rootKeys(at);

/** Bytes of the tool's output schema; undefined if the tool has none. */
export const outputSchemaOf = ({ schemas, at }: CatalogTool): Uint8Array | undefined => schemas.output(at);

const NO_BYTES: Uint8Array = new Uint8Array();
/** For a tool that comes from a transcript. */
export const NO_SCHEMAS: StoredSchemas = {
  rootKeys: () => [],
  input: () => NO_BYTES,
  decoded: () => ({}),
  output: () => undefined,
};

const sameBytes = (a: Uint8Array = NO_BYTES, b: Uint8Array = NO_BYTES): boolean => Buffer.compare(a, b) === 0;

/** Whether the model and a script see the same bytes for both. */
export const sameDefinition = (a: CatalogTool, b: CatalogTool): boolean =>
  a === b ||
  (a.name === b.name &&
    a.description === b.description &&
    sameBytes(a.schemas.input(a.at), b.schemas.input(b.at)) &&
    sameBytes(outputSchemaOf(a), outputSchemaOf(b)));

/** `server`: name as configured. A server without any tool counts once it has listed them. */
export const holdsToolsOf = ({ servers }: Pick<Catalog, "servers">, server: string): boolean =>
  servers.some(({ name, toolsKnown }) => name === server && toolsKnown);

/** The longest time for which a walk occupies main. */
const SLICE_MS = 3;
/** Steps between two readings of the clock, for steps of a microsecond or less. */
const STEPS = 32;

interface Slices {
  /** Called at each step. Undefined while the slice lasts; else the caller awaits the promise before the next step. */
  step(): Promise<void> | undefined;
}

/** `steps`: how many steps pass between two readings of the clock. */
export function createSlices({ sliceMs = SLICE_MS, steps = STEPS } = {}): Slices {
  let endsAt = performance.now() + sliceMs;
  let done = 0;
  return {
    step: () => {
      if (++done % steps !== 0 || performance.now() < endsAt) return undefined;
      return new Promise((resolve) => {
        setImmediate(() => {
          endsAt = performance.now() + sliceMs;
          resolve();
        });
      });
    },
  };
}

/** The tools of one server; of all servers if `server` is undefined. */
export async function toolsOf(catalog: Catalog, server: string | undefined): Promise<CatalogTool[]> {
  const slices = createSlices();
  const tools: CatalogTool[] = [];
  for (const tool of eachTool(catalog)) {
    const pause = slices.step();
    if (pause) await pause;
    if (server === undefined || tool.server.name === server) tools.push(tool);
  }
  return tools;
}
