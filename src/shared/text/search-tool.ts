/**
 * The description of the tool that finds the others, ToolSearch or the proxy tool: its purpose, the servers, and as many
 * of their tools as a token budget allows. It follows the order of the catalog and is made with the snapshot, because any
 * changed byte costs the user their prompt cache. Names and texts of servers are cleaned here, so that none of them adds
 * a line or an entry to the list. Pure.
 */

import { TOOL_SEARCH_HEAD } from "../naming.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { CatalogSettings } from "../protocol/session.ts";
import { firstSentence, shownName } from "./unprintable.ts";

export interface DescribedServer {
  name: string;
  description?: string;
  /** Names at the server, in its order. Absent if the tools are unknown. */
  tools?: readonly string[];
}

/** A search in the right server alone misses far less often (bench `search`), so the list asks for it. */
const SET_SERVER = "set server to the one that fits";

/** Lengths of server descriptions that are tried, in characters, until the lines of all servers fit. */
const DESCRIPTION_CHARS = [160, 90, 50, 0];
/** Share of the budget for descriptions of servers; the rest is for names of tools. */
const DESCRIPTIONS_SHARE = 0.4;

/** Tokens of the brackets around a list of names and of the count of the rest. */
const FRAME_TOKENS = 6;

/** White space, which costs nothing; a word with the mark before it, as tokenizers cut; three digits; any other mark alone. */
const TOKEN_RUNS = /\s+|[_\-./]?(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z]))|[0-9]{1,3}|[^\sA-Za-z0-9]/g;

/**
 * An estimate of a text's tokens without a tokenizer. Compared with o200k: 5 % below to 14 % above for a list of 20 real
 * servers with their tools, a fifth above for descriptions.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  TOKEN_RUNS.lastIndex = 0;
  // Each run begins where the one before ends. Thousands of schemas are counted in a row, so no run becomes an object.
  for (let at = 0; TOKEN_RUNS.test(text); at = TOKEN_RUNS.lastIndex) {
    if (text.charAt(at).trim() !== "") tokens += Math.ceil((TOKEN_RUNS.lastIndex - at) / 6);
  }
  return tokens;
}

const cut = (text: string, chars: number): string =>
  text.length > chars ? `${text.slice(0, chars - 1).trimEnd()}…` : text;

function headLine({ name, description }: DescribedServer, chars: number): string {
  const sentence = description && chars > 0 ? firstSentence(description) : "";
  const shown = shownName(name);
  return sentence === "" ? `- ${shown}` : `- ${shown}: ${cut(sentence, chars)}`;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

interface HeadLines {
  /** A line for each server that fits, in order. */
  lines: string[];
  /** A line that counts the other servers, if there are any. */
  more: string[];
}

/** The lines of the servers with the longest descriptions that fit, or without descriptions if none fit. */
function headLines(servers: readonly DescribedServer[], budget: number): HeadLines {
  for (const chars of DESCRIPTION_CHARS) {
    const lines = servers.map((server) => headLine(server, chars));
    const most = chars === 0 ? budget : budget * DESCRIPTIONS_SHARE;
    if (sum(lines.map(estimateTokens)) <= most) return { lines, more: [] };
  }
  const lines: string[] = [];
  let left = budget - estimateTokens(`- and ${servers.length} more`);
  for (const server of servers) {
    const line = headLine(server, 0);
    left -= estimateTokens(line);
    if (left < 0) break;
    lines.push(line);
  }
  return { lines, more: [`- and ${servers.length - lines.length} more`] };
}

/**
 * The number of names that each list may show: equal shares, where longer lists get what short lists leave. Tokens are
 * estimated only for names that are considered.
 */
function namesThatFit(lists: readonly (readonly string[])[], budget: number): number[] {
  const shown = lists.map(() => 0);
  let left = budget;
  for (let open = lists.map((_, at) => at); open.length > 0; ) {
    const next: number[] = [];
    for (const at of open) {
      const count = shown[at] ?? 0;
      const name = lists[at]?.[count];
      if (name === undefined) continue;
      const cost = estimateTokens(name) + (count === 0 ? FRAME_TOKENS : 1);
      if (cost > left) continue;
      left -= cost;
      shown[at] = count + 1;
      next.push(at);
    }
    open = next;
  }
  return shown;
}

function withTools(line: string, shown: readonly string[], count: number): string {
  if (shown.length === 0) return line;
  const rest = count - shown.length;
  return `${line} [${shown.join(", ")}${rest > 0 ? `, ${rest} more` : ""}]`;
}

/** The description of ToolSearch. `servers`: in the order of the configuration. `budget`: in tokens. */
export function toolSearchDescription(
  servers: readonly DescribedServer[],
  catalog: CatalogSettings["catalog"] = "tools",
  budget: number = LIMITS.catalogTokens,
): string {
  if (servers.length === 0 || catalog === "off") return TOOL_SEARCH_HEAD;
  const { lines, more } = headLines(servers, budget);
  if (catalog === "servers")
    return `${TOOL_SEARCH_HEAD}\nServers (${SET_SERVER}):\n${[...lines, ...more].join("\n")}`;
  const counts = lines.map((_, at) => servers[at]?.tools?.length ?? 0);
  // A name and its comma cost at least two tokens, so no list can show more than half the budget.
  const names = lines.map((_, at) => (servers[at]?.tools ?? []).slice(0, budget / 2).map(shownName));
  const shown = namesThatFit(names, budget - sum([...lines, ...more].map(estimateTokens)));
  const full = lines.map((line, at) =>
    withTools(line, names[at]?.slice(0, shown[at]) ?? [], counts[at] ?? 0),
  );
  return `${TOOL_SEARCH_HEAD}\nServers and tools (${SET_SERVER}; select:server__tool loads one):\n${[...full, ...more].join("\n")}`;
}

const PROXY_HEAD =
  "Calls tools of MCP servers. First find one with search or server, then call it with tool and args. Without parameters: status. If several are given, the first of tool, connect, describe, search, server counts.";
const SERVER_TOKENS = 80;

/** The description of the proxy tool. It names few servers, so that the declaration stays small. */
export function proxyDescription(servers: readonly { name: string }[]): string {
  const shown: string[] = [];
  let left = SERVER_TOKENS;
  for (const { name } of servers) {
    const known = shownName(name);
    left -= estimateTokens(known) + 1;
    if (left < 0) break;
    shown.push(known);
  }
  const rest = servers.length - shown.length;
  if (servers.length === 0) return PROXY_HEAD;
  return `${PROXY_HEAD} Servers: ${[...shown, ...(rest > 0 ? [`${rest} more`] : [])].join(", ")}.`;
}

/** The description of the tool that the settings ask for. `servers`: in the order of the configuration. */
export const searchToolDescription = (
  servers: readonly DescribedServer[],
  { proxyTool, catalog }: Pick<CatalogSettings, "proxyTool" | "catalog">,
): string =>
  proxyTool ? proxyDescription(catalog === "off" ? [] : servers) : toolSearchDescription(servers, catalog);

/** A server that does not tell its tools yet is one of the list, too. */
export function serversThatFit(servers: readonly DescribedServer[], budget: number): string[] {
  const heads: string[] = [];
  let left = budget - FRAME_TOKENS;
  for (const { name } of servers) {
    left -= estimateTokens(name) + 1;
    if (left < 0) break;
    heads.push(name);
  }
  const lists = heads.map((_, at) => servers[at]?.tools ?? []);
  const shown = namesThatFit(lists, Math.max(0, left));
  const full = heads.map((name, at) =>
    withTools(name, (lists[at] ?? []).slice(0, shown[at]), (lists[at] ?? []).length),
  );
  const rest = servers.length - heads.length;
  return rest > 0 ? [...full, `${rest} more`] : full;
}

/** A line of a server: its name, and at its end its tools, whose names hold neither blanks nor brackets. */
const SERVER_LINE = /^- ([^\s:[\]]+)(?:: .*?)?(?: \[([^[\]]*)\])?$/;
const PROXY_SERVERS = / Servers: ([^ ].*)\.$/;
const REST = /^(\d+) more$/;

/** Parts of a list, without the count of the rest, and how many there are with the rest. */
function readList(text: string): { names: string[]; count: number } {
  const parts = text.split(", ");
  const rest = Number(REST.exec(parts.at(-1) ?? "")?.[1] ?? 0);
  const names = rest > 0 ? parts.slice(0, -1) : parts;
  return { names, count: names.length + rest };
}

interface ToldServers {
  /** Shown name -> its tools as far as they are named; undefined: nothing is said of its tools. */
  servers: Map<string, { count: number; tools: readonly string[] } | undefined>;
  /** False: there was no room for the names of all servers. */
  isWhole: boolean;
}

/** What a description says, also one of an earlier session: the functions above have made it. */
export function toldIn(description: string): ToldServers {
  const servers: ToldServers["servers"] = new Map();
  const [first = "", second = "", ...lines] = description.split("\n");
  const list = PROXY_SERVERS.exec(first)?.[1];
  if (list !== undefined) {
    const { names, count } = readList(list);
    for (const name of names) servers.set(name, undefined);
    return { servers, isWhole: names.length === count };
  }
  const namesTools = second.startsWith("Servers and tools ");
  // Without room for a name the tools of a server are not even counted.
  const isCrowded = estimateTokens(lines.join("\n")) > 0.8 * LIMITS.catalogTokens;
  let isWhole = true;
  for (const line of lines) {
    const [, name, tools] = SERVER_LINE.exec(line) ?? [];
    if (/^- and \d+ more$/.test(line)) isWhole = false;
    else if (name !== undefined && namesTools && (tools !== undefined || !isCrowded)) {
      const { names, count } = tools === undefined ? { names: [], count: 0 } : readList(tools);
      servers.set(name, { count, tools: names });
    } else if (name !== undefined) servers.set(name, undefined);
  }
  return { servers, isWhole };
}
