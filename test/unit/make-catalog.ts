/** Owns: real catalogs for unit tests, made as the cache worker makes them. */
import { crc32 } from "node:zlib";
import { type Catalog, type CatalogTool, catalogFrom } from "../../src/catalog/catalog.ts";
import { encode } from "../../src/protocol/codec.ts";
import { plainToolName } from "../../src/protocol/names.ts";
import { encodeSnapshot, type Snapshot, type SnapshotServer } from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildIndex } from "../../src/search/weighted.ts";

export interface MadeTool {
  tool: string;
  description?: string;
  schema?: Record<string, unknown>;
  annotations?: ToolAnnotations;
  direct?: boolean;
}

export interface MadeServer extends Partial<SnapshotServer> {
  name: string;
  tools: MadeTool[];
}

export function makeSnapshot(servers: readonly MadeServer[]): Snapshot {
  const tools = servers.flatMap((server, index) =>
    server.tools.map(
      ({ tool, description = `${tool} it.`, schema = { type: "object" }, annotations, direct }) => ({
        name: plainToolName(server.name, tool),
        server: index,
        tool,
        description,
        ...(annotations ? { annotations } : {}),
        ...(direct ? { direct } : {}),
        schemaKeys: Object.keys(schema),
        schema: encode(schema),
      }),
    ),
  );
  return {
    servers: servers.map(({ tools: _tools, ...server }) => ({ project: false, toolsKnown: true, ...server })),
    tools,
    index: buildIndex(tools),
  };
}

export const makeSnapshotBytes = (servers: readonly MadeServer[]): Uint8Array<ArrayBuffer> =>
  encodeSnapshot(makeSnapshot(servers), crc32);

export function makeCatalog(servers: readonly MadeServer[]): Catalog {
  const catalog = catalogFrom(makeSnapshotBytes(servers));
  if (!catalog) throw new Error("the snapshot cannot be read back");
  return catalog;
}

/** The only tool of a catalog with one tool. */
export function makeTool(tool: MadeTool, server: Partial<SnapshotServer> = {}): CatalogTool {
  const [made] = makeCatalog([{ name: "srv", ...server, tools: [tool] }]).tools;
  if (!made) throw new Error("no tool was made");
  return made;
}
