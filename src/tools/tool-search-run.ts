/**
 * What ToolSearch does when the model calls it: finds tools by name or by words, loads them, and says how to call
 * them and what is missing.
 */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import { findServer, resolveTool, serverNames } from "../catalog/resolve.ts";
import { likelyHits, searchCatalog, toolsNamed } from "../catalog/search.ts";
import type { ToolResult } from "../host.ts";
import { LIMITS } from "../protocol/limits.ts";
import { parseRequest, type SearchRequest } from "../search/request.ts";
import { ownersOf } from "./branch-tools.ts";
import type { ToolSearchHost } from "./tool-search.ts";
import { errorLine, isDisabled, nameLine, reportText, serverNotes, stateNote } from "./tool-search-report.ts";

const EMPTY_QUERY =
  "The query is empty. Write in a few words what the tool should do, or select:name1,name2 for tools by name.";

interface Question {
  request: Exclude<SearchRequest, { kind: "empty" }>;
  limit: number;
  /** As configured; undefined for all. */
  server: string | undefined;
}

interface Found {
  tools: readonly CatalogTool[];
  /** Found, but not to be loaded. */
  more: readonly CatalogTool[];
  notes: readonly string[];
}

/** Names of one request that are looked up: more is a list of everything, not a choice. */
const NAMES = 60;
/** Unknown names whose nearest ones are looked for: each is a walk over all tools. */
const GUESSED = 5;
/** What is repeated of a name that is none. */
const NAME_SHOWN = 80;

const isKnown = (catalog: Catalog, name: string, server: string | undefined): boolean =>
  toolsNamed(catalog, name).some((tool) => server === undefined || tool.server.name === server);

function findByName(catalog: Catalog, names: readonly string[], server: string | undefined): Found {
  const tools = new Set<CatalogTool>();
  const notes: string[] = [];
  const unknown: string[] = [];
  for (const name of names.slice(0, NAMES)) {
    if (!isKnown(catalog, name, server)) unknown.push(name);
    else {
      const resolution = resolveTool(catalog, name, server);
      if (resolution.kind === "tool") tools.add(resolution.tool);
      else if (resolution.kind === "several") for (const tool of resolution.tools) tools.add(tool);
    }
  }
  unknown.forEach((name, at) => {
    const resolution = at < GUESSED ? resolveTool(catalog, name, server) : undefined;
    const near = resolution?.kind === "unknown" ? resolution.nearest.map((tool) => tool.name) : [];
    const shown = name.slice(0, NAME_SHOWN);
    notes.push(`No such tool: ${shown}.${near.length > 0 ? ` Nearest: ${near.join(", ")}` : ""}`);
  });
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
  // Tools that the query names count beside the limit: leaving one of them out is never what was meant.
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(limit, named), LIMITS.searchResultsMost);
  const tools = likelyHits(hits.slice(0, most)).map(({ tool }) => tool);
  const more = hits.slice(tools.length).map(({ tool }) => tool);
  const notes = nameLine("No tool matches", unmatched);
  if (hits.length === 0 && unmatched.length === 0 && catalog.tools.length > 0) {
    const elsewhere = server !== undefined && searchCatalog(catalog, text, 1).hits.length > 0;
    notes.push(
      elsewhere
        ? `No tool of ${server} matches. Tools of other servers do: search without server.`
        : "The query has no word that tells tools apart. Say what the tool should do.",
    );
  }
  return { tools, more, notes };
}

const find = (catalog: Catalog, { request, limit, server }: Question): Found =>
  request.kind === "select"
    ? findByName(catalog, request.names, server)
    : findByWords(catalog, request.text, limit, server);

/** Names whose reasons one answer gives. */
const REASONS = 10;

/** Of names that are no tool: those that the configuration keeps from being one, with the reason. */
async function reasonsFor(host: ToolSearchHost, { request, server }: Question): Promise<string[]> {
  if (request.kind !== "select") return [];
  const catalog = host.catalog();
  const unknown = request.names.slice(0, NAMES).filter((name) => !isKnown(catalog, name, server));
  const reasons = await Promise.all(
    unknown.slice(0, REASONS).map(async (name) => {
      const error = await host.whyMissing(name);
      return error ? [`${name.slice(0, NAME_SHOWN)}: ${errorLine(error)}`] : [];
    }),
  );
  return reasons.flat();
}

/** Whether the tools that are not known yet could change the answer. */
function mustWait(host: ToolSearchHost, { request, server }: Question): boolean {
  if (server !== undefined)
    return !host.servers().some(({ name, toolsKnown }) => name === server && toolsKnown);
  if (request.kind === "words") return true;
  const catalog = host.catalog();
  return request.names.slice(0, NAMES).some((name) => !isKnown(catalog, name, undefined));
}

interface Settled {
  pending: string[];
  problem: string[];
}

/** Without a worker the search still answers from what is known, and says what is wrong. */
async function settled(
  host: ToolSearchHost,
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

const answer = (text: string, loaded: readonly CatalogTool[] = []): ToolResult => ({
  content: [{ type: "text", text }],
  details: { loaded: loaded.map(({ name }) => name), owners: ownersOf(loaded) },
});

export async function runToolSearch(
  host: ToolSearchHost,
  params: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const query = typeof params.query === "string" ? params.query : "";
  const request = parseRequest(query);
  if (request.kind === "empty") return answer(EMPTY_QUERY);
  const asked = typeof params.server === "string" && params.server !== "" ? params.server : undefined;
  const server = asked === undefined ? undefined : findServer(asked, serverNames(host));
  if (asked !== undefined && server === undefined) {
    const [servers = "Servers: none"] = nameLine("Servers", serverNames(host));
    return answer(`No server named ${asked}. ${servers}`);
  }
  const question: Question = { request, limit: limitOf(params.limit), server };
  const { pending, problem } = mustWait(host, question)
    ? await settled(host, signal, server)
    : { pending: [], problem: [] };
  const catalog = host.catalog();
  const startedAt = performance.now();
  const { tools, more, notes } = find(catalog, question);
  const tookMs = performance.now() - startedAt;
  // Not the query itself: nobody knows what a model writes into it.
  host.log(`scored ${catalog.tools.length} tools in ${tookMs.toFixed(2)} ms, found ${tools.length}`);
  const { active, refused } = host.activate(tools);
  const servers = host.servers().filter(({ name }) => server === undefined || name === server);
  const waiting = pending.filter((name) => server === undefined || name === server);
  const text = reportText({
    loaded: active,
    refused,
    more,
    notes: [
      ...notes,
      ...(await reasonsFor(host, question)),
      ...serverNotes(servers, waiting, new Set(active.map((tool) => tool.server.name))),
      ...(server === undefined ? [] : servers.filter(isDisabled).flatMap(stateNote)),
      ...problem,
    ],
  });
  return answer(text, active);
}
