/**
 * Servers that `add` offers by name, in Pi and in a shell: data alone, nothing is fetched. To add one: a row, with the page of its makers
 * that says how it is started and where its key comes from. Pure.
 */
import type { JsonValue } from "./protocol/errors.ts";
import type { ServerEntry } from "./protocol/person.ts";
import { parseAdd } from "./setup.ts";

export interface KnownServer {
  name: string;
  /** What it is for, in a few words. */
  about: string;
  entry: ServerEntry;
  /**
   * What it needs beside the entry: a sign-in, or the variable of a key and the page where that is made. `optionalHeader`:
   * it works without the key, and takes it in this header.
   */
  needs?: { signIn: true } | { variable: string; from: string; optionalHeader?: string };
  /** The sandbox in which it does its work, as it was tried (docs/sandbox.md). Absent: it needs more, or is remote. */
  sandbox?: JsonValue;
  /** The page of its makers. */
  source: string;
}

const REFERENCE = "https://github.com/modelcontextprotocol/servers";
const signIn = { signIn: true } as const;

export const KNOWN_SERVERS: readonly KnownServer[] = [
  {
    name: "filesystem",
    about: "read and write files below this folder",
    entry: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] },
    sandbox: { write: ["."] },
    source: `${REFERENCE}/tree/main/src/filesystem`,
  },
  {
    name: "memory",
    about: "remember facts from one session to the next",
    entry: { command: "npx", args: ["-y", "@modelcontextprotocol/server-memory"] },
    source: `${REFERENCE}/tree/main/src/memory`,
  },
  {
    name: "playwright",
    about: "drive a browser",
    entry: { command: "npx", args: ["-y", "@playwright/mcp@latest"] },
    source: "https://github.com/microsoft/playwright-mcp",
  },
  {
    name: "chrome-devtools",
    about: "inspect pages in Chrome",
    entry: { command: "npx", args: ["-y", "chrome-devtools-mcp@latest"] },
    source: "https://github.com/ChromeDevTools/chrome-devtools-mcp",
  },
  {
    name: "deepwiki",
    about: "ask about public GitHub repositories",
    entry: { url: "https://mcp.deepwiki.com/mcp" },
    source: "https://docs.devin.ai/work-with-devin/deepwiki-mcp",
  },
  {
    name: "context7",
    about: "current documentation of libraries",
    entry: { url: "https://mcp.context7.com/mcp" },
    needs: {
      variable: "CONTEXT7_API_KEY",
      from: "https://context7.com/dashboard",
      optionalHeader: "CONTEXT7_API_KEY",
    },
    source: "https://context7.com/docs/resources/all-clients",
  },
  {
    name: "github",
    about: "repositories, issues and pull requests",
    entry: { url: "https://api.githubcopilot.com/mcp/", bearerTokenEnv: "GITHUB_PERSONAL_ACCESS_TOKEN" },
    needs: {
      variable: "GITHUB_PERSONAL_ACCESS_TOKEN",
      from: "https://github.com/settings/personal-access-tokens/new",
    },
    source: "https://github.com/github/github-mcp-server",
  },
  {
    name: "notion",
    about: "pages and databases of Notion",
    entry: { url: "https://mcp.notion.com/mcp" },
    needs: signIn,
    source: "https://developers.notion.com/docs/mcp",
  },
  {
    name: "linear",
    about: "issues and projects of Linear",
    entry: { url: "https://mcp.linear.app/mcp" },
    needs: signIn,
    source: "https://linear.app/docs/mcp",
  },
  {
    name: "sentry",
    about: "errors and releases of Sentry",
    entry: { url: "https://mcp.sentry.dev/mcp" },
    needs: signIn,
    source: "https://docs.sentry.io/product/sentry-mcp/",
  },
];

export const knownServer = (name: string): KnownServer | undefined =>
  KNOWN_SERVERS.find((known) => known.name === name.toLowerCase());

/** For example `github: repositories, issues and pull requests (a key)`. */
export function knownText({ name, about, needs }: KnownServer): string {
  const key =
    needs && "variable" in needs ? (needs.optionalHeader ? "a key, if you have one" : "a key") : "a sign-in";
  return `${name}: ${about}${needs === undefined ? "" : ` (${key})`}`;
}

/** What `add` makes of the words; a name alone can be that of a known server, and options beside it count for that one. */
export function parseKnown(words: readonly string[]): ReturnType<typeof parseAdd> {
  const parsed = parseAdd(words);
  const known = "problem" in parsed ? knownServer(parsed.instead?.bare ?? "") : undefined;
  return known ? ofKnown(known, words) : parsed;
}

/** `words`: its name and options, without a command or a URL. */
function ofKnown(known: KnownServer, words: readonly string[]): ReturnType<typeof parseAdd> {
  const { command, args, url } = known.entry;
  const target = url === undefined ? [command, ...(Array.isArray(args) ? args : [])] : [url];
  const parsed = parseAdd([...words, ...(words.includes("--") ? [] : ["--"]), ...target.map(String)]);
  if ("problem" in parsed) return parsed;
  const entry = { ...known.entry, ...parsed.add.entry };
  if (entry.sandbox === true) entry.sandbox = known.sandbox ?? true;
  return { add: { ...parsed.add, name: known.name, entry } };
}
