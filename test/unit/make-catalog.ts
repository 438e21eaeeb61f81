/** Owns: real catalogs for unit tests, made in the same way as in the cache worker. */
import { crc32 } from "node:zlib";
import { type Catalog, type CatalogTool, catalogFrom } from "../../src/catalog/catalog.ts";
import { plainToolName } from "../../src/shared/naming.ts";
import { encode } from "../../src/shared/protocol/calls.ts";
import {
  type CatalogSettings,
  DEFAULT_CATALOG_SETTINGS,
  type ToolAnnotations,
} from "../../src/shared/protocol/session.ts";
import { buildEngine } from "../../src/shared/search/build.ts";
import { rootKeysOf, type Snapshot, type SnapshotServer } from "../../src/shared/snapshot/contract.ts";
import { encodeSnapshot } from "../../src/shared/snapshot/snapshot.ts";
import { searchToolDescription } from "../../src/shared/text/search-tool.ts";

export interface MadeTool {
  tool: string;
  description?: string;
  schema?: Record<string, unknown>;
  annotations?: ToolAnnotations;
  direct?: boolean;
  kind?: "resource" | "skill";
  /** Its name in Pi is its name at the server (`toolPrefix: "none"`). */
  bare?: boolean;
}

export interface MadeServer extends Partial<SnapshotServer> {
  name: string;
  tools: MadeTool[];
}

export function makeSnapshot(
  servers: readonly MadeServer[],
  settings: Partial<CatalogSettings> = {},
): Snapshot {
  const all = { ...DEFAULT_CATALOG_SETTINGS, ...settings };
  const tools = servers.flatMap((server, index) =>
    server.tools.map(
      ({
        tool,
        description = `${tool} it.`,
        schema = { type: "object" },
        annotations,
        direct,
        kind,
        bare,
      }) => ({
        name: bare ? tool : plainToolName(server.name, tool),
        server: index,
        tool,
        description,
        ...(annotations ? { annotations } : {}),
        ...(direct ? { direct } : {}),
        ...(kind ? { kind } : {}),
        ...(bare ? { bare } : {}),
        rootKeys: rootKeysOf(schema),
        schema: encode(schema),
      }),
    ),
  );
  const indexed = servers.flatMap(({ name, description: serverDescription = "", tools: own }) =>
    own.map(({ tool, description = `${tool} it.`, schema }) => ({
      server: name,
      serverDescription,
      name: tool,
      fullName: plainToolName(name, tool),
      description,
      inputSchema: schema,
    })),
  );
  const described = servers.map(({ tools: own, ...server }) => ({
    ...server,
    tools: own.map(({ tool }) => tool),
  }));
  return {
    settings: all,
    description: searchToolDescription(described, all),
    servers: servers.map(({ tools: _tools, ...server }) => ({ project: false, toolsKnown: true, ...server })),
    tools,
    index: buildEngine(all.search, indexed),
  };
}

export const makeSnapshotBytes = (
  servers: readonly MadeServer[],
  settings: Partial<CatalogSettings> = {},
): Uint8Array<ArrayBuffer> => encodeSnapshot(makeSnapshot(servers, settings), crc32);

export function makeCatalog(
  servers: readonly MadeServer[],
  settings: Partial<CatalogSettings> = {},
): Catalog {
  const catalog = catalogFrom(makeSnapshotBytes(servers, settings));
  if (!catalog) throw new Error("the snapshot cannot be read back");
  return catalog;
}

/** The only tool of a catalog with one tool. */
export function makeTool(tool: MadeTool, server: Partial<SnapshotServer> = {}): CatalogTool {
  const [made] = makeCatalog([{ name: "srv", ...server, tools: [tool] }]).tools;
  if (!made) throw new Error("no tool was made");
  return made;
}
