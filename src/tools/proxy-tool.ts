/**
 * The one tool `mcp`, on request (`settings.proxyTool`), for the smallest prompt: it finds, describes and
 * calls every MCP tool through its own parameters. Same catalog, ranking and calls as ToolSearch and the
 * tools it loads.
 */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import { findServer, resolveTool, serverOfName } from "../catalog/resolve.ts";
import type { PiContext, PiTool, ToolResult, ToolUpdate } from "../host.ts";
import { describeError, describeErrorOf, fromWireError, ThreadsError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { plainToolName } from "../protocol/names.ts";
import type { ServerStatus } from "../protocol/types.ts";
import { compilePattern, PatternError } from "../search/regex.ts";
import { describeTool, parameterLines } from "./describe-tool.ts";
import { type CallTool, createMcpTool } from "./mcp-tool.ts";
import { createRenderers } from "./render.ts";
import { firstSentence } from "./signature.ts";
import { estimateTokens } from "./tool-search-description.ts";
import { nameLine, PROXY_TOOL, serverNotes, stateNote, type WhyMissing } from "./tool-search-report.ts";

export interface ProxyHost {
  /** Waits, within limits, until the tools of all servers are known. Answers the servers that are still connecting. */
  settle(signal: AbortSignal | undefined): Promise<string[]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  call: CallTool;
  /** Settles when the server has connected or failed. */
  connect(server: string): Promise<void>;
  whyMissing: WhyMissing;
}

const PARAMETERS = {
  type: "object",
  properties: {
    tool: { type: "string", description: "Tool to call" },
    args: {
      anyOf: [{ type: "object", additionalProperties: true }, { type: "string" }],
      description: "Its arguments: object or JSON string",
    },
    connect: { type: "string", description: "Server to connect" },
    describe: { type: "string", description: "Tool to describe" },
    search: { type: "string", description: "Words for what a tool should do" },
    server: { type: "string", description: "List this server's tools, or search and call only there" },
    regex: { type: "boolean", description: "search is a regular expression" },
    includeSchemas: { type: "boolean", description: "Parameters in search results, default true" },
  },
  additionalProperties: false,
};

const HEAD =
  "Calls tools of MCP servers. First find one with search or server, then call it with tool and args. Without parameters: status. If several are given, the first of tool, connect, describe, search, server counts.";
const SERVER_TOKENS = 80;

/** `servers`: in the order of the configuration. Within a token budget, so that the declaration stays small. */
export function proxyDescription(servers: readonly { name: string }[]): string {
  const shown: string[] = [];
  let left = SERVER_TOKENS;
  for (const { name } of servers) {
    left -= estimateTokens(name) + 1;
    if (left < 0) break;
    shown.push(name);
  }
  const rest = servers.length - shown.length;
  if (servers.length === 0) return HEAD;
  return `${HEAD} Servers: ${[...shown, ...(rest > 0 ? [`${rest} more`] : [])].join(", ")}.`;
}

/** Lines that one answer lists. */
const LISTED = 300;
/** Results of a regular expression. */
const MATCHES = 50;
const WORTH_SHOWING = 0.5;
/** Main must not stall: a scan of all tools pauses after this long. */
const SLICE_MS = 3;

class Refusal extends Error {}

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

function parseArgs(args: unknown): Record<string, unknown> {
  let value = args;
  if (typeof value === "string") {
    try {
      value = value.trim() === "" ? {} : JSON.parse(value);
    } catch (error) {
      throw new Refusal(`args is no valid JSON: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Refusal("args must be a JSON object.");
  return value as Record<string, unknown>;
}

const serverNames = (host: ProxyHost): string[] => [
  ...new Set([...host.servers(), ...host.catalog().servers].map(({ name }) => name)),
];

function knownServer(host: ProxyHost, written: string): string {
  const found = findServer(written, serverNames(host));
  if (found !== undefined) return found;
  throw new Refusal(`No server named ${written}. Servers: ${serverNames(host).join(", ") || "none"}.`);
}

/** Waits only if the tool is not known yet. Throws a Refusal with the nearest names. */
async function toolNamed(
  host: ProxyHost,
  name: string,
  server: string | undefined,
  signal: AbortSignal | undefined,
): Promise<CatalogTool> {
  let resolution = resolveTool(host.catalog(), name, server);
  if (resolution.kind === "unknown") {
    await host.settle(signal);
    resolution = resolveTool(host.catalog(), name, server);
  }
  if (resolution.kind === "tool") return resolution.tool;
  if (resolution.kind === "several") {
    const names = resolution.tools.map((tool) => tool.name).join(", ");
    throw new Refusal(`${name} is the name of several tools: ${names}. Use one of these names.`);
  }
  const error = await host.whyMissing(server === undefined ? name : plainToolName(server, name));
  if (error) throw fromWireError(error);
  const owner = server ?? serverOfName(name, serverNames(host));
  throw new Refusal(
    [
      `No tool named ${name}.`,
      ...nameLine(
        "Nearest",
        resolution.nearest.map((tool) => tool.name),
      ),
      ...stateNote(host.servers().find((status) => status.name === owner)),
    ].join("\n"),
  );
}

function toolLines(tool: CatalogTool, withParameters: boolean): string[] {
  const line = `${tool.name} - ${firstSentence(tool.description)}`;
  return withParameters ? [line, ...parameterLines(tool).map((parameter) => `  ${parameter}`)] : [line];
}

/** Name and description of each tool, in slices, so that main never stalls. */
async function matching(tools: readonly CatalogTool[], source: string): Promise<CatalogTool[]> {
  const pattern = compilePattern(source);
  const found: CatalogTool[] = [];
  let sliceEnds = performance.now() + SLICE_MS;
  for (const tool of tools) {
    if (pattern.test(tool.name) || pattern.test(tool.tool) || pattern.test(firstSentence(tool.description))) {
      found.push(tool);
    }
    if (performance.now() < sliceEnds) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sliceEnds = performance.now() + SLICE_MS;
  }
  return found;
}

interface Results {
  tools: readonly CatalogTool[];
  notes: readonly string[];
}

async function byPattern(catalog: Catalog, source: string, server: string | undefined): Promise<Results> {
  const within = catalog.tools.filter((tool) => server === undefined || tool.server.name === server);
  try {
    const tools = await matching(within, source);
    const beyond = tools.length - MATCHES;
    return {
      tools: tools.slice(0, MATCHES),
      notes: beyond > 0 ? [`and ${beyond} more: make the pattern narrower.`] : [],
    };
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new Refusal(`The pattern cannot be used: ${error.message}.`);
  }
}

/** Words are OR'd and ranked; what scores below half of the best is left out. */
function byWords(catalog: Catalog, words: string, server: string | undefined): Results {
  const { hits, unmatched } = catalog.search(words, LIMITS.searchResultsMost, server);
  const cutoff = (hits[0]?.score ?? 0) * WORTH_SHOWING;
  return {
    tools: hits.filter(({ score }) => score >= cutoff).map(({ tool }) => tool),
    notes: nameLine("No tool matches", unmatched),
  };
}

interface Call {
  callId: string;
  params: Record<string, unknown>;
  signal: AbortSignal | undefined;
  onUpdate: ToolUpdate | undefined;
  ctx: PiContext;
}

async function callMode(
  host: ProxyHost,
  name: string,
  { callId, params, ...rest }: Call,
): Promise<ToolResult> {
  const server = text(params.server);
  const within = server === undefined ? undefined : knownServer(host, server);
  const args = parseArgs(params.args);
  const tool = await toolNamed(host, name, within, rest.signal);
  return createMcpTool(tool, host.call).execute(callId, args, rest.signal, rest.onUpdate, rest.ctx);
}

function serverLine(status: ServerStatus): string {
  const tools = status.toolsKnown ? counted(status.toolCount, "tool") : "tools unknown";
  const error = status.error ? `: ${describeErrorOf(status.name, status.error)}` : "";
  return `${status.name}: ${status.state}, ${tools}${error}`;
}

function statusMode(host: ProxyHost): string {
  const servers = host.servers();
  const connected = servers.filter(({ state }) => state === "connected").length;
  const tools = servers.reduce((total, { toolCount }) => total + toolCount, 0);
  const head = `MCP: ${connected}/${counted(servers.length, "server")}, ${counted(tools, "tool")}`;
  return [head, ...servers.map(serverLine)].join("\n");
}

async function connectMode(host: ProxyHost, written: string): Promise<string> {
  const server = knownServer(host, written);
  await host.connect(server);
  const status = host.servers().find(({ name }) => name === server);
  if (status?.state !== "connected")
    throw new Refusal(status ? serverLine(status) : `${server}: not connected`);
  return serverLine(status);
}

async function searchMode(host: ProxyHost, words: string, { params, signal }: Call): Promise<string> {
  const written = text(params.server);
  const server = written === undefined ? undefined : knownServer(host, written);
  const pending = await host.settle(signal);
  const catalog = host.catalog();
  const results =
    params.regex === true ? await byPattern(catalog, words, server) : byWords(catalog, words, server);
  const lines = results.tools.flatMap((tool) => toolLines(tool, params.includeSchemas !== false));
  const found = lines.length > 0 ? lines : ["No tools found."];
  return [...found, ...results.notes, ...serverNotes(host.servers(), pending)].join("\n");
}

async function serverMode(host: ProxyHost, written: string, { params, signal }: Call): Promise<string> {
  const server = knownServer(host, written);
  const status = host.servers().find(({ name }) => name === server);
  if (!status?.toolsKnown) await host.settle(signal);
  const tools = host.catalog().tools.filter((tool) => tool.server.name === server);
  const lines = tools.slice(0, LISTED).flatMap((tool) => toolLines(tool, params.includeSchemas === true));
  const rest = tools.length - LISTED;
  return [
    `${server}: ${counted(tools.length, "tool")}`,
    ...lines,
    ...(rest > 0 ? [`and ${rest} more: search with server.`] : []),
    ...stateNote(host.servers().find(({ name }) => name === server)),
  ].join("\n");
}

/** The first that is given counts: tool, connect, describe, search, server; else the status. */
async function run(host: ProxyHost, call: Call): Promise<ToolResult> {
  const { params, signal } = call;
  const answer = (lines: string): ToolResult => ({ content: [{ type: "text", text: lines }], details: {} });
  const [tool, connect, describe, search, server] = ["tool", "connect", "describe", "search", "server"].map(
    (key) => text(params[key]),
  );
  if (tool !== undefined) return callMode(host, tool, call);
  if (connect !== undefined) return answer(await connectMode(host, connect));
  if (describe !== undefined) {
    const within = server === undefined ? undefined : knownServer(host, server);
    return answer(describeTool(await toolNamed(host, describe, within, signal)));
  }
  if (search !== undefined) return answer(await searchMode(host, search, call));
  if (server !== undefined) return answer(await serverMode(host, server, call));
  return answer(statusMode(host));
}

export function createProxyTool(description: string, host: ProxyHost): PiTool {
  return {
    name: PROXY_TOOL,
    label: "MCP",
    ...createRenderers("MCP"),
    description,
    promptSnippet: "Find and call MCP tools",
    parameters: PARAMETERS,
    exposure: "model-only",
    reachesTools: () => "all",
    async execute(callId, params, signal, onUpdate, ctx) {
      try {
        return await run(host, { callId, params, signal, onUpdate, ctx });
      } catch (error) {
        const known = error instanceof Error ? error : { message: String(error) };
        const details = error instanceof ThreadsError ? { ...error.data, code: error.code } : {};
        return { content: [{ type: "text", text: describeError(known) }], details, isError: true };
      }
    },
  };
}
