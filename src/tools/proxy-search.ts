/** What the proxy tool lists: the tools that a search finds, and those of one server. */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import { likelyHits, searchCatalog } from "../catalog/search.ts";
import { LIMITS } from "../protocol/limits.ts";
import { firstSentence } from "../protocol/sentence.ts";
import { compilePattern, PatternError } from "../search/regex.ts";
import { parameterLines } from "./describe-tool.ts";
import { counted } from "./offer.ts";
import { knownServer, type ProxyCall, type ProxyHost, Refusal, text } from "./proxy-request.ts";
import { nameLine, serverNotes, stateNote } from "./tool-search-report.ts";

/** Lines that one answer lists. */
const LISTED = 300;
/** Results of a regular expression. */
const MATCHES = 50;
/** Main must not stall: a scan of all tools pauses after this long. */
const SLICE_MS = 3;

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
): Promise<string> {
  const written = text(params.server);
  const server = written === undefined ? undefined : knownServer(host, written);
  const pending = await host.settle(signal, server === undefined ? undefined : [server]);
  const catalog = host.catalog();
  const results =
    params.regex === true ? await byPattern(catalog, words, server) : byWords(catalog, words, server);
  const lines = results.tools.flatMap((tool) => toolLines(tool, params.includeSchemas !== false));
  const found = lines.length > 0 ? lines : ["No tools found."];
  return [...found, ...results.notes, ...serverNotes(host.servers(), pending)].join("\n");
}

export async function serverMode(
  host: ProxyHost,
  written: string,
  { params, signal }: ProxyCall,
): Promise<string> {
  const server = knownServer(host, written);
  const status = host.servers().find(({ name }) => name === server);
  if (!status?.toolsKnown) await host.settle(signal, [server]);
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
