/**
 * The tools that are known now, made from a snapshot: looked up by name, searched, and compared with what
 * Pi has been told. Schemas and the index are decoded when first used.
 */
import { crc32 } from "node:zlib";
import { decode } from "../protocol/codec.ts";
import {
  decodeSnapshot,
  type Snapshot,
  type SnapshotServer,
  type SnapshotTool,
  snapshotChecksum,
} from "../protocol/snapshot.ts";
import { type Hit, openIndex, type SearchIndex, search } from "../search/weighted.ts";

export interface CatalogTool extends Omit<SnapshotTool, "server"> {
  server: SnapshotServer;
}

export interface Catalog {
  /** Of the snapshot; undefined for the empty catalog. */
  checksum: number | undefined;
  servers: readonly SnapshotServer[];
  tools: readonly CatalogTool[];
  get(name: string): CatalogTool | undefined;
  search(terms: readonly string[], limit: number): { tools: CatalogTool[]; unmatched: string[] };
}

const EMPTY: Snapshot = { servers: [], tools: [], index: new Uint8Array() };

function fromSnapshot(snapshot: Snapshot, checksum: number | undefined): Catalog {
  // The decoded tools are ours alone: giving each its server in place saves thousands of copies.
  const tools = snapshot.tools as unknown as CatalogTool[];
  const byName = new Map<string, CatalogTool>();
  for (const tool of tools) {
    tool.server = snapshot.servers[tool.server as unknown as number] as SnapshotServer;
    byName.set(tool.name, tool);
  }
  let index: SearchIndex | undefined;
  return {
    checksum,
    servers: snapshot.servers,
    tools,
    get: (name) => byName.get(name),
    search: (terms, limit) => {
      if (tools.length === 0) return { tools: [], unmatched: [...terms] };
      index ??= openIndex(
        snapshot.index,
        tools.map((tool) => tool.name),
      );
      const { hits, unmatched } = search(index, terms, limit);
      const found = hits.map((hit: Hit) => tools[hit.tool]).filter((tool) => tool !== undefined);
      return { tools: found, unmatched };
    },
  };
}

export const emptyCatalog = (): Catalog => fromSnapshot(EMPTY, undefined);

/** Undefined for bytes that are no whole snapshot of this version. */
export function catalogFrom(bytes: Uint8Array): Catalog | undefined {
  const snapshot = decodeSnapshot(bytes, crc32);
  return snapshot && fromSnapshot(snapshot, snapshotChecksum(bytes));
}

/** Decodes the tool's input schema. */
export const inputSchemaOf = (tool: CatalogTool): Record<string, unknown> =>
  decode(tool.schema) as Record<string, unknown>;

const NO_BYTES: Uint8Array = new Uint8Array();
const sameBytes = (a: Uint8Array = NO_BYTES, b: Uint8Array = NO_BYTES): boolean => Buffer.compare(a, b) === 0;

/** Whether the model, and a script, would see the same bytes for both. */
export const sameDefinition = (a: CatalogTool, b: CatalogTool): boolean =>
  a === b ||
  (a.name === b.name &&
    a.description === b.description &&
    sameBytes(a.schema, b.schema) &&
    sameBytes(a.outputSchema, b.outputSchema));
