/**
 * What people paste behind `add`: the whole line of another program, such as `claude mcp add docs -- npx docs-mcp`, a link that
 * installs a server, and a command without a name. Also which name a command or an address proposes. Pure.
 */

/** The words that programs and our own ways begin such a line with, beside `<program> mcp add`. */
const LEADS: readonly (readonly string[])[] = [
  ["code", "--add-mcp"],
  ["code-insiders", "--add-mcp"],
  ["cursor", "--add-mcp"],
  ["npx", "pi-mcp-threads", "add"],
  ["pi-mcp-threads", "add"],
  ["/mcp", "add"],
];

/** Options of those programs that say nothing here: whether a file is for one folder, which is our default's place. */
const LOCAL = ["--scope=local", "-s=local"];

/** Programs that take out a `--` wherever it stands, and several values behind one `--env`. */
const LOOSE = ["claude", "gemini", "qwen"];

const leadOf = ([program = "", ...words]: readonly string[]): number =>
  /^[\w.-]+$/.test(program) && words[0] === "mcp" && /^add(-json)?$/.test(words[1] ?? "")
    ? 3
    : (LEADS.find((lead) => lead.every((word, at) => [program, ...words][at] === word))?.length ?? 0);

/** The words behind the lead of another program; the words themselves if they have none. `isLoose`: as LOOSE says. */
export function withoutLead(words: readonly string[]): { words: readonly string[]; isLoose: boolean } {
  const length = leadOf(words);
  if (length === 0) return { words, isLoose: false };
  const rest = words.slice(length);
  const isScope = (one: string | undefined): boolean => one === "--scope" || one === "-s";
  const kept = rest.filter(
    (word, at) =>
      !LOCAL.includes(word) &&
      !(isScope(word) && rest[at + 1] === "local") &&
      !(word === "local" && isScope(rest[at - 1])),
  );
  return { words: kept, isLoose: LOOSE.includes(words[0] ?? "") };
}

/** Links behind "Install in VS Code" and "Add to Cursor". */
const INSTALL =
  /^(?:cursor|vscode(?:-insiders)?):[^?]*\?|^https:\/\/[^?]*\/(?:mcp\/install|install-mcp)\/?\?/i;

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The text in base64 (RFC 4648, section 4). Throws if it is none. Here no type of Node or of a browser decodes it. */
function fromBase64(text: string): string {
  let escaped = "";
  let bits = 0;
  let held = 0;
  for (const digit of text) {
    if (digit === "=") break;
    const value = DIGITS.indexOf(digit);
    if (value === -1) throw new Error(`${digit} is no digit of base64`);
    bits = (bits << 6) | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    escaped += `%${(bits >> held).toString(16).padStart(2, "0")}`;
    bits &= (1 << held) - 1;
  }
  return decodeURIComponent(escaped);
}

/** A longer link installs nothing. Browsers and programs cut links far below. */
const LINK_CHARS = 400_000;

/** The JSON in a link that installs a server: as text, or in base64. Undefined: it is no such link; empty: it holds none. */
export function linkedJson(word: string): string | undefined {
  const [start] = INSTALL.exec(word) ?? [];
  if (start === undefined) return undefined;
  if (word.length > LINK_CHARS) return "";
  const parts = word.slice(start.length).split("&");
  const partOf = (name: string): string | undefined =>
    parts.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);
  try {
    const config = decodeURIComponent(partOf("config") ?? parts[0] ?? "");
    const entry: unknown = JSON.parse(config.startsWith("{") ? config : fromBase64(config));
    const name = partOf("name");
    return JSON.stringify({ ...(entry as object), ...(name && { name: decodeURIComponent(name) }) });
  } catch {
    return "";
  }
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
  // Docker's gateway.
  return VERBS.test(second) || FILE.test(second) || second === "mcp";
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
