/** A short name for a server, from its command or its URL. Pure. */

const LONGEST = 32;
/** Words that say nothing about what the server is for. */
const EMPTY =
  /^(mcp|server|servers|api|www|app|latest|com|org|net|io|dev|ai|index|main|dist|src|build|bin|node|sse|v\d+)$/;
/** Programs that start another one, which their arguments name. */
const STARTERS =
  /(^|[\\/])(npx|npm|pnpm|yarn|bunx?|uvx?|pipx|deno|node|python3?|docker|podman|sh|bash|cmd|env)(\.exe|\.cmd)?$/i;
/** Words of starters that name nothing. */
const VERBS = /^(run|exec|dlx|x|tool|start)$/;

const plain = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "" && !EMPTY.test(word) && !/^\d+$/.test(word));

function fromUrl(url: string): string[] {
  const [, host = "", path = ""] = /^https?:\/\/(?:[^/?#@]*@)?([^/?#:]*)[^/?#]*([^?#]*)/i.exec(url) ?? [];
  const words = plain(host.replace(/\.[a-z]+$/i, ""));
  return words.length > 0 ? words.slice(-1) : plain(path);
}

/** `@scope/name@1.2` and `path/to/name.js` -> the words of their name, or else of the scope. */
function fromWord(word: string): string[] {
  const [, scope = "", name = ""] = /^(?:@([^/]+)\/)?(.*?)(?:@[^/@]*)?$/.exec(word) ?? [];
  const last = name.split(/[\\/]/).findLast((part) => plain(part.replace(/\.\w+$/, "")).length > 0) ?? "";
  const words = plain(last.replace(/\.(m?js|c?js|ts|py|sh|exe|cmd)$/, ""));
  return words.length > 0 ? words : plain(scope);
}

/** `target`: the command with its arguments, or the URL. */
export function proposedName(target: readonly string[]): string {
  const [first = "", ...args] = target;
  const candidates = STARTERS.test(first)
    ? args.filter((arg) => !arg.startsWith("-") && !VERBS.test(arg))
    : [first];
  const words = /^https?:/i.test(first) ? fromUrl(first) : fromWord(candidates[0] ?? first);
  return words.join("-").slice(0, LONGEST).replace(/-$/, "") || "server";
}
