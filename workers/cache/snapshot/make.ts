/**
 * Makes the snapshot of a whole catalog: names the tools, builds the index, and keeps the bytes within the limit. Pure
 * except for the checksum, which is Node's.
 */
import { crc32, deflateRawSync } from "node:zlib";
import type { AssignedNames } from "../../../src/shared/naming/names.ts";
import type { CatalogSettings } from "../../../src/shared/protocol/catalog.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { buildEngine } from "../../../src/shared/search/build/build.ts";
import type { Snapshot, SnapshotPrompt, SnapshotServer } from "../../../src/shared/snapshot/contract.ts";
import { encodeSnapshot } from "../../../src/shared/snapshot/snapshot.ts";
import { type DescribedServer, searchToolDescription } from "../../../src/shared/text/search-tool.ts";
import { formatBytes } from "../../../src/shared/text/size.ts";
import { cleanText, cut, oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CatalogServer, ServerLine } from "../../shared/tasks.ts";
import { bytesOf, withFewerSchemas, withFewerServers, withShortTexts } from "./fit.ts";
import { type Prepared, prepareTools } from "./prepare-tools.ts";
import { promptCommands } from "./prompts.ts";

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
  for (const { stored } of tools) names[stored.server]?.push(stored.tool);
  return servers.map((server, i) => ({ ...server, tools: names[i] ?? [] }));
}

const DESCRIPTION_CHARS = 250;
/** Codemode scripts and `tool_search` show or rank the whole instructions. */
const INSTRUCTIONS_CHARS = 4_000;

/** The server as main gets it: its texts are cleaned, its name is the name in the configuration. */
function toSnapshotServer(server: CatalogServer, prompts: SnapshotPrompt[] | undefined): SnapshotServer {
  const { name, project, toolsKnown, description, instructions } = server;
  const line = oneLine(description ?? "", DESCRIPTION_CHARS);
  const text = cut(cleanText(instructions ?? "").trim(), INSTRUCTIONS_CHARS);
  return {
    name,
    project,
    toolsKnown,
    ...(prompts ? { prompts } : {}),
    ...(line === "" ? {} : { description: line }),
    ...(text === "" ? {} : { instructions: text }),
  };
}

export interface MadeSnapshot {
  snapshot: Uint8Array<ArrayBuffer>;
  /** What is left out because of a limit, one line each. */
  leftOut: string[];
  /** Tools that have other names than wanted, one line for each server. */
  collisions: ServerLine[];
  /** Repairs of schemas. */
  repairs: ServerLine[];
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
): MadeSnapshot {
  const { limitBytes, textBytes = LIMITS.snapshotTextBytes, tools: most = LIMITS.snapshotTools } = limits;
  const { tools: listed, collisions, repairs } = prepareTools(catalog);
  const prompts = promptCommands(catalog);
  const servers = catalog.map((server, at) => toSnapshotServer(server, prompts.get(at)));
  const made: { last?: Snapshot } = {};
  const encode = (tools: readonly Prepared[]): Uint8Array<ArrayBuffer> => {
    const indexed = tools.map((tool) => tool.indexed);
    const content = {
      settings,
      description: searchToolDescription(withToolNames(servers, tools), settings),
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
  return { snapshot, leftOut: fitting.problems, collisions: collisionLines(collisions), repairs };
}
