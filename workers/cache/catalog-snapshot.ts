/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the
 * limit. Pure but for the checksum.
 */
import { crc32 } from "node:zlib";
import { encode } from "../../src/protocol/codec.ts";
import { assignToolNames } from "../../src/protocol/names.ts";
import {
  type CatalogSettings,
  encodeSnapshot,
  type SnapshotServer,
  type SnapshotTool,
} from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildEngine, type IndexedTool } from "../../src/search/build-engine.ts";
import { normalizeInputSchema } from "./schema.ts";
import type { CachedTool } from "./tool.ts";

/** A tool with what the configuration makes of it. */
export type PublishedTool = CachedTool & {
  /** Declared to the model from the first request on. */
  direct: boolean;
};

export type CatalogServer = SnapshotServer & {
  /** What is known of the server in its own words and the user's, for the index only. */
  about?: string;
  tools: PublishedTool[];
};

/** A tool as it goes into the snapshot, and as it goes into the index. */
interface Prepared {
  stored: SnapshotTool;
  indexed: IndexedTool;
}

function prepareTools(servers: readonly CatalogServer[]): Prepared[] {
  const flat = servers.flatMap((server, index) =>
    server.tools.map(({ direct, ...tool }) => ({ server: server.name, index, direct, tool })),
  );
  const names = assignToolNames(flat.map(({ server, tool }) => ({ server, tool: tool.name })));
  return flat.map(({ index, tool, direct }, i) => {
    const schema = normalizeInputSchema(tool.inputSchema);
    const given = tool.annotations?.title;
    const title = tool.title ?? (typeof given === "string" ? given : undefined);
    const stored: SnapshotTool = {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: tool.description?.trim() || title || `${tool.name} of ${servers[index]?.name}`,
      ...(direct ? { direct } : {}),
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      schemaKeys: Object.keys(schema),
      schema: encode(schema),
    };
    const server = servers[index];
    const indexed = {
      server: server?.name ?? "",
      serverDescription: server?.about ?? server?.description ?? "",
      name: tool.name,
      fullName: stored.name,
      description: stored.description,
      inputSchema: tool.inputSchema,
    };
    return { stored, indexed };
  });
}

/** The most leading servers, by count, for which `fits` holds. It must hold for none, and for fewer than it holds for. */
function mostThatFit(count: number, fits: (servers: number) => boolean): number {
  let [least, most] = [0, count];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

/**
 * The snapshot, and the servers whose tools it leaves out because it would exceed the limit: those that the
 * configuration names last. Names are given before, so that no tool is called otherwise for that.
 */
export function makeSnapshot(
  catalog: readonly CatalogServer[],
  settings: CatalogSettings,
  limitBytes: number,
): { snapshot: Uint8Array<ArrayBuffer>; leftOut: string[] } {
  const all = prepareTools(catalog);
  const servers = catalog.map(({ tools: _tools, about: _about, ...server }) => server);
  const withToolsOf = (count: number): Uint8Array<ArrayBuffer> => {
    const kept = all.filter(({ stored }) => stored.server < count);
    const tools = kept.map(({ stored }) => stored);
    const index = buildEngine(
      settings.search,
      kept.map(({ indexed }) => indexed),
    );
    return encodeSnapshot({ settings, servers, tools, index }, crc32);
  };
  const whole = withToolsOf(catalog.length);
  if (whole.length <= limitBytes) return { snapshot: whole, leftOut: [] };
  const kept = mostThatFit(catalog.length - 1, (count) => withToolsOf(count).length <= limitBytes);
  const leftOut = catalog.slice(kept).filter((server) => server.tools.length > 0);
  return { snapshot: withToolsOf(kept), leftOut: leftOut.map((server) => server.name) };
}
