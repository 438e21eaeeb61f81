/**
 * Names of MCP tools in Pi: at most 64 characters of `[A-Za-z0-9_-]` that begin with a letter or `_`, unique whatever names
 * servers choose, never the name of one of Pi's own tools, and the same from one start to the next. Pure.
 */
import { LIMITS } from "./protocol/limits.ts";

/** Names of the tools through which the model reaches all others. */
export const TOOL_SEARCH = "ToolSearch";
export const PROXY_TOOL = "mcp";
/** The tool of a server that loads a skill which the server does not list. */
export const SKILL_BY_ADDRESS = "skill_by_address";
/** The description of ToolSearch without servers, and its first line with them. */
export const TOOL_SEARCH_HEAD = "Finds and loads MCP tools. Only loaded tools can be called, by name.";

/** `settings.toolPrefix`: the part of a name before the tool's own name. */
export type ToolPrefix = "server" | "short" | "none" | "mcp";

const HASH_CHARS = 6;

/** Separates the server's part of a name from the tool's. */
export const NAME_SEPARATOR = "__";

/**
 * Names of Pi's own tools and ours, in lower case. Compared in lower case, since a provider may rewrite `read` as
 * `Read`.
 */
const RESERVED = new Set([
  ...["read", "bash", "edit", "write", "grep", "find", "ls", "powershell"],
  ...["codemode", "tool_search", "toolsearch", "mcp"],
]);

/** Six letters and digits that mark a text. Not for security. */
export const shortHash = (text: string): string =>
  fnv1a(text).toString(36).padStart(HASH_CHARS, "0").slice(-HASH_CHARS);

/** Gemini refuses every request that declares a name which begins with a digit or a hyphen. */
const isRefused = (name: string): boolean => /^[0-9-]/.test(name);
const accepted = (name: string): string => (isRefused(name) ? `_${name}` : name);
/** The name, and what it was before every name was accepted: rules and transcripts may hold that. */
const formsOf = (name: string): string[] => (isRefused(name) ? [accepted(name), name] : [name]);

const sanitize = (text: string): string => text.replace(/[^A-Za-z0-9_-]/g, "_");

/** The server's name with underscores for hyphens and for characters that names in Pi cannot have. */
export const serverPrefix = (server: string): string => sanitize(server).replaceAll("-", "_");

/** The prefix without the `mcp` with which many servers' names begin or end. */
const shortPrefix = (server: string): string =>
  serverPrefix(server.replace(/^mcp[-_]+(?=.)/i, "").replace(/(?<=.)[-_]+mcp$/i, ""));

/** The beginnings that names of a server's tools may have, in lower case, without the separator. */
const beginnings = (server: string): string[] =>
  [server, serverPrefix(server), shortPrefix(server)].flatMap((name) => formsOf(name.toLowerCase()));

/** The server whose name begins `written`, as in `github__create_issue`. The longest such name wins. */
export function ownerOf(written: string, servers: readonly string[]): string | undefined {
  const name = written.toLowerCase();
  const begins = (server: string): boolean =>
    beginnings(server).some(
      (prefix) => name.startsWith(prefix) && /^(__|[/.:])/.test(name.slice(prefix.length)),
    );
  return servers.filter(begins).sort((a, b) => b.length - a.length)[0];
}

/** The part before a tool's own name, with the separator. */
function rawPrefix(server: string, prefix: ToolPrefix): string {
  if (prefix === "none") return "";
  if (prefix === "short") return `${shortPrefix(server)}${NAME_SEPARATOR}`;
  const full = `${serverPrefix(server)}${NAME_SEPARATOR}`;
  return prefix === "mcp" ? `mcp${NAME_SEPARATOR}${full}` : full;
}

/** The parts before a tool's own name that name its server. The longest first, because one can begin with another. */
export const namePrefixes = (server: string): string[] =>
  (["mcp", "server", "short"] as const).flatMap((mode) => formsOf(rawPrefix(server, mode)));

const rawName = (server: string, tool: string, prefix: ToolPrefix): string =>
  `${rawPrefix(server, prefix)}${sanitize(tool)}`;

/** The name that a tool has if no other tool wants it and if it is short enough. */
export const plainToolName = (server: string, tool: string, prefix: ToolPrefix = "server"): string =>
  accepted(rawName(server, tool, prefix));

/** That name, and the one that the tool had before. */
export const plainToolNames = (server: string, tool: string, prefix: ToolPrefix): string[] =>
  formsOf(rawName(server, tool, prefix));

interface NamedTool {
  server: string;
  tool: string;
  /** Absent: `server`. */
  prefix?: ToolPrefix;
}

export interface AssignedNames {
  /** Names by position of the tool. */
  names: string[];
  /** True for a name without a server in it: a tool of another extension may have the same name. */
  bare: boolean[];
  /** Tools that have another name than wanted, in order. `holder`: the server that has the wanted name, or Pi. */
  collisions: { server: string; tool: string; wanted: string; name: string; holder: string }[];
}

function withHash(plain: string, { server, tool }: NamedTool, salt: number): string {
  const hash = shortHash(`${server}\u0000${tool}${salt === 0 ? "" : `\u0000${salt}`}`);
  return `${plain.slice(0, LIMITS.toolNameChars - HASH_CHARS - 1)}_${hash}`;
}

/** The plain name, or its start and a hash if it is too long. */
const fitted = (plain: string, tool: NamedTool): string =>
  plain.length <= LIMITS.toolNameChars ? plain : withHash(plain, tool, 0);

const MODES: readonly ToolPrefix[] = ["server", "short", "none", "mcp"];

/** All names that the tool can have in Pi, or has had, if no other tool wants them. `modes`: the prefixes that count. */
export const spellingsOf = (server: string, tool: string, modes: Iterable<ToolPrefix> = MODES): string[] =>
  [...modes].flatMap((prefix) =>
    plainToolNames(server, tool, prefix).map((plain) => fitted(plain, { server, tool })),
  );

/** The same names without the server's part. */
export const localSpellingsOf = (server: string, tool: string): string[] =>
  MODES.flatMap((prefix) => {
    const before = formsOf(rawPrefix(server, prefix));
    return spellingsOf(server, tool, [prefix]).map((name, i) => name.slice(before[i]?.length));
  });

const isShort = ({ prefix }: NamedTool): boolean => prefix === "short" || prefix === "none";

/** The name if no other tool wants it. */
export const fittedName = (tool: NamedTool): string =>
  fitted(plainToolName(tool.server, tool.tool, tool.prefix), tool);

/** The name if another tool wants the same one, unless two hashes collide, and the one that the tool had before. */
export const hashedNames = (server: string, tool: string, prefix: ToolPrefix): string[] =>
  plainToolNames(server, tool, prefix).map((plain) => withHash(plain, { server, tool }, 0));

/**
 * Names for a whole catalog, all different. If tools want the same short name, the first one gets it, and the others
 * get names with the server's whole name. If two whole names are equal, each tool gets its hash, so that a name does not
 * depend on the order in which servers answered.
 */
export function nameTools(tools: readonly NamedTool[]): AssignedNames {
  const wanted = tools.map(fittedName);
  const names = shortNames(tools, wanted);
  const won = names.map((name) => name !== undefined);
  settle(tools, names, won);
  const holders = new Map<string, number>();
  names.forEach((name, i) => {
    if (name !== undefined) holders.set(name, i);
  });
  const holderOf = (name: string): string => {
    const holder = tools[holders.get(name) ?? wanted.indexOf(name)];
    return RESERVED.has(name.toLowerCase()) ? "Pi" : (holder?.server ?? "another server");
  };
  return {
    names: names.map((name) => name ?? ""),
    bare: tools.map(({ prefix }, i) => prefix === "none" && won[i] === true),
    collisions: tools.flatMap(({ server, tool }, i) => {
      const [want = "", name = ""] = [wanted[i], names[i]];
      return want === name ? [] : [{ server, tool, wanted: want, name, holder: holderOf(want) }];
    }),
  };
}

/** Short names by position; undefined for a name that is reserved, a whole name, or an earlier tool's. */
function shortNames(tools: readonly NamedTool[], wanted: readonly string[]): (string | undefined)[] {
  const taken = new Set(wanted.filter((_, i) => !isShort(tools[i] as NamedTool)));
  return tools.map((tool, i) => {
    const name = wanted[i] ?? "";
    if (!isShort(tool) || RESERVED.has(name.toLowerCase()) || taken.has(name)) return undefined;
    taken.add(name);
    return name;
  });
}

/** More hashes than are ever tried for one name. */
const REPEATED = 1_000_000;

/** Gives every tool without a name its whole name, and a hash if another tool has that name. */
function settle(
  tools: readonly NamedTool[],
  names: (string | undefined)[],
  isFixed: readonly boolean[],
): void {
  const plain = tools.map((tool) =>
    plainToolName(tool.server, tool.tool, isShort(tool) ? "server" : tool.prefix),
  );
  tools.forEach((tool, i) => {
    names[i] ??= fitted(plain[i] ?? "", tool);
  });
  // Two of one server with one name would have one hash for ever.
  const seen = new Map<string, number>();
  const repeats = tools.map(({ server, tool }) => {
    const key = `${server}\u0000${tool}`;
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    return before * REPEATED;
  });
  // A hashed name may equal a plain name or, rarely, another hashed name: then both are hashed again with another salt.
  // A hashed name never returns to its plain form, so this ends.
  for (let salt = 0; ; salt++) {
    const uses = new Map<string, number>();
    for (const name of names) if (name !== undefined) uses.set(name, (uses.get(name) ?? 0) + 1);
    const unsettled = names.map((name, i) => !isFixed[i] && name !== undefined && uses.get(name) !== 1);
    if (!unsettled.includes(true)) return;
    tools.forEach((tool, i) => {
      if (unsettled[i]) names[i] = withHash(plain[i] ?? "", tool, salt + (repeats[i] ?? 0));
    });
  }
}

/** FNV-1a over UTF-16 code units: an unsigned number of 32 bits. */
export function fnv1a(text: string, seed = 0x811c_9dc5): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return hash >>> 0;
}

/** Names of the tools through which the model reaches all others. */
