/**
 * What other programs write, turned into our own entries. Pure. A host's values are literal where ours
 * are not: a leading `!` is escaped, and its own variables are replaced.
 */
import { type ConfigFacts, pathsOf } from "./paths.ts";
import type { HostName } from "./schema.ts";

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

type Convert = (entry: Data) => Data;

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

/** VS Code allows numbers and null in `env`. */
const fromVscode: Convert = (entry) => {
  const env = isData(entry.env) ? compact(entry.env) : undefined;
  const texts = env && Object.entries(env).map(([key, value]) => [key, String(value)]);
  return { ...fromCommon(entry), env: texts && Object.fromEntries(texts) };
};

const fromCodex: Convert = (entry) => {
  const fromEnv = isData(entry.env_http_headers) ? entry.env_http_headers : {};
  const headers = {
    ...(isData(entry.http_headers) ? entry.http_headers : {}),
    // A header whose variable is not set is not sent.
    ...Object.fromEntries(Object.entries(fromEnv).map(([header, name]) => [header, `\${${name}:-}`])),
  };
  const oauth = isData(entry.oauth) ? entry.oauth : {};
  const scope = Array.isArray(entry.scopes) ? entry.scopes.join(" ") : undefined;
  return {
    ...pick(entry, ["command", "args", "env", "cwd", "url", "enabled"]),
    headers: Object.keys(headers).length > 0 ? headers : undefined,
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

/** Every text in a value, however deep, changed. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (!isData(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}

/** Replaces the host's own variables by what they stand for, or by ours. */
function replacer(host: HostName, facts: ConfigFacts): (text: string) => string {
  // There a variable that is not set is empty.
  if (host === "opencode") return (text) => text.replace(/\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g, "$${$1:-}");
  const { basename, sep } = pathsOf(facts.platform);
  const own: Record<string, string> = {
    userHome: facts.home,
    workspaceFolder: facts.cwd,
    workspaceFolderBasename: basename(facts.cwd),
    pathSeparator: sep,
    "/": sep,
  };
  return (text) =>
    text.replace(/\$\{([A-Za-z]+|\/)\}/g, (whole, name: string) =>
      Object.hasOwn(own, name) ? (own[name] ?? whole) : whole,
    );
}

/** Values that could be a `!command` in our own files. */
const COMMAND_KEYS = ["env", "headers", "url", "oauth"];

function finish(entry: Data, replace: (text: string) => string): Data {
  const literal = (text: string): string => replace(text).replace(/^!/, "!!");
  const finished = Object.entries(entry).map(([key, value]) => [
    key,
    mapTexts(value, COMMAND_KEYS.includes(key) ? literal : replace),
  ]);
  return compact(Object.fromEntries(finished));
}

/** What an entry needs that only its own program has. */
function unusableReason(entry: Data): string | undefined {
  const { command, args, env, environment, url, headers } = entry;
  const text = JSON.stringify([command, args, env, environment, url, headers]);
  if (text.includes("${input:")) return "it asks for an ${input:...}";
  if (/\{file:|\$\{file:/.test(text)) return "it reads a value from a file";
  if (entry.headersHelper !== undefined) return "it gets its headers from a helper";
  return undefined;
}

const CONVERT: Record<HostName, Convert> = {
  cursor: fromCommon,
  "claude-code": fromCommon,
  "claude-desktop": fromCommon,
  windsurf: fromCommon,
  vscode: fromVscode,
  codex: fromCodex,
  opencode: fromOpencode,
};

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
  const projects = isData(root.projects) ? root.projects : {};
  const local = Object.hasOwn(projects, facts.cwd) ? projects[facts.cwd] : undefined;
  if (!isData(local)) return [own];
  return [own, { path: ["projects", facts.cwd, "mcpServers"], servers: local.mcpServers }];
}

/** Entries of a parsed host file, in our shape. What is no object of servers is left out. */
export function hostEntries(host: HostName, root: unknown, facts: ConfigFacts): HostEntry[] {
  if (!isData(root)) return [];
  const replace = replacer(host, facts);
  return groupsOf(host, root, facts).flatMap(({ path, servers }) =>
    Object.entries(isData(servers) ? servers : {}).map(([name, entry]): HostEntry => {
      const at = { path: [...path, name], name };
      if (!isData(entry)) return { ...at, raw: entry };
      const unusable = unusableReason(entry);
      const raw = finish(CONVERT[host](entry), replace);
      return unusable === undefined ? { ...at, raw } : { ...at, raw, unusable };
    }),
  );
}
