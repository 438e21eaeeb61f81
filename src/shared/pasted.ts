/**
 * What people paste behind `add`: the whole line of another program, such as `claude mcp add docs -- npx docs-mcp`, and a
 * command without a name. Also which name a command or an address proposes. Pure.
 */

/** The words that other programs and our own ways begin such a line with. */
const LEADS: readonly (readonly string[])[] = [
  ["claude", "mcp", "add"],
  ["claude", "mcp", "add-json"],
  ["codex", "mcp", "add"],
  ["gemini", "mcp", "add"],
  ["qwen", "mcp", "add"],
  ["copilot", "mcp", "add"],
  ["pi", "mcp", "add"],
  ["code", "--add-mcp"],
  ["code-insiders", "--add-mcp"],
  ["cursor", "--add-mcp"],
  ["npx", "pi-mcp-threads", "add"],
  ["pi-mcp-threads", "add"],
  ["/mcp", "add"],
];

/** Options of those programs that say nothing here: whether a file is for one folder, which is our default's place. */
const LOCAL = ["--scope=local", "-s=local"];

/** The words behind the lead of another program; the words themselves if they have none. */
export function withoutLead(words: readonly string[]): readonly string[] {
  const lead = LEADS.find((one) => one.every((word, at) => words[at] === word));
  if (lead === undefined) return words;
  const rest = words.slice(lead.length);
  return rest.flatMap((word, at) => {
    const isScope = (one: string | undefined): boolean => one === "--scope" || one === "-s";
    if (LOCAL.includes(word)) return [];
    if (isScope(word) && rest[at + 1] === "local") return [];
    return word === "local" && isScope(rest[at - 1]) ? [] : [word];
  });
}

/** A bundle of a server (MCPB, before that DXT): a ZIP file with a manifest, which only some programs install. */
export const isBundle = (word: string): boolean => /\.(?:mcpb|dxt)(?:[?#].*)?$/is.test(word);
export const UNPACK =
  'Unpack it, it is a ZIP file, and add the command that "mcp_config" of its manifest.json names, with whole paths.';

/** Programs that fetch the program that their next word names. */
const RUNNERS = /^(npx|bunx|uvx|pipx|pnpx)(\.cmd|\.exe)?$/i;
/** Programs that run a file, or do what their next word says. */
const HOSTS = /^(node|deno|bun|python3?|py|docker|podman|uv|npm|pnpm|yarn)(\.cmd|\.exe)?$/i;
/** Whether the command fetches its program from a registry of packages: `npx pkg`, `uvx pkg`, `pnpm dlx pkg`, `uv tool run pkg`. */
export const isFromRegistry = ([command = "", verb = ""]: readonly string[]): boolean => {
  const program = command.split(/[\\/]/).at(-1) ?? "";
  return (
    RUNNERS.test(program) || (/^(npm|pnpm|yarn|bun|uv)(\.cmd|\.exe)?$/i.test(program) && VERBS.test(verb))
  );
};

/** Words of such programs that name nothing. */
const VERBS = /^(run|exec|dlx|x|tool|start)$/;
const FILE = /\.(m?js|cjs|m?ts|py)$|^\.{0,2}[\\/]/i;

/** Options of `add` that such programs have as well, as `node -e` and `uv --project`. */
const SHARED = /^(-\w|--project|--cwd)(=|$)/;
export const isUrl = (word: string): boolean => /^https?:\/\//i.test(word);
const isStarter = (word: string): boolean => RUNNERS.test(word) || HOSTS.test(word);

/** Whether these words are a command or a URL where a name was expected. `isOption`: the word is an option of `add`. */
export function lacksName(
  [first = "", second, ...more]: readonly string[],
  isOption: (word: string) => boolean,
): boolean {
  if (isUrl(first)) return true;
  if (second === undefined) return false;
  // A name may be that of a program: add docker docker run ..., add docker -- docker run ...
  if (!isStarter(first) || isStarter(second) || isUrl(second)) return false;
  // npx itself takes a -- before its package.
  if (second === "--") return RUNNERS.test(first) && !isStarter(more[0] ?? "");
  if (isOption(second)) return SHARED.test(second) && !more.some((word) => word === "--" || isUrl(word));
  if (second.startsWith("-") || RUNNERS.test(first)) return true;
  return VERBS.test(second) || FILE.test(second);
}

const LONGEST = 32;
/** Words that say nothing about what the server is for. */
const EMPTY =
  /^(mcp|server|servers|api|www|app|latest|com|org|net|io|dev|ai|index|main|dist|src|build|bin|node|sse|v\d+)$/;
/** Programs that start another one, which their arguments name. */
const STARTERS =
  /(^|[\\/])(npx|npm|pnpm|yarn|bunx?|uvx?|pipx|deno|node|python3?|docker|podman|sh|bash|cmd|env)(\.exe|\.cmd)?$/i;
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
