/**
 * A call of the proxy tool `mcp`, in one of its modes: what its parameters name, the lists that it answers, the call
 * itself. A request that cannot be met throws a `Refusal`, whose message the model reads in an error result.
 */
import { type Catalog, type CatalogTool, createSlices, holdsToolsOf, toolsOf } from "../catalog/catalog.ts";
import {
  findServer,
  likelyHits,
  nearestTools,
  resolveTool,
  searchCatalog,
  serverNames,
  serverOfName,
} from "../catalog/search.ts";
import type { PiToolContext, ToolResult, ToolUpdate } from "../pi/api.ts";
import { othersOf } from "../report/hub.ts";
import { errorLineOf, nameLine, noServer, serverNotes, stateNote } from "../report/search.ts";
import { serverName } from "../report/server-name.ts";
import { describeTool, parameterLines } from "../report/tool.ts";
import { plainToolName } from "../shared/naming.ts";
import { describeError, fromWireError, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { counted, offerText } from "../shared/text/amounts.ts";
import { parseArguments } from "../shared/text/reading.ts";
import { cleanText, firstSentence } from "../shared/text/unprintable.ts";
import { expectedLine } from "./definition.ts";
import type { ToolHost } from "./host.ts";

/** Tools that one answer lists. */
const LISTED = 300;
/** Results of a regular expression. */
const MATCHES = 50;
/** Longest name at a server that a pattern sees. The search index cuts names at the same length. */
const NAME_CHARS = 256;
/** Longest answer: a list with schemas can name hundreds of tools. */
const ANSWER_CHARS = 100_000;

function linesOf(tool: CatalogTool, withParameters: boolean): string[] {
  const line = `${tool.name} - ${firstSentence(tool.description)}`;
  return withParameters ? [line, ...parameterLines(tool).map((parameter) => `  ${parameter}`)] : [line];
}

export interface Listed {
  text: string;
  /** The servers of the tools that the text names. */
  servers: string[];
}

/** Works in slices, because a tool's schema is decoded for its parameters. */
async function toolLines(tools: readonly CatalogTool[], withParameters: boolean): Promise<string[]> {
  const slices = createSlices({ steps: 1 });
  const lines: string[] = [];
  let chars = 0;
  for (const [at, tool] of tools.entries()) {
    const pause = slices.step();
    if (pause) await pause;
    const own = linesOf(tool, withParameters);
    chars += own.reduce((sum, line) => sum + line.length + 1, 0);
    if (chars > ANSWER_CHARS) return [...lines, `and ${tools.length - at} more: search for fewer at a time.`];
    lines.push(...own);
  }
  return lines;
}

interface Results {
  tools: readonly CatalogTool[];
  notes: readonly string[];
}

/** The texts that a pattern is matched with: names in Pi, names at the servers, first sentences of descriptions. */
async function textColumns(tools: readonly CatalogTool[]): Promise<string[]> {
  const slices = createSlices();
  const names: string[] = [];
  const locals: string[] = [];
  const sentences: string[] = [];
  for (const tool of tools) {
    const pause = slices.step();
    if (pause) await pause;
    names.push(tool.name);
    locals.push(tool.tool.slice(0, NAME_CHARS));
    sentences.push(firstSentence(tool.description));
  }
  return [names, locals, sentences].map((texts) => texts.join("\u0000"));
}

async function byPattern(host: ToolHost, pattern: string, server: string | undefined): Promise<Results> {
  const within = await toolsOf(host.catalog(), server);
  if (within.length === 0) return { tools: [], notes: [] };
  const matches = await host.matchTools({ pattern, columns: await textColumns(within) });
  if ("problem" in matches) throw new Refusal(`The pattern cannot be used: ${matches.problem}.`);
  const { rows } = matches;
  const beyond = rows.length - MATCHES;
  return {
    tools: rows.slice(0, MATCHES).flatMap((row) => within[row] ?? []),
    notes: beyond > 0 ? [`and ${beyond} more: make the pattern narrower.`] : [],
  };
}

/** Any word may match. Ranked; tools that score below half of the best are left out. */
function byWords(catalog: Catalog, words: string, server: string | undefined): Results {
  const { hits, unmatched } = searchCatalog(catalog, words, LIMITS.searchResultsMost, server);
  return {
    tools: likelyHits(hits).map(({ tool }) => tool),
    notes: nameLine("No tool matches", unmatched),
  };
}

export async function searchMode(
  host: ToolHost,
  words: string,
  { params, signal }: ProxyCall,
): Promise<Listed> {
  const written = text(params.server);
  const server = written === undefined ? undefined : knownServer(host, written);
  const pending = await host.settle(signal, server === undefined ? undefined : [server]);
  const results =
    params.regex === true ? await byPattern(host, words, server) : byWords(host.catalog(), words, server);
  const lines = await toolLines(results.tools, params.includeSchemas !== false);
  const found = lines.length > 0 ? lines : ["No tools found."];
  return {
    text: [...found, ...results.notes, ...serverNotes(host.servers(), pending)].join("\n"),
    servers: [...new Set(results.tools.map((tool) => tool.server.name))],
  };
}

export async function serverMode(
  host: ToolHost,
  written: string,
  { params, signal }: ProxyCall,
): Promise<Listed> {
  const server = knownServer(host, written);
  const status = host.servers().find(({ name }) => name === server);
  if (!status?.toolsKnown || !holdsToolsOf(host.catalog(), server)) await host.settle(signal, [server]);
  const tools = await toolsOf(host.catalog(), server);
  const lines = await toolLines(tools.slice(0, LISTED), params.includeSchemas === true);
  const rest = tools.length - LISTED;
  const lists = [
    `${serverName(server)}: ${counted(tools.length, "tool")}`,
    ...lines,
    ...(rest > 0 ? [`and ${rest} more: search with server.`] : []),
    ...stateNote(host.servers().find(({ name }) => name === server)),
  ];
  return { text: lists.join("\n"), servers: tools.length > 0 ? [server] : [] };
}

export interface ProxyCall {
  callId: string;
  params: Record<string, unknown>;
  signal: AbortSignal | undefined;
  onUpdate: ToolUpdate | undefined;
  ctx: PiToolContext;
}

export class Refusal extends Error {}

/** The trimmed text of a parameter; undefined if it is empty or not a string. */
export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;

/** `args`: an object, or the JSON of an object. Throws a Refusal. */
export function parseArgs(args: unknown): Record<string, unknown> {
  let value = args;
  if (typeof value === "string") {
    try {
      value = value.trim() === "" ? {} : parseArguments(value);
    } catch (error) {
      const what = error instanceof SyntaxError ? "is not valid JSON" : "cannot be sent";
      throw new Refusal(`args ${what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Refusal("args must be a JSON object.");
  return value as Record<string, unknown>;
}

/** Answers the server's name as it is configured. Throws a Refusal. */
export function knownServer(host: ToolHost, written: string): string {
  const found = findServer(written, serverNames(host));
  if (found !== undefined) return found;
  throw new Refusal(noServer(written, serverNames(host), host.catalog()));
}

/** Waits for servers only if the tool is not known yet. Throws a Refusal with the nearest names. */
export async function toolNamed(
  host: ToolHost,
  name: string,
  server: string | undefined,
  signal: AbortSignal | undefined,
): Promise<CatalogTool> {
  let resolution = resolveTool(host.catalog(), name, server);
  if (resolution.kind === "unknown") {
    await host.settle(signal, server === undefined ? undefined : [server]);
    resolution = resolveTool(host.catalog(), name, server);
  }
  if (resolution.kind === "tool") return resolution.tool;
  if (resolution.kind === "several") {
    const names = resolution.tools.map((tool) => tool.name);
    const [line] = nameLine(`${name} is the name of several tools`, names);
    throw new Refusal(`${line}. Use one of these names.`);
  }
  const error = await host.whyMissing(server === undefined ? name : plainToolName(server, name));
  if (error) throw fromWireError(error);
  const owner = server ?? serverOfName(name, serverNames(host));
  const nearest = await nearestTools(host.catalog(), name, server);
  throw new Refusal(
    [
      `No tool named ${name}.`,
      ...nameLine(
        "Nearest",
        nearest.map((tool) => tool.name),
      ),
      ...stateNote(host.servers().find((status) => status.name === owner)),
    ].join("\n"),
  );
}

/** Calls the tool through Pi, so that extensions that watch or block calls see the tool itself. */
async function callMode(
  host: ToolHost,
  name: string,
  { callId, params, signal, onUpdate, ctx }: ProxyCall,
): Promise<ToolResult> {
  const server = text(params.server);
  const within = server === undefined ? undefined : knownServer(host, server);
  const args = parseArgs(params.args);
  const tool = host.provide(await toolNamed(host, name, within, signal));
  const options = { ...(signal ? { signal } : {}), ...(onUpdate ? { onUpdate } : {}) };
  const outcome = await host.forModel(callId, () => ctx.executeTool(tool.name, args, options));
  const { content, details } = outcome.result;
  if (!outcome.isError) return { content, details };
  if (outcome.durationMs !== undefined) return { content, details, isError: true };
  if (!ctx.tools.some((known) => known.name === tool.name)) {
    throw new Refusal(`Pi does not allow ${tool.name} in this session (--tools, --exclude-tools).`);
  }
  return { content: [...content, { type: "text", text: expectedLine(tool) }], details, isError: true };
}

function serverLine(status: ServerStatus): string {
  const error = status.error ? `: ${errorLineOf(status.name, status.error)}` : "";
  return `${serverName(status.name)}: ${status.state}, ${offerText(status)}${error}`;
}

function statusMode(host: ToolHost): string {
  const servers = host.servers();
  const connected = servers.filter(({ state }) => state === "connected").length;
  const tools = servers.reduce((total, { toolCount }) => total + toolCount, 0);
  const head = `MCP: ${connected}/${counted(servers.length, "server")}, ${counted(tools, "tool")}`;
  return [head, ...servers.map(serverLine)].join("\n");
}

async function connectMode(
  host: ToolHost,
  written: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const server = knownServer(host, written);
  const statusNow = (): ServerStatus | undefined => host.servers().find(({ name }) => name === server);
  const before = statusNow();
  // Only a person may interrupt other sessions.
  if (!before || othersOf(before) === 0) await host.connect(server, signal);
  const status = statusNow();
  if (status?.state !== "connected")
    throw new Refusal(status ? serverLine(status) : `${server}: not connected`);
  return serverLine(status);
}

/** The first parameter that is given decides: tool, connect, describe, search, server. Without any: the status. */
async function run(host: ToolHost, call: ProxyCall): Promise<ToolResult> {
  const { params, signal, ctx } = call;
  const answer = (lines: string): ToolResult => ({ content: [{ type: "text", text: lines }], details: {} });
  const listed = async ({ text: lines, servers }: Listed): Promise<ToolResult> => {
    const told = await host.tell(servers, () => ctx.sessionManager.buildContextEntries());
    if (!told) return answer(lines);
    const content = [lines, told.text].map((part) => ({ type: "text" as const, text: part }));
    return { content, details: { instructed: told.servers } };
  };
  const [tool, connect, describe, search, server] = ["tool", "connect", "describe", "search", "server"].map(
    (key) => text(params[key]),
  );
  if (tool !== undefined) return callMode(host, tool, call);
  if (connect !== undefined) return answer(await connectMode(host, connect, signal));
  if (describe !== undefined) {
    const within = server === undefined ? undefined : knownServer(host, server);
    const found = await toolNamed(host, describe, within, signal);
    return listed({ text: describeTool(found), servers: [found.server.name] });
  }
  if (search !== undefined) return listed(await searchMode(host, search, call));
  if (server !== undefined) return listed(await serverMode(host, server, call));
  return answer(statusMode(host));
}

export async function runProxyTool(host: ToolHost, call: ProxyCall): Promise<ToolResult> {
  try {
    return await run(host, call);
  } catch (error) {
    const known = error instanceof Error ? error : { message: String(error) };
    const details = error instanceof ThreadsError ? { ...error.data, code: error.code } : {};
    return { content: [{ type: "text", text: cleanText(describeError(known)) }], details, isError: true };
  }
}
