/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the limit. Pure
 * except for the checksum, which is Node's.
 */

import { crc32, deflateRawSync } from "node:zlib";
import { type AssignedNames, SKILL_BY_ADDRESS } from "../../../src/shared/naming.ts";
import { encode } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CatalogSettings } from "../../../src/shared/protocol/session.ts";
import { buildEngine } from "../../../src/shared/search/build.ts";
import {
  rootKeysOf,
  type Snapshot,
  type SnapshotPrompt,
  type SnapshotServer,
} from "../../../src/shared/snapshot/contract.ts";
import { encodeSnapshot } from "../../../src/shared/snapshot/snapshot.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { type DescribedServer, searchToolDescription } from "../../../src/shared/text/search-tool.ts";
import { cleanText, cut, oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CatalogServer, ServerLine } from "../../shared/tasks.ts";
import { ANY_OBJECT, cutDescription, type Prepared, prepareTools, promptCommands } from "./prepare-tools.ts";
import { tellingNames } from "./telling-names.ts";

const COLLISIONS_SHOWN = 10;

/** Lines for the log and the user, one for each server: which of its tools have other names than wanted. */
function collisionLines(collisions: AssignedNames["collisions"]): ServerLine[] {
  const byServer = Map.groupBy(collisions, ({ server }) => server);
  return [...byServer].map(([server, all]) => {
    const shown = all
      .slice(0, COLLISIONS_SHOWN)
      .map(
        ({ wanted, name, holder }) =>
          `${wanted} (of ${holder === server ? "another tool" : holder}) is ${name}`,
      );
    if (all.length > shown.length) shown.push(`${all.length - shown.length} more`);
    return { server, text: `names that are taken: ${shown.join(", ")}` };
  });
}

/** The servers with their tools' own names, in order, for the description of ToolSearch. */
function withToolNames(servers: readonly SnapshotServer[], tools: readonly Prepared[]): DescribedServer[] {
  const names: string[][] = servers.map(() => []);
  // The tool for skills by their address is found by a search; its name says nothing of the server.
  for (const { stored } of tools)
    if (stored.tool !== SKILL_BY_ADDRESS) names[stored.server]?.push(stored.tool);
  return servers.map((server, i) => ({ ...server, tools: names[i] ?? [] }));
}

const DESCRIPTION_CHARS = 250;
/** Codemode scripts and `tool_search` show or rank the whole instructions. */
const INSTRUCTIONS_CHARS = 4_000;

/** The server as main gets it: its texts are cleaned, its name is the name in the configuration. */
function toSnapshotServer(server: CatalogServer, prompts: SnapshotPrompt[] | undefined): SnapshotServer {
  const { name, project, toolsKnown, description, instructions, skillsRun } = server;
  const line = oneLine(description ?? "", DESCRIPTION_CHARS);
  const text = cut(cleanText(instructions ?? "").trim(), INSTRUCTIONS_CHARS);
  return {
    name,
    project,
    toolsKnown,
    ...(skillsRun ? { skillsRun } : {}),
    ...(prompts ? { prompts } : {}),
    ...(line === "" ? {} : { description: line }),
    ...(text === "" ? {} : { instructions: text }),
  };
}

export interface SnapshotLimits {
  limitBytes: number;
  textBytes?: number;
  tools?: number;
  /** The fingerprint, if it is known. */
  source?: Uint8Array | undefined;
}

/** A catalog that is being fitted into the limits. */
interface Fitting {
  servers: readonly SnapshotServer[];
  encode: (tools: readonly Prepared[]) => Uint8Array<ArrayBuffer>;
  /** What is left out, one line each. */
  problems: string[];
}

const namesOf = ({ servers }: Fitting, indexes: Iterable<number>): string =>
  [...indexes].map((i) => servers[i]?.name ?? "").join(", ");

function withinTools(fitting: Fitting, tools: Prepared[], most: number): Prepared[] {
  if (tools.length <= most) return tools;
  const { kept, without } = withFewerServers(tools, {
    sizeOf: () => 1,
    fits: ({ length }) => length <= most,
  });
  const which = `the tools of ${namesOf(fitting, without)} are left out`;
  fitting.problems.push(`the tool catalog exceeds ${most.toLocaleString("en")} tools: ${which}`);
  return kept;
}

function withinText(fitting: Fitting, tools: Prepared[], limitBytes: number): Prepared[] {
  const { tools: short, cut: which } = withShortTexts(tools, fitting.servers.length, limitBytes);
  const limit = `${formatBytes(limitBytes)} of names and descriptions`;
  if (which.size > 0) {
    fitting.problems.push(
      `the tool catalog exceeds ${limit}: descriptions of ${namesOf(fitting, which)} are cut`,
    );
  }
  return short;
}

/** Attempts to fit the schemas. Each attempt builds the index again. */
const ATTEMPTS = 4;

function withinBytes(
  fitting: Fitting,
  tools: readonly Prepared[],
  limitBytes: number,
): Uint8Array<ArrayBuffer> {
  const { servers, encode, problems } = fitting;
  const exceeds = `the tool catalog exceeds ${formatBytes(limitBytes)}`;
  // Tools that have no room even without the index are not tried with it: building the index takes a second.
  const knownBytes = tools.reduce((all, tool) => all + bytesOf(tool), 0);
  let snapshot = knownBytes > 1.5 * limitBytes ? undefined : encode(tools);
  if (snapshot && snapshot.length <= limitBytes) return snapshot;
  let savedBytes = 1.1 * ((snapshot?.length ?? knownBytes) - limitBytes);
  let fewer = withFewerSchemas(tools, servers.length, { limitBytes, savedBytes });
  for (let attempt = 1; ; attempt++) {
    snapshot = encode(fewer.tools);
    if (snapshot.length <= limitBytes || fewer.isLeast || attempt === ATTEMPTS) break;
    savedBytes += 2 * (snapshot.length - limitBytes);
    fewer = withFewerSchemas(tools, servers.length, { limitBytes, savedBytes });
  }
  const report = (gone: readonly number[]): void => {
    const counts = [...fewer.without]
      .filter(([server]) => !gone.includes(server))
      .map(([server, count]) => `${servers[server]?.name} (${count} tools)`);
    if (counts.length > 0) {
      problems.push(`${exceeds}: parameters are left out of tools of ${counts.join(", ")}`);
    }
    if (gone.length > 0) problems.push(`${exceeds}: the tools of ${namesOf(fitting, gone)} are left out`);
  };
  if (snapshot.length <= limitBytes) {
    report([]);
    return snapshot;
  }
  const { kept, without } = withFewerServers(fewer.tools, {
    sizeOf: bytesOf,
    fits: (some) => encode(some).length <= limitBytes,
  });
  report(without);
  return encode(kept);
}

/**
 * Makes the snapshot and the lines about it. A server that lists far too much costs the others nothing: the largest
 * servers lose the ends of their descriptions, then schemas, then their tools. Names are assigned before, so that what
 * is left out changes no name.
 */
export function makeSnapshot(
  catalog: readonly CatalogServer[],
  settings: CatalogSettings,
  limits: SnapshotLimits,
) {
  const { limitBytes, textBytes = LIMITS.snapshotTextBytes, tools: most = LIMITS.snapshotTools } = limits;
  const { tools: listed, collisions, undeclared, repairs } = prepareTools(catalog);
  const prompts = promptCommands(catalog);
  const servers = catalog.map((server, at) => toSnapshotServer(server, prompts.get(at)));
  const made: { last?: Snapshot } = {};
  const encode = (tools: readonly Prepared[]): Uint8Array<ArrayBuffer> => {
    const indexed = tools.map((tool) => tool.indexed);
    const content = {
      settings,
      description: searchToolDescription(withToolNames(servers, tools), settings, tellingNames),
      servers,
      tools: tools.map(({ stored }) => stored),
      index: buildEngine(settings.search, indexed),
    };
    made.last = content;
    return encodeSnapshot(content, crc32, limits.source);
  };
  const fitting: Fitting = { servers, encode, problems: [] };
  const some = withinText(fitting, withinTools(fitting, listed, most), textBytes);
  const plain = withinBytes(fitting, some, limitBytes);
  // Fitted before it is deflated, so that a little text that repeats is no way around the limits. `last` is what fits.
  const { last } = made;
  const deflate = (bytes: Uint8Array): Uint8Array => deflateRawSync(bytes, { level: 3 });
  const snapshot =
    last && last.tools.length > LIMITS.toolsAtStart
      ? encodeSnapshot(last, crc32, limits.source, deflate)
      : plain;
  const notices = [...collisionLines(collisions), ...undeclared];
  return { snapshot, leftOut: fitting.problems, notices, repairs };
}

/** Characters that each description keeps: most often its first sentence. */
const LEAST_CHARS = 160;
/** Lengths that are tried for the descriptions of a server. The first length that is short enough is taken. */
const LENGTHS = [4_000, 2_000, 1_000, 500, 250, LEAST_CHARS];

const NO_SCHEMA = {
  rootKeys: rootKeysOf(ANY_OBJECT),
  schema: encode(ANY_OBJECT),
  words: "[Its parameters are left out here: the servers list too much.]",
};

const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);

/** The most that each may have, so that the sum is within the limit and sizes below the share stay as they are. */
function fairShare(sizes: readonly number[], limit: number): number {
  let left = limit;
  const sorted = sizes.toSorted((a, b) => a - b);
  for (const [i, size] of sorted.entries()) {
    const share = left / (sorted.length - i);
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

/** Sum of the tools' sizes, by server. */
function sizesOf(tools: readonly Prepared[], servers: number, sizeOf: (tool: Prepared) => number): number[] {
  const sizes = Array<number>(servers).fill(0);
  for (const tool of tools) sizes[tool.stored.server] = (sizes[tool.stored.server] ?? 0) + sizeOf(tool);
  return sizes;
}

const textBytes = ({ stored }: Prepared): number =>
  stored.name.length + Buffer.byteLength(stored.tool) + Buffer.byteLength(stored.description);

const withDescription = (tool: Prepared, chars: number): Prepared =>
  tool.stored.description.length <= chars
    ? tool
    : {
        stored: { ...tool.stored, description: cutDescription(tool.stored.description, chars) },
        indexed: { ...tool.indexed, description: tool.indexed.description?.slice(0, chars) ?? "" },
      };

/**
 * Cuts the descriptions of the servers that have the most text. `limitBytes`: for the text of all tools. `cut`: the
 * positions of these servers.
 */
function withShortTexts(
  tools: Prepared[],
  servers: number,
  limitBytes: number = LIMITS.snapshotTextBytes,
): { tools: Prepared[]; cut: Set<number> } {
  const sizes = sizesOf(tools, servers, textBytes);
  const share = fairShare(sizes, limitBytes);
  const chars = new Map<number, number>();
  for (const [server, size] of sizes.entries()) {
    if (size <= share) continue;
    const own = tools.filter(({ stored }) => stored.server === server);
    const fits = (length: number): boolean =>
      sum(own.map((tool) => textBytes(withDescription(tool, length)))) <= share;
    chars.set(server, LENGTHS.find(fits) ?? LEAST_CHARS);
  }
  if (chars.size === 0) return { tools, cut: new Set() };
  return {
    tools: tools.map((tool) =>
      withDescription(tool, chars.get(tool.stored.server) ?? Number.MAX_SAFE_INTEGER),
    ),
    cut: new Set(chars.keys()),
  };
}

/** Rough bytes of one tool in the index. */
const INDEX_BYTES = 500;

/** Rough bytes of one tool in a snapshot. */
const bytesOf = (tool: Prepared): number =>
  INDEX_BYTES + textBytes(tool) + tool.stored.schema.length + (tool.stored.outputSchema?.length ?? 0);

/** Servers that have more than a fair share of half the limit. The other half is for the index. */
function largeServers(tools: readonly Prepared[], servers: number, limitBytes: number): Set<number> {
  const sizes = sizesOf(tools, servers, bytesOf);
  const share = fairShare(sizes, limitBytes / 2);
  return new Set([...sizes.keys()].filter((server) => (sizes[server] ?? 0) > share));
}

function withoutSchema({ stored, indexed }: Prepared): Prepared {
  const { outputSchema: _output, ...rest } = stored;
  const { rootKeys, schema, words } = NO_SCHEMA;
  return {
    stored: { ...rest, rootKeys, schema, description: `${stored.description}\n${words}` },
    indexed: { ...indexed, inputSchema: undefined },
  };
}

function withoutOutputSchema({ stored, indexed }: Prepared): Prepared {
  const { outputSchema: _output, ...rest } = stored;
  return { stored: rest, indexed };
}

/**
 * Leaves out the longest schemas of the largest servers until `savedBytes` are saved. Output schemas go first. `without`:
 * server -> number of its tools without an input schema. `isLeast`: no more schemas can be left out.
 */
function withFewerSchemas(
  tools: readonly Prepared[],
  servers: number,
  { limitBytes, savedBytes }: { limitBytes: number; savedBytes: number },
) {
  const large = largeServers(tools, servers, limitBytes);
  const kept = [...tools];
  const without = new Map<number, number>();
  let saved = 0;
  const leaveOut = (sizeOf: (tool: Prepared) => number, reduce: (tool: Prepared) => Prepared): void => {
    const order = [...kept.keys()]
      .filter((at) => large.has(kept[at]?.stored.server ?? -1))
      .map((at) => ({ at, bytes: sizeOf(kept[at] as Prepared) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes || b.at - a.at);
    for (const { at, bytes } of order) {
      if (saved >= savedBytes) return;
      kept[at] = reduce(kept[at] as Prepared);
      saved += bytes;
    }
  };
  leaveOut(({ stored }) => stored.outputSchema?.length ?? 0, withoutOutputSchema);
  leaveOut(
    ({ stored }) => Math.max(0, stored.schema.length - NO_SCHEMA.schema.length - NO_SCHEMA.words.length),
    (tool) => {
      const { server } = tool.stored;
      without.set(server, (without.get(server) ?? 0) + 1);
      return withoutSchema(tool);
    },
  );
  return { tools: kept, without, isLeast: saved < savedBytes };
}

/** The smallest n for which fits(n) holds. Requires fits(count), and that fits(n) implies fits(n + 1). */
function fewestThatFit(count: number, fits: (leftOut: number) => boolean): number {
  let [least, most] = [0, count];
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (fits(middle)) most = middle;
    else least = middle + 1;
  }
  return least;
}

/**
 * Leaves out all tools of as few servers as possible: the largest first, of equally large ones the last one. `without`:
 * these servers, in the order of the configuration.
 */
function withFewerServers(
  tools: readonly Prepared[],
  { sizeOf, fits }: { sizeOf: (tool: Prepared) => number; fits: (kept: readonly Prepared[]) => boolean },
): { kept: Prepared[]; without: number[] } {
  const servers = tools.reduce((most, { stored }) => Math.max(most, stored.server + 1), 0);
  const sizes = sizesOf(tools, servers, sizeOf);
  const order = [...sizes.keys()]
    .filter((server) => (sizes[server] ?? 0) > 0)
    .sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0) || b - a);
  const keptWithout = (count: number): Prepared[] => {
    const gone = new Set(order.slice(0, count));
    return tools.filter(({ stored }) => !gone.has(stored.server));
  };
  const count = fewestThatFit(order.length, (leftOut) => fits(keptWithout(leftOut)));
  return { kept: keptWithout(count), without: order.slice(0, count).sort((a, b) => a - b) };
}
