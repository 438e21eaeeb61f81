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
/** Share of the budget for servers with descriptions; and beside tools that do not all fit: names tell more for a token. */
const DESCRIPTIONS_SHARE = 0.4;
const SHARE_BESIDE_TOOLS = 0.2;
/** Share for servers with tools that do not all fit; many servers get this many tokens each, as far as the budget goes. */
const TOOLS_SHARE = 0.63;
const TOKENS_A_SERVER = 20;

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

/** The texts that fit, from the first, each with `mark` more tokens. `left`: what they leave; 0 if not all fit. */
function fitting(texts: readonly string[], budget: number, mark: 0 | 1): { fits: string[]; left: number } {
  const fits: string[] = [];
  let left = budget;
  for (const text of texts) {
    left -= estimateTokens(text) + mark;
    if (left < 0) return { fits, left: 0 };
    fits.push(text);
  }
  return { fits, left };
}

interface HeadLines {
  /** A line for each server that fits, in order. */
  lines: string[];
  /** A line that counts the other servers, if there are any. */
  more: string[];
}

/** The lines of the servers with the longest descriptions that fit `described`, or without descriptions if none fit. */
function headLines(servers: readonly DescribedServer[], budget: number, described: number): HeadLines {
  for (const chars of DESCRIPTION_CHARS) {
    const lines = servers.map((server) => headLine(server, chars));
    const most = chars === 0 ? budget : described;
    if (sum(lines.map(estimateTokens)) <= most) return { lines, more: [] };
  }
  const names = servers.map((server) => headLine(server, 0));
  const { fits: lines } = fitting(names, budget - estimateTokens(`- and ${servers.length} more`), 0);
  return { lines, more: [`- and ${servers.length - lines.length} more`] };
}

/** Positions of the names of one server in the order in which they get room. */
export type NamesOrder = (names: readonly string[]) => Iterator<number>;

/**
 * The names that each list may show: equal shares, where longer lists get what short lists leave. Tokens are estimated only
 * for names that are considered.
 */
function namesThatFit(
  lists: readonly (readonly string[])[],
  budget: number,
  order: NamesOrder = (names) => names.keys(),
): string[][] {
  let left = budget;
  const rows = lists.map((list) => {
    const shown: number[] = [];
    return { list, next: order(list), shown };
  });
  for (let open = rows; open.length > 0; ) {
    open = open.filter(({ list, next, shown }) => {
      const frame = shown.length === 0 ? FRAME_TOKENS : 1;
      const { value: at } = left > frame ? next.next() : {};
      const cost = estimateTokens(list[at ?? -1] ?? "") + frame;
      if (at === undefined || cost > left) return false;
      left -= cost;
      return shown.push(at);
    });
  }
  return rows.map(({ list, shown }) => shown.sort((a, b) => a - b).map((at) => list[at] ?? ""));
}

const withRest = (shown: readonly string[], count: number): string[] =>
  count > shown.length ? [...shown, `${count - shown.length} more`] : [...shown];

const withTools = (line: string, shown: readonly string[], count: number): string =>
  shown.length === 0 ? line : `${line} [${withRest(shown, count).join(", ")}]`;

/** The description of ToolSearch. `servers`: in the order of the configuration. `budget`: in tokens. */
export function toolSearchDescription(
  servers: readonly DescribedServer[],
  catalog: CatalogSettings["catalog"] = "tools",
  budget: number = LIMITS.catalogTokens,
  order?: NamesOrder,
): string {
  if (servers.length === 0 || catalog === "off") return TOOL_SEARCH_HEAD;
  if (catalog === "servers") {
    const { lines, more } = headLines(servers, budget, budget * DESCRIPTIONS_SHARE);
    return `${TOOL_SEARCH_HEAD}\nServers (${SET_SERVER}):\n${[...lines, ...more].join("\n")}`;
  }
  // A line and a name cost at least two tokens each.
  const names = servers
    .slice(0, budget / 2)
    .map(({ tools = [] }) => tools.slice(0, budget / 2).map(shownName));
  const beside = budget * (1 - DESCRIPTIONS_SHARE) - FRAME_TOKENS * servers.length;
  const areFew = fitting(names.flat(), beside, 1).left > 0;
  const { lines, more } = headLines(
    servers,
    budget,
    budget * (areFew ? DESCRIPTIONS_SHARE : SHARE_BESIDE_TOOLS),
  );
  // The names of very many servers may take the whole budget.
  const most = areFew
    ? budget
    : Math.min(budget, Math.max(budget * TOOLS_SHARE, servers.length * TOKENS_A_SERVER));
  const rest = most - sum([...lines, ...more].map(estimateTokens));
  const shown = namesThatFit(names.slice(0, lines.length), rest, order);
  const full = lines.map((line, at) => withTools(line, shown[at] ?? [], servers[at]?.tools?.length ?? 0));
  return `${TOOL_SEARCH_HEAD}\nServers and tools (${SET_SERVER}; select:server__tool loads one):\n${[...full, ...more].join("\n")}`;
}

const PROXY_HEAD =
  "Calls tools of MCP servers. First find one with search or server, then call it with tool and args. Without parameters: status. If several are given, the first of tool, connect, describe, search, server counts.";
const SERVER_TOKENS = 80;

/** The description of the proxy tool. It names few servers, so that the declaration stays small. */
export function proxyDescription(servers: readonly { name: string }[]): string {
  if (servers.length === 0) return PROXY_HEAD;
  const names = servers.slice(0, SERVER_TOKENS).map(({ name }) => shownName(name));
  const { fits } = fitting(names, SERVER_TOKENS, 1);
  return `${PROXY_HEAD} Servers: ${withRest(fits, servers.length).join(", ")}.`;
}

/** The description of the tool that the settings ask for. `servers`: in the order of the configuration. */
export const searchToolDescription = (
  servers: readonly DescribedServer[],
  { proxyTool, catalog }: Pick<CatalogSettings, "proxyTool" | "catalog">,
  order?: NamesOrder,
): string =>
  proxyTool
    ? proxyDescription(catalog === "off" ? [] : servers)
    : toolSearchDescription(servers, catalog, undefined, order);

/** A server that does not tell its tools yet is one of the list, too. */
export function serversThatFit(servers: readonly DescribedServer[], budget: number): string[] {
  const names = servers.map(({ name }) => name);
  const { fits, left } = fitting(names, budget - FRAME_TOKENS, 1);
  const lists = fits.map((_, at) => servers[at]?.tools ?? []);
  const shown = namesThatFit(lists, left);
  const full = fits.map((name, at) => withTools(name, shown[at] ?? [], lists[at]?.length ?? 0));
  return withRest(full, servers.length);
}

/** A line of a server: its name, and at its end its tools, whose names hold neither blanks nor brackets. */
const SERVER_LINE = /^- ([^\s:[\]]+)(?:: .*?)?(?: \[([^[\]]*)\])?$/;
const PROXY_SERVERS = / Servers: ([^ ].*)\.$/;
const REST = /^(\d+) more$/;
const CUT_LIST = /, \d+ more\]$/;

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
  const isCrowded =
    lines.some((line) => CUT_LIST.test(line)) ||
    estimateTokens(lines.join("\n")) > 0.8 * LIMITS.catalogTokens;
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
