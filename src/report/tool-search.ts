/**
 * A call of ToolSearch: finds tools by name or by words, loads them, and says how to call them and what is missing. Pi's
 * ToolSearch and that of `pi-mcp-threads serve` answer by it.
 */
import { type Catalog, type CatalogTool, createSlices, holdsToolsOf } from "../catalog/catalog.ts";
import {
  findServer,
  hasTool,
  likelyHits,
  nearestServer,
  nearestTools,
  resolveTool,
  searchCatalog,
  serverNames,
  serverOfName,
} from "../catalog/search.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { parseRequest, type SearchRequest } from "../shared/search/search.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import {
  errorLine,
  isDisabled,
  nameLine,
  noServer,
  reportText,
  serverNotes,
  stateNote,
  type WhyMissing,
} from "./search.ts";
import { serverName } from "./server-name.ts";

export interface Activation {
  /** Declared to the model from the next request on. */
  active: readonly CatalogTool[];
  /** Not accepted by Pi, for example because of `--tools`. */
  refused: readonly CatalogTool[];
}

/** The session as a search sees it. */
export interface SearchHost {
  /**
   * Waits, within limits, until the tools of all servers, or of the named ones, are known. Answers the names of the
   * servers that are still connecting.
   */
  settle(signal: AbortSignal | undefined, servers?: string[]): Promise<string[]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  /** Declares tools to the model from the next request on. */
  activate(tools: readonly CatalogTool[]): Activation;
  log(message: string): void;
  whyMissing: WhyMissing;
  /** As of `Report`. */
  loadedText?: string;
}

export interface SearchAnswer {
  text: string;
  loaded: readonly CatalogTool[];
  /** The query selects tools by their names. */
  isSelect: boolean;
}

const EMPTY_QUERY =
  "The query is empty. Write in a few words what the tool should do, or select:name1,name2 for tools by name.";

interface Question {
  request: Exclude<SearchRequest, { kind: "empty" }>;
  limit: number;
  /** Name of the server as it is configured; undefined for all servers. */
  server: string | undefined;
}

interface Found {
  tools: readonly CatalogTool[];
  /** Tools that were found and are not loaded. */
  more: readonly CatalogTool[];
  notes: readonly string[];
}

/** Names of one request that are looked up. A longer list asks for everything and chooses nothing. */
const NAMES = 60;
/** Unknown names for which the nearest names are looked up. Each of them is a walk over all tools. */
const GUESSED = 5;
/** Longest part of an unknown name that the answer repeats. */
const NAME_SHOWN = 80;

/** The names that no tool has. Works in slices, because a name that thousands of tools share takes time. */
async function unknownNames(
  catalog: Catalog,
  names: readonly string[],
  server: string | undefined,
): Promise<string[]> {
  const slices = createSlices({ steps: 1 });
  const unknown: string[] = [];
  for (const name of names.slice(0, NAMES)) {
    await slices.step();
    if (!hasTool(catalog, name, server)) unknown.push(name);
  }
  return unknown;
}

async function findByName(
  catalog: Catalog,
  names: readonly string[],
  server: string | undefined,
): Promise<Found> {
  const tools = new Set<CatalogTool>();
  const notes: string[] = [];
  const unknown: string[] = [];
  const slices = createSlices({ steps: 1 });
  for (const name of names.slice(0, NAMES)) {
    await slices.step();
    let resolution = resolveTool(catalog, name, server);
    if (resolution.kind === "unknown" && server !== undefined) {
      resolution = resolveTool(catalog, name);
      const others = resolution.kind === "several" ? resolution.tools : [];
      // A name with its server says which one is meant, whatever stands beside it.
      if (resolution.kind === "tool" && !serverOfName(name, [resolution.tool.server.name]))
        others.push(resolution.tool);
      const lead = `${serverName(server)} has no ${oneLine(name, NAME_SHOWN)}. Others have`;
      notes.push(
        ...nameLine(
          lead,
          others.map((tool) => tool.name),
        ),
      );
      if (others.length > 0) continue;
    }
    if (resolution.kind === "unknown") unknown.push(name);
    else if (resolution.kind === "tool") tools.add(resolution.tool);
    else for (const tool of resolution.tools) tools.add(tool);
  }
  for (const [at, name] of unknown.entries()) {
    const near = at < GUESSED ? await nearestTools(catalog, name, server) : [];
    const shown = name.slice(0, NAME_SHOWN);
    const nearest = near.map((tool) => tool.name).join(", ");
    notes.push(`No such tool: ${shown}.${nearest === "" ? "" : ` Nearest: ${nearest}`}`);
  }
  if (names.length > NAMES) {
    notes.push(`${names.length - NAMES} more names were not looked up, ${NAMES} at a time.`);
  }
  const all = [...tools];
  const most = LIMITS.searchResultsMost;
  const beyond = all.slice(most).map((tool) => tool.name);
  return {
    tools: all.slice(0, most),
    more: [],
    notes: [...nameLine(`Not loaded, ${most} at a time`, beyond), ...notes],
  };
}

function findByWords(catalog: Catalog, text: string, limit: number, server: string | undefined): Found {
  const { hits, unmatched } = searchCatalog(catalog, text, limit + LIMITS.searchNamesMore, server);
  // Tools that the query names are loaded beyond the limit: a query never means to leave one of them out.
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(limit, named), LIMITS.searchResultsMost);
  const tools = likelyHits(hits.slice(0, most)).map(({ tool }) => tool);
  const more = hits.slice(tools.length).map(({ tool }) => tool);
  const notes = nameLine("No tool matches", unmatched);
  if (hits.length === 0 && unmatched.length === 0 && catalog.count > 0) {
    const elsewhere = server !== undefined && searchCatalog(catalog, text, 1).hits.length > 0;
    notes.push(
      elsewhere
        ? `No tool of ${server} matches. Tools of other servers do: search without server.`
        : "The query has no word that tells tools apart. Say what the tool should do.",
    );
  }
  return { tools, more, notes };
}

const find = async (catalog: Catalog, { request, limit, server }: Question): Promise<Found> =>
  request.kind === "select"
    ? findByName(catalog, request.names, server)
    : findByWords(catalog, request.text, limit, server);

/** The same tools in the newest catalog, which may have changed during the search. */
const stillThere = (tools: readonly CatalogTool[], before: Catalog, now: Catalog): readonly CatalogTool[] =>
  before === now ? tools : tools.flatMap((tool) => now.get(tool.name) ?? []);

/** Names for which one answer gives a reason. */
const REASONS = 10;

/** A line for each unknown name that the configuration explains, for example a tool that a rule hides. */
async function reasonsFor(host: SearchHost, { request, server }: Question): Promise<string[]> {
  if (request.kind !== "select") return [];
  const unknown = await unknownNames(host.catalog(), request.names, server);
  const reasons = await Promise.all(
    unknown.slice(0, REASONS).map(async (name) => {
      const error = await host.whyMissing(name);
      return error ? [`${name.slice(0, NAME_SHOWN)}: ${errorLine(error)}`] : [];
    }),
  );
  return reasons.flat();
}

/** Whether tools that are not known yet could change the answer. */
async function mustWait(host: SearchHost, { request, server }: Question): Promise<boolean> {
  const catalog = host.catalog();
  if (server !== undefined) {
    const hasListed = host.servers().some(({ name, toolsKnown }) => name === server && toolsKnown);
    if (!hasListed || !holdsToolsOf(catalog, server)) return true;
  }
  if (request.kind === "words") return server === undefined;
  return (await unknownNames(catalog, request.names, server)).length > 0;
}

interface Settled {
  pending: string[];
  problem: string[];
}

/** Without a worker the search answers from the known tools, and says what is wrong. */
async function settled(
  host: SearchHost,
  signal: AbortSignal | undefined,
  server: string | undefined,
): Promise<Settled> {
  try {
    const pending = await host.settle(signal, server === undefined ? undefined : [server]);
    return { pending, problem: [] };
  } catch (error) {
    const known = error instanceof Error ? error : { message: String(error) };
    return { pending: [], problem: [errorLine(known)] };
  }
}

function limitOf(value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1) return LIMITS.searchResults;
  return Math.min(value, LIMITS.searchResultsMost);
}

export async function findTools(
  host: SearchHost,
  params: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<SearchAnswer> {
  const answer = (text: string): SearchAnswer => ({ text, loaded: [], isSelect: false });
  const query = typeof params.query === "string" ? params.query : "";
  const request = parseRequest(query);
  if (request.kind === "empty") return answer(EMPTY_QUERY);
  const asked = typeof params.server === "string" && params.server !== "" ? params.server : undefined;
  let names = serverNames(host);
  let exact = asked === undefined ? undefined : findServer(asked, names);
  if (asked !== undefined && exact === undefined) {
    // A file may name the server that nobody has read yet.
    await settled(host, signal, asked);
    names = serverNames(host);
    exact = findServer(asked, names);
  }
  const server = exact ?? (asked === undefined ? undefined : await nearestServer(asked, names));
  if (asked !== undefined && server === undefined) return answer(noServer(asked, names, host.catalog()));
  const question: Question = { request, limit: limitOf(params.limit), server };
  const { pending, problem } = (await mustWait(host, question))
    ? await settled(host, signal, server)
    : { pending: [], problem: [] };
  const catalog = host.catalog();
  const startedAt = performance.now();
  const { tools, more, notes } = await find(catalog, question);
  const tookMs = performance.now() - startedAt;
  // The log does not hold the query, because a model may write anything into it.
  host.log(`scored ${catalog.count} tools in ${tookMs.toFixed(2)} ms, found ${tools.length}`);
  const { active, refused } = host.activate(stillThere(tools, catalog, host.catalog()));
  const servers = host.servers().filter(({ name }) => server === undefined || name === server);
  const waiting = pending.filter((name) => server === undefined || name === server);
  const text = reportText({
    loaded: active,
    loadedText: host.loadedText,
    refused,
    more,
    everywhere: server === undefined,
    notes: [
      ...(exact === server ? [] : [`No server of that name: searched ${server}.`]),
      ...notes,
      ...(await reasonsFor(host, question)),
      ...serverNotes(servers, waiting, new Set(active.map((tool) => tool.server.name))),
      ...(server === undefined ? [] : servers.filter(isDisabled).flatMap(stateNote)),
      ...problem,
    ],
  });
  return { text, loaded: active, isSelect: request.kind === "select" };
}
