/** The lists of the proxy tool: the tools that a search finds, and the tools of one server. */
import {
  type Catalog,
  type CatalogTool,
  createSlices,
  holdsToolsOf,
  toolsOf,
} from "../../catalog/catalog.ts";
import { likelyHits, searchCatalog } from "../../catalog/search/search.ts";
import { nameLine, serverNotes, stateNote } from "../../report/search.ts";
import { serverName } from "../../report/server-name.ts";
import { parameterLines } from "../../report/tool.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { counted } from "../../shared/text/counts.ts";
import { firstSentence } from "../../shared/text/sentence.ts";
import type { ProxyHost } from "./host.ts";
import { knownServer, type ProxyCall, Refusal, text } from "./request.ts";

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

async function byPattern(host: ProxyHost, pattern: string, server: string | undefined): Promise<Results> {
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
  host: ProxyHost,
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
  host: ProxyHost,
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
