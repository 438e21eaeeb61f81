/**
 * Reads what a description of the tool that finds others says (search-tool.ts), also one of an earlier session, and makes
 * the lists of servers for the line about what has changed since. Apart from search-tool.ts, which a start needs. Pure.
 */
import { LIMITS } from "../protocol/limits.ts";
import {
  type DescribedServer,
  estimateTokens,
  FRAME_TOKENS,
  namesThatFit,
  withTools,
} from "./search-tool.ts";

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

export interface ToldServers {
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
