/**
 * The tools that are known now, made from a snapshot: looked up by name, searched, and compared with what
 * Pi has been told. Schemas and the index are decoded when first used.
 */
import { crc32 } from "node:zlib";
import { decode } from "../protocol/codec.ts";
import {
  type CatalogSettings,
  DEFAULT_CATALOG_SETTINGS,
  decodeSnapshot,
  type Snapshot,
  type SnapshotServer,
  type SnapshotTool,
  snapshotChecksum,
} from "../protocol/snapshot.ts";
import type { RemovedTools } from "../protocol/types.ts";
import { openEngine, type SearchEngine } from "../search/engine.ts";

export interface CatalogTool extends Omit<SnapshotTool, "server"> {
  server: SnapshotServer;
  /** Already decoded, where there are no bytes: a tool that comes from a transcript. */
  inputSchema?: Record<string, unknown>;
}

export interface CatalogHit {
  tool: CatalogTool;
  /** Comparable within one result only. */
  score: number;
  /** The query names this tool. */
  pinned: boolean;
}

export interface Catalog {
  /** Of the snapshot; undefined for the empty catalog. */
  checksum: number | undefined;
  settings: CatalogSettings;
  servers: readonly SnapshotServer[];
  tools: readonly CatalogTool[];
  get(name: string): CatalogTool | undefined;
  /** Best first. `server`: only its tools. Tools that the query names come first and may exceed the limit. */
  search(query: string, limit: number, server?: string): { hits: CatalogHit[]; unmatched: readonly string[] };
  /** Tools of that name, however it is written: local, with the server, with `mcp__`, with hyphens. */
  named(name: string): CatalogTool[];
}

/** Below this share of the best score a tool is not worth its place: that costs 0.4 points and saves one in four. */
const LIKELY = 0.5;

/** The hits that are about as good as the best one. `hits`: best first. */
export const likelyHits = (hits: readonly CatalogHit[]): CatalogHit[] =>
  hits.filter(({ score }) => score >= (hits[0]?.score ?? 0) * LIKELY);

const EMPTY: Snapshot = {
  settings: DEFAULT_CATALOG_SETTINGS,
  servers: [],
  tools: [],
  index: new Uint8Array(),
};

function fromSnapshot(snapshot: Snapshot, checksum: number | undefined): Catalog {
  // The decoded tools are ours alone: giving each its server in place saves thousands of copies.
  const tools = snapshot.tools as unknown as CatalogTool[];
  const byName = new Map<string, CatalogTool>();
  for (const tool of tools) {
    tool.server = snapshot.servers[tool.server as unknown as number] as SnapshotServer;
    byName.set(tool.name, tool);
  }
  let opened: SearchEngine | undefined;
  const engine = (): SearchEngine => {
    opened ??= openEngine(snapshot.settings.search, snapshot.index, tools);
    return opened;
  };
  return {
    checksum,
    settings: snapshot.settings,
    servers: snapshot.servers,
    tools,
    get: (name) => byName.get(name),
    search: (query, limit, server) => {
      if (tools.length === 0) return { hits: [], unmatched: [] };
      const { hits, unmatched } = engine().search(query, limit, server);
      return { hits: hits.map((hit) => ({ ...hit, tool: tools[hit.tool] as CatalogTool })), unmatched };
    },
    named: (name) => {
      const exact = byName.get(name);
      if (exact) return [exact];
      if (tools.length === 0) return [];
      return engine()
        .named(name)
        .map((at) => tools[at] as CatalogTool);
    },
  };
}

export const emptyCatalog = (): Catalog => fromSnapshot(EMPTY, undefined);

/** Undefined for bytes that are no whole snapshot of this version. */
export function catalogFrom(bytes: Uint8Array): Catalog | undefined {
  const snapshot = decodeSnapshot(bytes, crc32);
  return snapshot && fromSnapshot(snapshot, snapshotChecksum(bytes));
}

/** The same catalog with less in it; searches go through the same index. */
export function catalogWithout(catalog: Catalog, { servers, tools }: RemovedTools): Catalog {
  const goneServers = new Set(servers);
  const goneTools = new Map<string, Set<string>>();
  for (const { server, tool } of tools) {
    const ofServer = goneTools.get(server) ?? new Set();
    goneTools.set(server, ofServer.add(tool));
  }
  const isThere = ({ server, tool }: CatalogTool): boolean =>
    !goneServers.has(server.name) && !goneTools.get(server.name)?.has(tool);
  const left = catalog.tools.filter(isThere);
  const gone = catalog.tools.length - left.length;
  return {
    ...catalog,
    servers: catalog.servers.filter(({ name }) => !goneServers.has(name)),
    tools: left,
    get: (name) => {
      const tool = catalog.get(name);
      return tool && isThere(tool) ? tool : undefined;
    },
    search: (query, limit, server) => {
      // Those that are gone may have the first places.
      const { hits, unmatched } = catalog.search(query, limit + gone, server);
      const found = hits.filter(({ tool }) => isThere(tool));
      return { hits: found.filter(({ pinned }, place) => pinned || place < limit), unmatched };
    },
    named: (name) => catalog.named(name).filter(isThere),
  };
}

/** Decodes the tool's input schema. */
export const inputSchemaOf = (tool: CatalogTool): Record<string, unknown> =>
  tool.inputSchema ?? (decode(tool.schema) as Record<string, unknown>);

const NO_BYTES: Uint8Array = new Uint8Array();
const sameBytes = (a: Uint8Array = NO_BYTES, b: Uint8Array = NO_BYTES): boolean => Buffer.compare(a, b) === 0;

/** Whether the model, and a script, would see the same bytes for both. */
export const sameDefinition = (a: CatalogTool, b: CatalogTool): boolean =>
  a === b ||
  (a.name === b.name &&
    a.description === b.description &&
    sameBytes(a.schema, b.schema) &&
    sameBytes(a.outputSchema, b.outputSchema));
