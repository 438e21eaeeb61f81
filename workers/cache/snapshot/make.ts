/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the
 * limit. Pure but for the checksum.
 */
import { crc32 } from "node:zlib";
import type { AssignedNames } from "../../../src/shared/naming/names.ts";
import type { CatalogSettings } from "../../../src/shared/protocol/catalog.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { buildEngine } from "../../../src/shared/search/build/build.ts";
import type { SnapshotServer } from "../../../src/shared/snapshot/contract.ts";
import { encodeSnapshot } from "../../../src/shared/snapshot/snapshot.ts";
import { type DescribedServer, searchToolDescription } from "../../../src/shared/text/search-tool.ts";
import { formatBytes } from "../../../src/shared/text/size.ts";
import { cleanText, cut, oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CatalogServer } from "../../shared/tasks.ts";
import { bytesOf, withFewerSchemas, withFewerServers, withShortTexts } from "./fit.ts";
import { type Prepared, prepareTools } from "./prepare-tools.ts";

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

/** What the description of ToolSearch lists: the tools' names at their servers, in order. */
function withToolNames(servers: readonly SnapshotServer[], tools: readonly Prepared[]): DescribedServer[] {
  const names: string[][] = servers.map(() => []);
  for (const { stored } of tools) names[stored.server]?.push(stored.tool);
  return servers.map((server, i) => ({ ...server, tools: names[i] ?? [] }));
}

const DESCRIPTION_CHARS = 250;
/** For codemode scripts and `tool_search`, which show or rank all of it. */
const INSTRUCTIONS_CHARS = 4_000;

/** As main gets it: its words are cleaned, its name is what the configuration calls it. */
function toSnapshotServer(server: CatalogServer): SnapshotServer {
  const { tools: _tools, about: _about, prefix: _prefix, description, instructions, ...rest } = server;
  const line = oneLine(description ?? "", DESCRIPTION_CHARS);
  const text = cut(cleanText(instructions ?? "").trim(), INSTRUCTIONS_CHARS);
  return {
    ...rest,
    ...(line === "" ? {} : { description: line }),
    ...(text === "" ? {} : { instructions: text }),
  };
}

export interface MadeSnapshot {
  snapshot: Uint8Array<ArrayBuffer>;
  /** What it does not hold, because it would exceed a limit, one line each. */
  leftOut: string[];
  /** Tools that are called otherwise than they should be, one line a server. */
  collisions: string[];
  /** What was done to schemas, one line each. */
  repairs: string[];
}

export interface SnapshotLimits {
  limitBytes: number;
  textBytes?: number;
  tools?: number;
  /** What the snapshot is made of, if that can be told. */
  source?: Uint8Array | undefined;
}

/** A catalog on its way into the limits. */
interface Fitting {
  servers: readonly SnapshotServer[];
  encode: (tools: readonly Prepared[]) => Uint8Array<ArrayBuffer>;
  /** What had to be left out, one line each. */
  told: string[];
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
  fitting.told.push(`the tool catalog exceeds ${most.toLocaleString("en")} tools: ${which}`);
  return kept;
}

function withinText(fitting: Fitting, tools: Prepared[], limitBytes: number): Prepared[] {
  const { tools: short, cut: which } = withShortTexts(tools, fitting.servers.length, limitBytes);
  const limit = `${formatBytes(limitBytes)} of names and descriptions`;
  if (which.size > 0) {
    fitting.told.push(
      `the tool catalog exceeds ${limit}: descriptions of ${namesOf(fitting, which)} are cut`,
    );
  }
  return short;
}

/** Attempts to fit, each of which builds the index anew. */
const ATTEMPTS = 4;

function withinBytes(
  fitting: Fitting,
  tools: readonly Prepared[],
  limitBytes: number,
): Uint8Array<ArrayBuffer> {
  const { servers, encode, told } = fitting;
  const exceeds = `the tool catalog exceeds ${formatBytes(limitBytes)}`;
  // What has no room as far as can be told without an index is not tried: the index takes a second.
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
  const tell = (gone: readonly number[]): void => {
    const counts = [...fewer.without]
      .filter(([server]) => !gone.includes(server))
      .map(([server, count]) => `${servers[server]?.name} (${count} tools)`);
    if (counts.length > 0) told.push(`${exceeds}: parameters are left out of tools of ${counts.join(", ")}`);
    if (gone.length > 0) told.push(`${exceeds}: the tools of ${namesOf(fitting, gone)} are left out`);
  };
  if (snapshot.length <= limitBytes) {
    tell([]);
    return snapshot;
  }
  const { kept, without } = withFewerServers(fewer.tools, {
    sizeOf: bytesOf,
    fits: (some) => encode(some).length <= limitBytes,
  });
  tell(without);
  return encode(kept);
}

/**
 * The snapshot, and what is to be told of it. A server that lists far too much costs no other anything: of the
 * largest servers the words are cut, then schemas are left out, then their tools. Names are given before, so that
 * no tool is called otherwise for that.
 */
export function makeSnapshot(
  catalog: readonly CatalogServer[],
  settings: CatalogSettings,
  limits: SnapshotLimits,
): MadeSnapshot {
  const { limitBytes, textBytes = LIMITS.snapshotTextBytes, tools: most = LIMITS.snapshotTools } = limits;
  const { tools: listed, collisions, repairs } = prepareTools(catalog);
  const servers = catalog.map(toSnapshotServer);
  const encode = (tools: readonly Prepared[]): Uint8Array<ArrayBuffer> => {
    const indexed = tools.map((tool) => tool.indexed);
    const content = {
      settings,
      description: searchToolDescription(withToolNames(servers, tools), settings),
      servers,
      tools: tools.map(({ stored }) => stored),
      index: buildEngine(settings.search, indexed),
    };
    return encodeSnapshot(content, crc32, limits.source);
  };
  const fitting: Fitting = { servers, encode, told: [] };
  const some = withinText(fitting, withinTools(fitting, listed, most), textBytes);
  const snapshot = withinBytes(fitting, some, limitBytes);
  return { snapshot, leftOut: fitting.told, collisions: collisionLines(collisions), repairs };
}
