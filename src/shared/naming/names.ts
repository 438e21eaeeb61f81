/**
 * How an MCP tool is named in Pi: at most 64 characters of `[A-Za-z0-9_-]`, unique whatever servers name
 * their tools, never the name of one of Pi's own, and the same from one start to the next. Pure.
 */
import { LIMITS } from "../protocol/limits.ts";
import { fnv1a } from "../text/hash.ts";

/** `settings.toolPrefix`: what stands before the tool's own name. */
export type ToolPrefix = "server" | "short" | "none" | "mcp";

const HASH_CHARS = 6;

/** Between the server's part of a name and the tool's. */
export const NAME_SEPARATOR = "__";

/**
 * Names that Pi's own tools and ours bear. In lower case and compared so: a provider may rewrite `read` as
 * `Read`.
 */
const RESERVED = new Set([
  ...["read", "bash", "edit", "write", "grep", "find", "ls", "powershell"],
  ...["codemode", "tool_search", "toolsearch", "mcp"],
]);

/** Six letters and digits that mark a text. Not for security. */
export const shortHash = (text: string): string =>
  fnv1a(text).toString(36).padStart(HASH_CHARS, "0").slice(-HASH_CHARS);

const sanitize = (text: string): string => text.replace(/[^A-Za-z0-9_-]/g, "_");

/** Prefix of a server's tools: its name with hyphens and foreign characters as underscores. */
export const serverPrefix = (server: string): string => sanitize(server).replaceAll("-", "_");

/** Without the `mcp` that many servers begin or end their names with. */
const shortPrefix = (server: string): string =>
  serverPrefix(server.replace(/^mcp[-_]+(?=.)/i, "").replace(/(?<=.)[-_]+mcp$/i, ""));

/** How a tool's name may begin for its server, in lower case, separator left out. */
const beginnings = (server: string): string[] =>
  [server, serverPrefix(server), shortPrefix(server)].map((name) => name.toLowerCase());

/** The server of `servers` whose name begins `written`, as in `github__create_issue`; the longest one wins. */
export function ownerOf(written: string, servers: readonly string[]): string | undefined {
  const name = written.toLowerCase();
  const begins = (server: string): boolean =>
    beginnings(server).some(
      (prefix) => name.startsWith(prefix) && /^(__|[/.:])/.test(name.slice(prefix.length)),
    );
  return servers.filter(begins).sort((a, b) => b.length - a.length)[0];
}

/** What stands before a tool's name, separator included. */
export function namePrefix(server: string, prefix: ToolPrefix = "server"): string {
  if (prefix === "none") return "";
  if (prefix === "short") return `${shortPrefix(server)}${NAME_SEPARATOR}`;
  const full = `${serverPrefix(server)}${NAME_SEPARATOR}`;
  return prefix === "mcp" ? `mcp${NAME_SEPARATOR}${full}` : full;
}

/** The name a tool would have if it were alone and short enough. */
export const plainToolName = (server: string, tool: string, prefix?: ToolPrefix): string =>
  `${namePrefix(server, prefix)}${sanitize(tool)}`;

export interface NamedTool {
  server: string;
  tool: string;
  /** `server` where it is left out. */
  prefix?: ToolPrefix;
}

export interface AssignedNames {
  /** Index for index. */
  names: string[];
  /** The name is the tool's own, so that a tool of another extension may bear it too. */
  bare: boolean[];
  /** Tools that could not have the name they should have, in order. `holder`: who has it. */
  collisions: { server: string; tool: string; wanted: string; name: string; holder: string }[];
}

function withHash(plain: string, { server, tool }: NamedTool, salt: number): string {
  const hash = shortHash(`${server}\u0000${tool}${salt === 0 ? "" : `\u0000${salt}`}`);
  return `${plain.slice(0, LIMITS.toolNameChars - HASH_CHARS - 1)}_${hash}`;
}

/** The plain name, or its start and a hash where it is too long. */
const fitted = (plain: string, tool: NamedTool): string =>
  plain.length <= LIMITS.toolNameChars ? plain : withHash(plain, tool, 0);

const MODES: readonly ToolPrefix[] = ["server", "short", "none", "mcp"];

/** Whatever the tool may be called in Pi, unless another one is in its way. */
export const spellingsOf = (server: string, tool: string): string[] =>
  MODES.map((prefix) => fitted(plainToolName(server, tool, prefix), { server, tool }));

/** What may stand in Pi behind the server's part of the tool's name. */
export const localSpellingsOf = (server: string, tool: string): string[] =>
  MODES.map((prefix) =>
    fitted(plainToolName(server, tool, prefix), { server, tool }).slice(namePrefix(server, prefix).length),
  );

const isShort = ({ prefix }: NamedTool): boolean => prefix === "short" || prefix === "none";

/** The name that a tool bears in place of its own, where another extension has that. */
export const fallbackName = (server: string, tool: string): string => fittedName({ server, tool });

/** The name of a tool that is alone with it. */
export const fittedName = (tool: NamedTool): string =>
  fitted(plainToolName(tool.server, tool.tool, tool.prefix), tool);

/** The name of a tool that is not, as long as no hash meets another. */
export const hashedName = (tool: NamedTool): string =>
  withHash(plainToolName(tool.server, tool.tool, tool.prefix), tool, 0);

/**
 * Names for a whole catalog, all different. Between short names the first wins and the others get their
 * server's whole name. Where two whole names meet, each gets its hash: then a name does not depend on the
 * order in which servers answered.
 */
export function nameTools(tools: readonly NamedTool[]): AssignedNames {
  const wanted = tools.map((tool) => fitted(plainToolName(tool.server, tool.tool, tool.prefix), tool));
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

/** Short names for those that can have them: not reserved, not a whole name, not an earlier tool's. */
function shortNames(tools: readonly NamedTool[], wanted: readonly string[]): (string | undefined)[] {
  const taken = new Set(wanted.filter((_, i) => !isShort(tools[i] as NamedTool)));
  return tools.map((tool, i) => {
    const name = wanted[i] ?? "";
    if (!isShort(tool) || RESERVED.has(name.toLowerCase()) || taken.has(name)) return undefined;
    taken.add(name);
    return name;
  });
}

/** Gives every tool that has no name yet its whole one, and a hash where it is not alone with that. */
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
  // A hashed name may meet a plain one or, rarely, another hash: then both are hashed anew. A name once
  // hashed never returns to its plain form, so this ends.
  for (let salt = 0; ; salt++) {
    const uses = new Map<string, number>();
    for (const name of names) if (name !== undefined) uses.set(name, (uses.get(name) ?? 0) + 1);
    const unsettled = names.map((name, i) => !isFixed[i] && name !== undefined && uses.get(name) !== 1);
    if (!unsettled.includes(true)) return;
    tools.forEach((tool, i) => {
      if (unsettled[i]) names[i] = withHash(plain[i] ?? "", tool, salt);
    });
  }
}

/** The names alone. */
export const assignToolNames = (tools: readonly NamedTool[]): string[] => nameTools(tools).names;
