/**
 * The ToolSearch tool: finds MCP tools for the model, loads them, and says how to call them. Its
 * declaration changes at most once a session, since any changed byte costs the user their prompt cache;
 * tool-search-description.ts makes it.
 */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import { findServer, resolveTool } from "../catalog/resolve.ts";
import type { PiTool, ToolResult } from "../host.ts";
import { describeError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { ServerStatus } from "../protocol/types.ts";
import { parseRequest, type SearchRequest } from "../search/request.ts";
import type { Activation } from "./registrar.ts";
import { createRenderers } from "./render.ts";
import { nameLine, reportText, serverNotes, TOOL_SEARCH, type WhyMissing } from "./tool-search-report.ts";

export interface ToolSearchHost {
  /** Waits, within limits, until the tools of all servers are known. Answers the servers that are still connecting. */
  settle(signal: AbortSignal | undefined): Promise<string[]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  activate(tools: readonly CatalogTool[]): Activation;
  log(message: string): void;
  whyMissing: WhyMissing;
}

const PARAMETERS = {
  type: "object",
  properties: {
    query: {
      type: "string",
      description: "What the tool should do, in a few words, or select:name1,name2 for tools by name.",
    },
    limit: {
      type: "integer",
      minimum: 1,
      maximum: LIMITS.searchResultsMost,
      description: `Tools to load at most, ${LIMITS.searchResults} by default.`,
    },
    server: { type: "string", description: "Only tools of this server." },
  },
  required: ["query"],
  additionalProperties: false,
};

/** Below this share of the best score a tool is named, not loaded: it costs 0.4 points and saves one tool in four. */
const WORTH_LOADING = 0.5;

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

function findByName(catalog: Catalog, names: readonly string[], server: string | undefined): Found {
  const tools = new Set<CatalogTool>();
  const notes: string[] = [];
  for (const name of names) {
    const resolution = resolveTool(catalog, name, server);
    if (resolution.kind === "tool") tools.add(resolution.tool);
    else if (resolution.kind === "several") for (const tool of resolution.tools) tools.add(tool);
    else {
      const near = resolution.nearest.map((tool) => tool.name);
      notes.push(`No such tool: ${name}.${near.length > 0 ? ` Nearest: ${near.join(", ")}` : ""}`);
    }
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
  const { hits, unmatched } = catalog.search(text, limit + LIMITS.searchNamesMore, server);
  const cutoff = (hits[0]?.score ?? 0) * WORTH_LOADING;
  // Tools that the query names count beside the limit: leaving one of them out is never what was meant.
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(limit, named), LIMITS.searchResultsMost);
  const loaded = hits.slice(0, most).filter(({ score }) => score >= cutoff);
  const tools = loaded.map(({ tool }) => tool);
  const more = hits.slice(tools.length).map(({ tool }) => tool);
  const notes = nameLine("No tool matches", unmatched);
  if (hits.length === 0 && unmatched.length === 0 && catalog.tools.length > 0) {
    notes.push("The query has no word that tells tools apart. Say what the tool should do.");
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
  const unknown = request.names.filter((name) => resolveTool(catalog, name, server).kind === "unknown");
  const reasons = await Promise.all(
    unknown.slice(0, REASONS).map(async (name) => {
      const error = await host.whyMissing(name);
      return error ? [`${name}: ${describeError(error)}`] : [];
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
  return request.names.some((name) => resolveTool(catalog, name).kind === "unknown");
}

interface Settled {
  pending: string[];
  problem: string[];
}

/** Without a worker the search still answers from what is known, and says what is wrong. */
async function settled(host: ToolSearchHost, signal: AbortSignal | undefined): Promise<Settled> {
  try {
    return { pending: await host.settle(signal), problem: [] };
  } catch (error) {
    const known = error instanceof Error ? error : { message: String(error) };
    return { pending: [], problem: [describeError(known)] };
  }
}

function limitOf(value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1) return LIMITS.searchResults;
  return Math.min(value, LIMITS.searchResultsMost);
}

const serverNames = (host: ToolSearchHost): string[] => [
  ...new Set([...host.servers(), ...host.catalog().servers].map(({ name }) => name)),
];

export function createToolSearch(description: string, host: ToolSearchHost): PiTool {
  const answer = (text: string, loaded: string[] = []): ToolResult => ({
    content: [{ type: "text", text }],
    details: { loaded },
  });
  return {
    name: TOOL_SEARCH,
    label: TOOL_SEARCH,
    ...createRenderers(TOOL_SEARCH),
    description,
    promptSnippet: "Find and load MCP tools",
    parameters: PARAMETERS,
    exposure: "model-only",
    annotations: { readOnlyHint: true, openWorldHint: false },
    reachesTools: () => "all",
    async execute(_callId, params, signal) {
      const query = typeof params.query === "string" ? params.query : "";
      const request = parseRequest(query);
      if (request.kind === "empty") return answer(EMPTY_QUERY);
      const asked = typeof params.server === "string" && params.server !== "" ? params.server : undefined;
      const server = asked === undefined ? undefined : findServer(asked, serverNames(host));
      if (asked !== undefined && server === undefined) {
        return answer(`No server named ${asked}. Servers: ${serverNames(host).join(", ") || "none"}`);
      }
      const question: Question = { request, limit: limitOf(params.limit), server };
      const { pending, problem } = mustWait(host, question)
        ? await settled(host, signal)
        : { pending: [], problem: [] };
      const catalog = host.catalog();
      const startedAt = performance.now();
      const { tools, more, notes } = find(catalog, question);
      const tookMs = performance.now() - startedAt;
      host.log(
        `scored ${catalog.tools.length} tools for ${JSON.stringify(query)} in ${tookMs.toFixed(2)} ms`,
      );
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
          ...serverNotes(servers, waiting),
          ...problem,
        ],
      });
      return answer(
        text,
        active.map((tool) => tool.name),
      );
    },
  };
}
