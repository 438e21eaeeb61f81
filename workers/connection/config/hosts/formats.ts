/**
 * What other programs write, turned into our own entries. Pure. Its values are translated by
 * host-values.ts: what is literal there stays so here.
 */

import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts } from "../files/files.ts";
import { headerVariable, translateEntry, unusableReason } from "./values.ts";

type Data = Record<string, unknown>;

export interface HostEntry {
  /** Where it stands in the file. */
  path: string[];
  name: string;
  /** An entry of our own shape. */
  raw: unknown;
  /** Why it cannot be used here. */
  unusable?: string;
}

export const isData = (value: unknown): value is Data =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const compact = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined && value !== null));

const seconds = (value: unknown): unknown => (typeof value === "number" ? value * 1_000 : undefined);

/** `streamableHttp`, `streamable_http` and the like. */
const typeOf = (type: unknown): unknown =>
  typeof type === "string" && /^streamable.?http$/i.test(type) ? "streamable-http" : type;

const pick = (entry: Data, keys: readonly string[]): Data =>
  Object.fromEntries(keys.map((key) => [key, entry[key]]));

const SHARED_KEYS = ["command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"] as const;

type Convert = (entry: Data) => Data;

/** An entry, and headers whose values are variables of these names. */
interface Converted {
  entry: Data;
  headersFromEnv: Data;
}

/** Cursor, Claude, Windsurf and VS Code write nearly the same entry. */
const fromCommon: Convert = (entry) => {
  const auth = isData(entry.auth) ? entry.auth : {};
  const ownOauth = isData(entry.oauth) ? pick(entry.oauth, ["clientId", "callbackPort", "scope"]) : {};
  const scopes = Array.isArray(auth.scopes) ? auth.scopes.join(" ") : undefined;
  const oauth = compact({
    ...ownOauth,
    clientId: auth.CLIENT_ID ?? ownOauth.clientId,
    clientSecret: auth.CLIENT_SECRET,
    scope: scopes ?? ownOauth.scope,
  });
  return {
    ...pick(entry, SHARED_KEYS),
    url: entry.url ?? entry.serverUrl,
    type: typeOf(entry.type),
    excludeTools: entry.disabledTools,
    oauth: Object.keys(oauth).length > 0 ? oauth : undefined,
  };
};

/** `envFile` is for local servers only. */
const fromCursor: Convert = (entry) => ({
  ...fromCommon(entry),
  envFile: entry.command === undefined ? undefined : entry.envFile,
});

/** VS Code allows numbers and null in `env`. */
const fromVscode: Convert = (entry) => {
  const env = isData(entry.env) ? compact(entry.env) : undefined;
  const texts = env && Object.entries(env).map(([key, value]) => [key, String(value)]);
  return { ...fromCursor(entry), env: texts && Object.fromEntries(texts) };
};

const fromCodex: Convert = (entry) => {
  const oauth = isData(entry.oauth) ? entry.oauth : {};
  const scope = Array.isArray(entry.scopes) ? entry.scopes.join(" ") : undefined;
  return {
    ...pick(entry, ["command", "args", "env", "cwd", "url", "enabled"]),
    headers: entry.http_headers,
    bearerTokenEnv: entry.bearer_token_env_var,
    startupTimeoutMs: seconds(entry.startup_timeout_sec) ?? entry.startup_timeout_ms,
    requestTimeoutMs: seconds(entry.tool_timeout_sec),
    includeTools: entry.enabled_tools,
    excludeTools: entry.disabled_tools,
    oauth:
      oauth.client_id === undefined && scope === undefined
        ? undefined
        : compact({ clientId: oauth.client_id, scope }),
  };
};

const fromOpencode: Convert = (entry) => {
  const { command } = entry;
  const words = Array.isArray(command) ? command : command === undefined ? [] : [command];
  return {
    command: words[0],
    args: words.length > 1 ? words.slice(1) : undefined,
    env: entry.environment,
    ...pick(entry, ["cwd", "url", "headers", "enabled", "disabled"]),
    // In version 1 the milliseconds to list the tools.
    startupTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
    oauth: isData(entry.oauth) ? pick(entry.oauth, ["clientId", "clientSecret", "scope"]) : entry.oauth,
  };
};

const CONVERT: Record<HostName, Convert> = {
  cursor: fromCursor,
  "claude-code": fromCommon,
  "claude-desktop": fromCommon,
  windsurf: fromCommon,
  vscode: fromVscode,
  codex: fromCodex,
  opencode: fromOpencode,
};

function convert(host: HostName, entry: Data): Converted {
  const headersFromEnv = host === "codex" && isData(entry.env_http_headers) ? entry.env_http_headers : {};
  return { entry: CONVERT[host](entry), headersFromEnv };
}

function toOwnEntry(host: HostName, { entry, headersFromEnv }: Converted, facts: ConfigFacts): Data {
  const translated = translateEntry(host, entry, facts);
  const variables = Object.entries(headersFromEnv).map(([header, name]) => [header, headerVariable(name)]);
  const headers = isData(translated.headers) ? translated.headers : {};
  const all = { ...headers, ...Object.fromEntries(variables) };
  return compact(variables.length === 0 ? translated : { ...translated, headers: all });
}

/** How Claude Code writes a folder: on Windows with either slash, and the drive letter in either case. */
function sameFolder(a: string, b: string, { platform }: ConfigFacts): boolean {
  if (platform !== "win32") return a === b;
  const plain = (path: string): string => path.replaceAll("/", "\\").replace(/\\+$/, "").toLowerCase();
  return plain(a) === plain(b);
}

/** Claude Code's entries of this very folder: on Windows there may be several, the one spelt as here last. */
function localEntries(root: Data, facts: ConfigFacts): [folder: string, entry: Data][] {
  const { cwd } = facts;
  return Object.entries(isData(root.projects) ? root.projects : {})
    .filter((entry): entry is [string, Data] => isData(entry[1]) && sameFolder(entry[0], cwd, facts))
    .sort(([a], [b]) => Number(a === cwd) - Number(b === cwd));
}

/** Names that Claude Code's `/mcp` switched off in this folder. */
function switchedOff(host: HostName, root: Data, facts: ConfigFacts): ReadonlySet<unknown> {
  if (host !== "claude-code") return new Set();
  return new Set(
    localEntries(root, facts).flatMap(([, { disabledMcpServers: names }]) =>
      Array.isArray(names) ? names : [],
    ),
  );
}

/** The objects of servers in a host's file, later ones winning, each with its path. */
function groupsOf(host: HostName, root: Data, facts: ConfigFacts): { path: string[]; servers: unknown }[] {
  if (host === "vscode") return [{ path: ["servers"], servers: root.servers }];
  if (host === "codex") return [{ path: ["mcp_servers"], servers: root.mcp_servers }];
  if (host === "opencode") {
    const mcp = isData(root.mcp) ? root.mcp : {};
    const nested = isData(mcp.servers) && typeof mcp.servers.type !== "string";
    if (!nested) return [{ path: ["mcp"], servers: root.mcp }];
    const { servers, timeout: _, ...plain } = mcp;
    return [
      { path: ["mcp"], servers: plain },
      { path: ["mcp", "servers"], servers },
    ];
  }
  const own = { path: ["mcpServers"], servers: root.mcpServers };
  if (host !== "claude-code") return [own];
  const local = localEntries(root, facts).map(([folder, { mcpServers: servers }]) => ({
    path: ["projects", folder, "mcpServers"],
    servers,
  }));
  return [own, ...local];
}

/**
 * Entries of a parsed host file, in our shape: the first `most`. `given`: how many the file has. What is no object of
 * servers is left out.
 */
export function hostEntries(
  host: HostName,
  root: unknown,
  facts: ConfigFacts,
  most: number = Number.POSITIVE_INFINITY,
): { entries: HostEntry[]; given: number } {
  if (!isData(root)) return { entries: [], given: 0 };
  const off = switchedOff(host, root, facts);
  const written = groupsOf(host, root, facts).flatMap(({ path, servers }) =>
    Object.entries(isData(servers) ? servers : {}).map(([name, entry]) => ({ path, name, entry })),
  );
  const entries = written.slice(0, most).map(({ path, name, entry }): HostEntry => {
    const at = { path: [...path, name], name };
    if (!isData(entry)) return { ...at, raw: entry };
    const unusable = unusableReason(host, entry);
    const converted = toOwnEntry(host, convert(host, entry), facts);
    const raw = off.has(name) ? { ...converted, enabled: false } : converted;
    return unusable === undefined ? { ...at, raw } : { ...at, raw, unusable };
  });
  return { entries, given: written.length };
}
