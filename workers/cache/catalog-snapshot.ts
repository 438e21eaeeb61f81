/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the
 * limit. Pure but for the checksum.
 */
import { crc32 } from "node:zlib";
import { encode } from "../../src/protocol/codec.ts";
import { assignToolNames } from "../../src/protocol/names.ts";
import { encodeSnapshot, type SnapshotServer, type SnapshotTool } from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildIndex } from "../../src/search/weighted.ts";
import { normalizeInputSchema } from "./schema.ts";
import type { CachedTool } from "./tool.ts";

/** A tool with what the configuration makes of it. */
export type PublishedTool = CachedTool & {
  /** Declared to the model from the first request on. */
  direct: boolean;
};

export type CatalogServer = SnapshotServer & { tools: PublishedTool[] };

function toSnapshotTools(servers: readonly CatalogServer[]): SnapshotTool[] {
  const flat = servers.flatMap((server, index) =>
    server.tools.map(({ direct, ...tool }) => ({ server: server.name, index, direct, tool })),
  );
  const names = assignToolNames(flat.map(({ server, tool }) => ({ server, tool: tool.name })));
  return flat.map(({ index, tool, direct }, i) => {
    const schema = normalizeInputSchema(tool.inputSchema);
    const given = tool.annotations?.title;
    const title = tool.title ?? (typeof given === "string" ? given : undefined);
    return {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: tool.description?.trim() || title || `${tool.name} of ${servers[index]?.name}`,
      ...(direct ? { direct } : {}),
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      schemaKeys: Object.keys(schema),
      schema: encode(schema),
    };
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
  limitBytes: number,
): { snapshot: Uint8Array<ArrayBuffer>; leftOut: string[] } {
  const all = toSnapshotTools(catalog);
  const servers = catalog.map(({ tools: _tools, ...server }) => server);
  const withToolsOf = (count: number): Uint8Array<ArrayBuffer> => {
    const tools = all.filter((tool) => tool.server < count);
    return encodeSnapshot({ servers, tools, index: buildIndex(tools) }, crc32);
  };
  const whole = withToolsOf(catalog.length);
  if (whole.length <= limitBytes) return { snapshot: whole, leftOut: [] };
  const kept = mostThatFit(catalog.length - 1, (count) => withToolsOf(count).length <= limitBytes);
  const leftOut = catalog.slice(kept).filter((server) => server.tools.length > 0);
  return { snapshot: withToolsOf(kept), leftOut: leftOut.map((server) => server.name) };
}
