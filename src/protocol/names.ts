/**
 * How an MCP tool is named in Pi: `<server>__<tool>`, at most 64 characters of `[A-Za-z0-9_-]`, unique,
 * and the same from one start to the next.
 */
import { LIMITS } from "./limits.ts";

const HASH_CHARS = 6;

/** Between the server's part of a name and the tool's. */
export const NAME_SEPARATOR = "__";

/** FNV-1a, 32 bit: a short, stable mark. Not for security. */
export function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0).toString(36).padStart(HASH_CHARS, "0").slice(-HASH_CHARS);
}

const sanitize = (text: string): string => text.replace(/[^A-Za-z0-9_-]/g, "_");

/** Prefix of a server's tools: its name with hyphens and foreign characters as underscores. */
export const serverPrefix = (server: string): string => sanitize(server).replaceAll("-", "_");

/** The name a tool would have if it were alone and short enough. */
export const plainToolName = (server: string, tool: string): string =>
  `${serverPrefix(server)}${NAME_SEPARATOR}${sanitize(tool)}`;

/** The server of `servers` whose name begins `written`, as in `github__create_issue`; the longest one wins. */
export function ownerOf(written: string, servers: readonly string[]): string | undefined {
  const name = written.toLowerCase();
  const begins = (server: string): boolean =>
    [server.toLowerCase(), serverPrefix(server).toLowerCase()].some(
      (prefix) => name.startsWith(prefix) && /^(__|[/.:])/.test(name.slice(prefix.length)),
    );
  return servers.filter(begins).sort((a, b) => b.length - a.length)[0];
}

function hashedName(plain: string, server: string, tool: string, salt: number): string {
  const hash = shortHash(`${server}\u0000${tool}${salt === 0 ? "" : `\u0000${salt}`}`);
  return `${plain.slice(0, LIMITS.toolNameChars - HASH_CHARS - 1)}_${hash}`;
}

/**
 * Names for a whole catalog, index for index; all different, whatever servers name their tools. A name that
 * is too long is cut and ends in a hash; where two tools would share a name, each of them gets its hash, so
 * that a name never depends on the order in which servers answered.
 */
export function assignToolNames(tools: readonly { server: string; tool: string }[]): string[] {
  const plain = tools.map(({ server, tool }) => plainToolName(server, tool));
  const names = plain.map((name) => (name.length <= LIMITS.toolNameChars ? name : undefined));
  // A hashed name may meet a plain one or, rarely, another hash: then both are hashed anew. A name once
  // hashed never returns to its plain form, so this ends.
  for (let salt = 0; ; salt++) {
    const uses = new Map<string, number>();
    for (const name of names) if (name !== undefined) uses.set(name, (uses.get(name) ?? 0) + 1);
    const unsettled = names.map((name) => name === undefined || uses.get(name) !== 1);
    if (!unsettled.includes(true)) return names.map((name) => name ?? "");
    tools.forEach(({ server, tool }, i) => {
      if (unsettled[i]) names[i] = hashedName(plain[i] ?? "", server, tool, salt);
    });
  }
}
