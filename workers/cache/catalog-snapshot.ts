/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the
 * limit. Pure but for the checksum.
 */
import { crc32 } from "node:zlib";
import { encode } from "../../src/protocol/codec.ts";
import { type AssignedNames, nameTools, type ToolPrefix } from "../../src/protocol/names.ts";
import { rootKeysOf } from "../../src/protocol/root-keys.ts";
import {
  type CatalogSettings,
  encodeSnapshot,
  type SnapshotServer,
  type SnapshotTool,
} from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildEngine, type IndexedTool } from "../../src/search/build-engine.ts";
import { type DescribedServer, searchToolDescription } from "../../src/search/description.ts";
import { moveReferences } from "./output-schema.ts";
import { type Repair, repairInputSchema, repairLine, repairOutputSchema } from "./schema.ts";
import type { CachedTool } from "./tool.ts";

/** A tool with what the configuration makes of it. */
export type PublishedTool = CachedTool & {
  /** Declared to the model from the first request on. */
  direct: boolean;
};

export type CatalogServer = SnapshotServer & {
  /** What is known of the server in its own words and the user's, for the index only. */
  about?: string;
  /** How its tools are named; `server` where it is left out. */
  prefix?: ToolPrefix;
  tools: PublishedTool[];
};

/** A tool as it goes into the snapshot, and as it goes into the index. */
interface Prepared {
  stored: SnapshotTool;
  indexed: IndexedTool;
}

/** Server, repair -> its tools whose schemas needed it. */
type Repairs = Map<string, Map<Repair, string[]>>;

interface PreparedTools {
  tools: Prepared[];
  collisions: AssignedNames["collisions"];
  repairs: Repairs;
}

function noteRepairs(all: Repairs, server: string, tool: string, repairs: readonly Repair[]): void {
  if (repairs.length === 0) return;
  const ofServer = all.get(server) ?? new Map<Repair, string[]>();
  all.set(server, ofServer);
  for (const repair of new Set(repairs)) ofServer.set(repair, [...(ofServer.get(repair) ?? []), tool]);
}

const textOf = (value: unknown): string => (typeof value === "string" ? value.trim() : "");

function prepareTools(servers: readonly CatalogServer[]): PreparedTools {
  const flat = servers.flatMap((server, index) =>
    server.tools.map(({ direct, ...tool }) => ({ server, index, direct, tool })),
  );
  const { names, bare, collisions } = nameTools(
    flat.map(({ server, tool }) => ({
      server: server.name,
      prefix: server.prefix ?? "server",
      tool: tool.name,
    })),
  );
  const repairs: Repairs = new Map();
  const tools = flat.map(({ server, index, tool, direct }, i): Prepared => {
    const input = repairInputSchema(tool.inputSchema);
    const output = repairOutputSchema(tool.outputSchema);
    noteRepairs(repairs, server.name, tool.name, [...input.repairs, ...(output?.repairs ?? [])]);
    const title = textOf(tool.title) || textOf(tool.annotations?.title);
    const description = textOf(tool.description) || title || `${tool.name} of ${server.name}`;
    const stored: SnapshotTool = {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: input.undeclared ? `${description}\n${input.undeclared}` : description,
      ...(direct ? { direct } : {}),
      ...(bare[i] ? { bare: true } : {}),
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      rootKeys: rootKeysOf(input.schema),
      schema: encode(input.schema),
      ...(output ? { outputSchema: encode(moveReferences(output.schema)) } : {}),
    };
    const indexed = {
      server: server.name,
      serverDescription: server.about ?? server.description ?? "",
      name: tool.name,
      fullName: stored.name,
      description,
      inputSchema: tool.inputSchema,
    };
    return { stored, indexed };
  });
  return { tools, collisions, repairs };
}

/** About what the index holds of a tool. */
const INDEX_BYTES = 1_000;
const COLLISIONS_SHOWN = 10;

/** One line a server, for the log and the user. */
function collisionLines(collisions: AssignedNames["collisions"]): string[] {
  const byServer = Map.groupBy(collisions, ({ server }) => server);
  return [...byServer].map(([server, all]) => {
    const shown = all
      .slice(0, COLLISIONS_SHOWN)
      .map(({ wanted, name, holder }) => `${wanted} (of ${holder}) is ${name}`);
    if (all.length > shown.length) shown.push(`${all.length - shown.length} more`);
    return `${server}: names that are taken: ${shown.join(", ")}`;
  });
}

const repairLines = (repairs: Repairs): string[] =>
  [...repairs].flatMap(([server, kinds]) =>
    [...kinds].map(([repair, tools]) => repairLine(server, repair, tools)),
  );

/** What a tool adds to a snapshot, roughly: its own bytes and its part of the index. */
const sizeOf = ({ name, description, schema, outputSchema, annotations }: SnapshotTool): number =>
  INDEX_BYTES +
  name.length +
  Buffer.byteLength(description) +
  schema.length +
  (outputSchema?.length ?? 0) +
  (annotations ? encode(annotations).length : 0);

/** Indexes of the servers, the largest first; of equal ones that which is named last. */
function largestFirst(servers: readonly CatalogServer[], tools: readonly Prepared[]): number[] {
  const sizes = servers.map(() => 0);
  for (const { stored } of tools) sizes[stored.server] = (sizes[stored.server] ?? 0) + sizeOf(stored);
  return sizes.map((_, i) => i).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0) || b - a);
}

/** What the description of ToolSearch lists: the tools' names at their servers, in order. */
function withToolNames(
  servers: readonly SnapshotServer[],
  tools: readonly SnapshotTool[],
): DescribedServer[] {
  const names: string[][] = servers.map(() => []);
  for (const { server, tool } of tools) names[server]?.push(tool);
  return servers.map((server, i) => ({ ...server, tools: names[i] ?? [] }));
}

/** The fewest, by count, for which `fits` holds. It must hold for all, and for more than it holds for. */
function fewestThatFit(count: number, fits: (leftOut: number) => boolean): number {
  let [least, most] = [0, count];
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (fits(middle)) most = middle;
    else least = middle + 1;
  }
  return least;
}

export interface MadeSnapshot {
  snapshot: Uint8Array<ArrayBuffer>;
  /** Servers whose tools it does not hold, because it would exceed the limit. */
  leftOut: string[];
  /** Tools that are called otherwise than they should be, one line a server. */
  collisions: string[];
  /** What was done to schemas, one line each. */
  repairs: string[];
}

/**
 * The snapshot, and what is to be told of it. Where it would exceed the limit, the tools of the largest servers
 * are left out, so that one that lists far too much costs no other anything. Names are given before, so that
 * no tool is called otherwise for that.
 */
export function makeSnapshot(
  catalog: readonly CatalogServer[],
  settings: CatalogSettings,
  { limitBytes, source }: { limitBytes: number; source?: Uint8Array | undefined },
): MadeSnapshot {
  const { tools: all, collisions, repairs } = prepareTools(catalog);
  const told = { collisions: collisionLines(collisions), repairs: repairLines(repairs) };
  const servers = catalog.map(({ tools: _tools, about: _about, prefix: _prefix, ...server }) => server);
  const without = (leftOut: ReadonlySet<number>): Uint8Array<ArrayBuffer> => {
    const kept = leftOut.size === 0 ? all : all.filter(({ stored }) => !leftOut.has(stored.server));
    const tools = kept.map(({ stored }) => stored);
    const index = buildEngine(
      settings.search,
      kept.map(({ indexed }) => indexed),
    );
    const description = searchToolDescription(withToolNames(servers, tools), settings);
    return encodeSnapshot({ settings, description, servers, tools, index }, crc32, source);
  };
  const whole = without(new Set());
  if (whole.length <= limitBytes) return { snapshot: whole, leftOut: [], ...told };
  const order = largestFirst(catalog, all);
  const largest = (count: number): Set<number> => new Set(order.slice(0, count));
  const fits = (count: number): boolean => without(largest(count)).length <= limitBytes;
  const leftOut = largest(1 + fewestThatFit(order.length - 1, (more) => fits(1 + more)));
  const names = catalog.filter(({ tools }, i) => leftOut.has(i) && tools.length > 0).map(({ name }) => name);
  return { snapshot: without(leftOut), leftOut: names, ...told };
}
