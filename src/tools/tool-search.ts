/**
 * The ToolSearch tool: finds MCP tools for the model, loads them, and says how to call them. Its
 * declaration changes at most once a session, since any changed byte costs the user their prompt cache.
 */
import { type Catalog, type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import type { PiTool, ToolResult } from "../host.ts";
import { describeError, describeErrorOf } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { ServerStatus } from "../protocol/types.ts";
import { type ParsedQuery, parseQuery } from "../search/query.ts";
import type { Activation } from "./registrar.ts";
import { firstSentence, parameterList } from "./signature.ts";

export const TOOL_SEARCH = "ToolSearch";

export interface ToolSearchHost {
  /** Waits, within limits, until the tools of all servers are known. Answers the servers that are still connecting. */
  settle(signal: AbortSignal | undefined): Promise<string[]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  activate(tools: readonly CatalogTool[]): Activation;
  log(message: string): void;
}

const PARAMETERS = {
  type: "object",
  properties: {
    query: {
      type: "string",
      description: "Keywords for what the tool should do, or select:name1,name2 for exact tool names.",
    },
  },
  required: ["query"],
  additionalProperties: false,
};

const SERVERS_SHOWN = 50;

/** `servers`: in the order of the configuration. */
export function toolSearchDescription(servers: readonly { name: string; description?: string }[]): string {
  const head =
    "Finds and loads tools of the connected MCP servers. They are not declared until this tool has loaded them; then call them by name.";
  if (servers.length === 0) return head;
  const lines = servers
    .slice(0, SERVERS_SHOWN)
    .map(({ name, description }) => (description ? `- ${name}: ${firstSentence(description)}` : `- ${name}`));
  if (servers.length > SERVERS_SHOWN) lines.push(`- and ${servers.length - SERVERS_SHOWN} more`);
  return `${head}\nServers:\n${lines.join("\n")}`;
}

interface Found {
  tools: CatalogTool[];
  notes: string[];
}

function find(catalog: Catalog, parsed: Exclude<ParsedQuery, { kind: "empty" }>): Found {
  if (parsed.kind === "select") {
    const tools = parsed.names.map((name) => catalog.get(name));
    const unknown = parsed.names.filter((_, i) => tools[i] === undefined);
    const known = tools.filter((tool) => tool !== undefined);
    const beyond = known.slice(LIMITS.searchResults).map((tool) => tool.name);
    return {
      tools: known.slice(0, LIMITS.searchResults),
      notes: [
        ...(beyond.length > 0 ? [`Not loaded, ${LIMITS.searchResults} at a time: ${beyond.join(", ")}`] : []),
        ...(unknown.length > 0 ? [`No such tool: ${unknown.join(", ")}`] : []),
      ],
    };
  }
  const { tools, unmatched } = catalog.search(parsed.terms, LIMITS.searchResults);
  return { tools, notes: unmatched.length > 0 ? [`No tool matches: ${unmatched.join(", ")}`] : [] };
}

function serverNotes(servers: readonly ServerStatus[], pending: readonly string[]): string[] {
  const failed = servers.filter((server) => server.error && !server.toolsKnown);
  return [
    ...(pending.length > 0 ? [`Still connecting, search again later: ${pending.join(", ")}`] : []),
    ...failed.map(
      ({ name, error }) => `Not available: ${name}: ${error ? describeErrorOf(name, error) : ""}`,
    ),
  ];
}

const signatureLine = (tool: CatalogTool): string =>
  `- ${tool.name}${parameterList(inputSchemaOf(tool))} - ${firstSentence(tool.description)}`;

function report(activation: Activation, notes: readonly string[]): string {
  const lines: string[] = [];
  if (activation.active.length > 0) {
    lines.push(
      "Loaded. Call them by name from your next message on:",
      ...activation.active.map(signatureLine),
    );
  }
  if (activation.refused.length > 0) {
    const names = activation.refused.map((tool) => tool.name).join(", ");
    lines.push(`Found, but Pi does not allow them in this session (--tools): ${names}`);
  }
  if (lines.length === 0) lines.push("No tools found.");
  return [...lines, ...notes].join("\n");
}

/** Without a worker the search still answers from what is known, and says what is wrong. */
async function settled(
  host: ToolSearchHost,
  signal: AbortSignal | undefined,
): Promise<{ pending: string[]; problem: string[] }> {
  try {
    return { pending: await host.settle(signal), problem: [] };
  } catch (error) {
    const known = error instanceof Error ? error : { message: String(error) };
    return { pending: [], problem: [describeError(known)] };
  }
}

export function createToolSearch(description: string, host: ToolSearchHost): PiTool {
  const answer = (text: string, loaded: string[]): ToolResult => ({
    content: [{ type: "text", text }],
    details: { loaded },
  });
  return {
    name: TOOL_SEARCH,
    label: TOOL_SEARCH,
    description,
    promptSnippet: "Find and load MCP tools",
    parameters: PARAMETERS,
    exposure: "model-only",
    async execute(_callId, params, signal) {
      const query = typeof params.query === "string" ? params.query : "";
      const parsed = parseQuery(query);
      if (parsed.kind === "empty")
        return answer("The query is empty. Write keywords, or select:name1,name2.", []);
      const { pending, problem } = await settled(host, signal);
      const catalog = host.catalog();
      const startedAt = performance.now();
      const found = find(catalog, parsed);
      const tookMs = performance.now() - startedAt;
      host.log(
        `scored ${catalog.tools.length} tools for ${JSON.stringify(query)} in ${tookMs.toFixed(2)} ms`,
      );
      const activation = host.activate(found.tools);
      const notes = [...found.notes, ...serverNotes(host.servers(), pending), ...problem];
      return answer(
        report(activation, notes),
        activation.active.map((tool) => tool.name),
      );
    },
  };
}
