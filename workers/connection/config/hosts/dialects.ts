/**
 * Everything that is peculiar to a program whose servers can be imported: one row of DIALECTS for each, of data and pure
 * functions. Reading, checking and translating are the same for all of them (hosts.ts). Sources: code.claude.com/docs/en/mcp;
 * cursor.com/docs, Config interpolation; docs.windsurf.com, Config Interpolation; code.visualstudio.com/docs/reference and
 * extHostMcpNode.ts of VS Code; config.ts and paths.ts of OpenCode and opencode.ai/docs/config; Codex's mcp_types.rs; Gemini CLI's
 * docs/tools/mcp-server.md and its resolver of variables; docs.github.com/copilot, Adding MCP servers for GitHub Copilot CLI.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { isNeeded } from "../entry/inherit-env.ts";
import { escapeVariables, pathsOf } from "../entry/interpolate.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { HostName } from "../entry/schema.ts";
import { isOfPrograms } from "../env-files/deciding-variables.ts";
import type { ConfigFacts } from "../files/sources.ts";

export type Data = Record<string, unknown>;

/** Where programs keep files, on the platform of the facts. */
interface HostFolders {
  facts: ConfigFacts;
  join: (...parts: string[]) => string;
  /** `~/.config`, or the folder that `XDG_CONFIG_HOME` names. */
  config: string;
  /** Where desktop programs keep settings; another folder on each platform. */
  appData: string;
}

/** Paths of one program's files, lowest precedence first. `userLast`: files of the user that win over the project's. */
interface HostFiles {
  user: string[];
  /** Files of the project, found from the working folder. */
  project: string[];
  userLast?: string[];
}

/** A program's variables. `pattern`: global, with the variable as first group. */
export interface Syntax {
  pattern: RegExp;
  /** The keys in which variables are filled in; default: all that hold values. */
  keys?: readonly string[];
  /** A variable may have no brace at its end. */
  isBare?: true;
  /** The value of a variable, or a variable of ours for it. Undefined: the program takes the text literally. */
  fill: (variable: string) => { value: string } | { ours: string } | undefined;
}

export interface Dialect extends Format {
  /** How people call the program. */
  title: string;
  files(folders: HostFolders): HostFiles;
  /** The program looks for files in the folders above the working folder, up to the worktree's root. */
  looksUp?: true;
}

/** How servers are written in files that are not ours, or that a package brings. */
export interface Format {
  /** The format of the files; default: JSON with comments. */
  format?: "toml";
  /** Why nothing of a file can be used. */
  refuses?(root: Data): string | undefined;
  /** Values mean what they mean in our own files. */
  isOurs?: true;
  /** The server's name here; default: as it is written. */
  name?(written: string): string;
  /** The program merges its files key by key: an entry without a target changes one of an earlier file. */
  mergesEntries?: true;
  /** The objects of servers in a file; later ones win. */
  groups(root: Data, facts: ConfigFacts): { path: string[]; servers: unknown }[];
  /** Names of servers that the program itself has disabled. */
  disabled?(root: Data, facts: ConfigFacts): ReadonlySet<unknown>;
  /** An entry in our shape. The values are still the program's. `root`: the file that holds the entry. */
  convert(entry: Data, root: Data, facts: ConfigFacts): Data;
  /** What of a usable entry does not count here. */
  differs?(entry: Data, root: Data, facts: ConfigFacts): Pick<Mistake, "message" | "remedy"> | undefined;
  /** Headers whose values are the variables of these names: header -> name. */
  headersFromEnv?(entry: Data): unknown;
  /** Names of variables that a local server gets as they are, if they are set. */
  passesOn?(entry: Data): unknown;
  /** Without it the program fills in nothing. `key`: of our entry, whose values are filled in. */
  syntax?(facts: ConfigFacts, key: string): Syntax;
  /** A leading `~/` in `args` is the home folder. */
  expandsHomeInArgs?: true;
  /** Variables that only the program can fill in; global, with the variable as first group. */
  foreign?: RegExp;
  /** `${file:...}` names a file that is open in the program; in other programs it is a file that holds the value. */
  namesOpenFile?: true;
  /** Why the entry cannot be used here, apart from foreign variables. */
  unusable?(entry: Data): string | undefined;
}

/** Without the keys that hold nothing. */
export const compact = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined && value !== null));

const pick = (entry: Data, ...keys: string[]): Data =>
  Object.fromEntries(keys.map((key) => [key, entry[key]]));

export const objectAt = (value: unknown): Data => (isObject(value) ? value : {});

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const isVariableName = (name: unknown): name is string => typeof name === "string" && NAME.test(name);

/** `${env:X}`. */
export const isEnvVariable = (variable: string): boolean =>
  variable.startsWith("env:") && NAME.test(variable.slice("env:".length));

/** The variables of an editor, beside those of the environment. */
function editorVariables({ platform, home, cwd }: ConfigFacts): Record<string, string> {
  const { basename, sep } = pathsOf(platform);
  const workspace = { workspaceFolder: cwd, workspaceFolderBasename: basename(cwd) };
  return { userHome: home, ...workspace, pathSeparator: sep, "/": sep };
}

/** An entry of VS Code that it runs in its sandbox. */
const wantsRoom = ({ sandboxEnabled, command }: Data): boolean =>
  sandboxEnabled === true && command !== undefined;

const hasRooms = ({ platform }: ConfigFacts): boolean => platform === "linux" || platform === "darwin";

/** Variables of shells and desktops, beside those that every program needs. */
const OF_SHELLS = ["PWD", "OLDPWD", "SHLVL", "HOSTNAME", "NAME", "LANGUAGE", "DISPLAY"];

/** Whether a variable of this name may be set although nobody has set it for a server. */
const isOfSystem = (name: string): boolean =>
  OF_SHELLS.includes(name) || isOfPrograms(name) || isNeeded(name);

/**
 * Our variable for a question of an editor: `perplexity-key` is PERPLEXITY_KEY, and `path` is INPUT_PATH, because PATH is
 * something else. Nobody is asked at a start, so the person sets it once; undefined: the question has no name of which one can be
 * made.
 */
export function inputVariable(id: string): string | undefined {
  const name = id
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^(\d)/, "_$1")
    .toUpperCase()
    .slice(0, 60);
  if (!/[A-Z]/.test(name)) return undefined;
  return isOfSystem(name) ? `INPUT_${name}` : name;
}

/**
 * `${env:X}`, `${input:x}` and these variables. `unset`: what stands behind our variable's name, for one that is not set.
 */
const editorSyntax = (known: Record<string, string>, unset: ":-" | "" = ""): Syntax => ({
  pattern: /\$\{([^${}]+)\}/g,
  fill: (variable) => {
    if (Object.hasOwn(known, variable)) return { value: known[variable] ?? "" };
    const input = variable.startsWith("input:") ? inputVariable(variable.slice("input:".length)) : undefined;
    if (input !== undefined) return { ours: `\${${input}}` };
    return isEnvVariable(variable) ? { ours: `\${${variable}${unset}}` } : undefined;
  },
});

const withDefault = (name: string, fallback: string): { ours: string } => ({
  ours: `\${${name}:-${escapeVariables(fallback)}}`,
});

/** `${X}` and `${X:-default}`, in one pass: a default is literal. */
const claudeSyntax: Syntax = {
  pattern: /\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\}/g,
  fill: (variable) => {
    const [name = "", ...fallback] = variable.split(":-");
    return fallback.length === 0 ? { ours: `\${${name}}` } : withDefault(name, fallback.join(":-"));
  },
};

/**
 * `$X`, `${X}` and `${X:-default}`, of which the default is literal. What is not set stays as it is written; a name in capitals
 * is meant as a variable all the same, so that the person learns that it is not set.
 */
const shellSyntax = ({ env }: ConfigFacts): Syntax => ({
  pattern: /\$(\{[^{}]+\}|\w+)/g,
  isBare: true,
  fill: (variable) => {
    const [name = "", ...fallback] = variable.replace(/^\{|\}$/g, "").split(":-");
    if (!NAME.test(name)) return undefined;
    if (fallback.length > 0) return withDefault(name, fallback.join(":-"));
    const isMeant = env[name] !== undefined || /^[A-Z][A-Z0-9_]*$/.test(name);
    return isMeant ? { ours: `\${${name}}` } : undefined;
  },
});

/** A list of texts as one text. Anything else stays, so that the check of the entry finds it. */
const scopeText = (scopes: unknown): unknown =>
  Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string") ? scopes.join(" ") : scopes;

/**
 * The keys of an OAuth client in our words; undefined if the entry says nothing. A client is registered with the redirect
 * URI of its program, so that a client id or a port alone already means that URI.
 */
function oauthOf(data: Data, redirectUri?: (port: number | undefined) => string): Data | undefined {
  const oauth = compact(data);
  if (Object.keys(oauth).length === 0) return undefined;
  const { clientId, callbackPort: port } = oauth;
  const isNumber = port === undefined || typeof port === "number";
  if (!redirectUri || oauth.redirectUri !== undefined || !isNumber) return oauth;
  return clientId === undefined && port === undefined ? oauth : { ...oauth, redirectUri: redirectUri(port) };
}

/** `oauth` as several programs write it, and `auth` as Cursor does. Cursor's own redirect URI opens Cursor. */
function commonOauth({ oauth, auth }: Data, redirectUri?: Parameters<typeof oauthOf>[1]): Data | undefined {
  const own = objectAt(oauth);
  const client = objectAt(auth);
  const keys = {
    ...pick(own, "clientId", "clientSecret", "callbackPort", "redirectUri", "authServerMetadataUrl"),
    clientId: client.CLIENT_ID ?? own.clientId,
    clientSecret: client.CLIENT_SECRET ?? own.clientSecret,
    scope: scopeText(client.scopes) ?? own.scope ?? scopeText(own.scopes),
  };
  return oauthOf(keys, redirectUri);
}

/** On loopback, a URI without a port stands for any port (RFC 8252, section 7.3). */
const withAnyPort = (uri: unknown): unknown =>
  typeof uri === "string"
    ? uri.replace(/^(http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]))(?=\/|$)/, "$1:{port}")
    : uri;

/** Codex has a callback for all servers in `root`, and one in an entry's `oauth`. */
function codexOauth({ url, oauth, scopes, oauth_resource }: Data, root: Data): Data | undefined {
  if (url === undefined) return undefined;
  const own = objectAt(oauth);
  return oauthOf({
    clientId: own.client_id,
    scope: scopeText(scopes),
    resource: oauth_resource,
    callbackPort: own.callback_port ?? root.mcp_oauth_callback_port,
    redirectUri: withAnyPort(own.callback_url ?? root.mcp_oauth_callback_url),
  });
}

const OPENCODE_OAUTH = ["clientId", "clientSecret", "scope", "callbackPort", "redirectUri"];

const mcpServers: Dialect["groups"] = (root) => [{ path: ["mcpServers"], servers: root.mcpServers }];

/** `streamableHttp`, `streamable_http` and the like. */
const typeOf = (type: unknown): unknown =>
  typeof type === "string" && /^streamable.?http$/i.test(type) ? "streamable-http" : type;

/** The entry of Cursor, Claude, Windsurf and VS Code. `oauth`: the program's OAuth client in our keys. */
const fromCommon = (entry: Data, oauth: Data | undefined = commonOauth(entry)): Data => ({
  ...pick(entry, "command", "args", "env", "cwd", "headers", "disabled", "enabled"),
  url: entry.url ?? entry.serverUrl,
  type: typeOf(entry.type),
  excludeTools: entry.disabledTools,
  oauth,
});

/** Only local servers have an `envFile`. */
const envFileOf = ({ command, envFile }: Data): Data => (command === undefined ? {} : { envFile });

/** Claude Code writes a folder on Windows with either slash, and the drive letter in either case. */
function sameFolder(a: string, b: string, { platform }: ConfigFacts): boolean {
  if (platform !== "win32") return a === b;
  const plain = (path: string): string => path.replaceAll("/", "\\").replace(/\\+$/, "").toLowerCase();
  return plain(a) === plain(b);
}

/** The entries of the working folder. Windows may have several; the one that is spelt as Pi spells it comes last. */
function claudeProjects(root: Data, facts: ConfigFacts): [folder: string, entry: Data][] {
  const { cwd } = facts;
  return Object.entries(objectAt(root.projects))
    .filter((entry): entry is [string, Data] => isObject(entry[1]) && sameFolder(entry[0], cwd, facts))
    .sort(([a], [b]) => Number(a === cwd) - Number(b === cwd));
}

const seconds = (value: unknown): unknown => (typeof value === "number" ? value * 1_000 : undefined);

/** The working folder and those above it up to the worktree's root, the outermost first. */
export function foldersUp({
  cwd,
  worktree,
  platform,
}: Pick<ConfigFacts, "cwd" | "worktree" | "platform">): string[] {
  const folders = [cwd];
  for (let folder = cwd; worktree !== undefined && folder !== worktree; ) {
    const parent = pathsOf(platform).dirname(folder);
    // The worktree is not above the folder.
    if (parent === folder) return [cwd];
    folders.unshift(parent);
    folder = parent;
  }
  return folders;
}

/**
 * OpenCode's own order, with the XDG rules on every platform. If `.opencode` folders are nested, the inner one wins
 * here, as in version 2; in version 1 the outer one wins.
 */
function opencodeFiles({ facts, config, join }: HostFolders): HostFiles {
  const { cwd, env, home, platform } = facts;
  const both = (folder: string): string[] =>
    ["opencode.json", "opencode.jsonc"].map((name) => join(folder, name));
  const folders = foldersUp(facts);
  const { OPENCODE_CONFIG: named, OPENCODE_CONFIG_DIR: folder } = env;
  const absolute = (path: string): string => pathsOf(platform).resolve(cwd, path);
  return {
    user: [...both(join(config, "opencode")), ...(named ? [absolute(named)] : [])],
    project: [...folders.flatMap(both), ...folders.flatMap((each) => both(join(each, ".opencode")))],
    userLast: [...both(join(home, ".opencode")), ...(folder ? both(absolute(folder)) : [])],
  };
}

/** Version 2 of OpenCode keeps the servers in `mcp.servers`, version 1 in `mcp`. */
const opencodeGroups: Dialect["groups"] = (root) => {
  const { servers, timeout: _, ...plain } = objectAt(root.mcp);
  if (!isObject(servers) || typeof servers.type === "string") return [{ path: ["mcp"], servers: root.mcp }];
  return [
    { path: ["mcp"], servers: plain },
    { path: ["mcp", "servers"], servers },
  ];
};

/** An empty variable of the environment counts as absent, as the programs read it. */
export const DIALECTS: Readonly<Record<HostName, Dialect>> = {
  cursor: {
    title: "Cursor",
    files: ({ facts: { home, cwd }, join }) => ({
      user: [join(home, ".cursor", "mcp.json")],
      project: [join(cwd, ".cursor", "mcp.json")],
    }),
    groups: mcpServers,
    convert: (entry) => ({ ...fromCommon(entry), ...envFileOf(entry) }),
    syntax: (facts) => editorSyntax(editorVariables(facts)),
    foreign: /\$\{((?:config|command|workspaceFolder):[^}]*|input:[^A-Za-z}]*)\}/g,
  },
  "claude-code": {
    title: "Claude Code",
    // Its project file is `.mcp.json`, which is a source of its own.
    files: ({ facts: { home, env }, join }) => ({
      user: [join(env.CLAUDE_CONFIG_DIR || home, ".claude.json")],
      project: [],
    }),
    groups: (root, facts) => [
      ...mcpServers(root, facts),
      ...claudeProjects(root, facts).map(([folder, { mcpServers: servers }]) => ({
        path: ["projects", folder, "mcpServers"],
        servers,
      })),
    ],
    /** The names that Claude Code's `/mcp` disabled in the working folder. */
    disabled: (root, facts) =>
      new Set(
        claudeProjects(root, facts).flatMap(([, { disabledMcpServers: names }]) =>
          Array.isArray(names) ? names : [],
        ),
      ),
    // It listens on `localhost`, on `callbackPort` or any port.
    convert: (entry) =>
      fromCommon(
        entry,
        commonOauth(entry, (port) => `http://localhost:${port ?? "{port}"}/callback`),
      ),
    syntax: () => claudeSyntax,
    unusable: ({ headersHelper }) =>
      headersHelper === undefined ? undefined : "it gets its headers from a helper",
  },
  "claude-desktop": {
    title: "Claude Desktop",
    files: ({ appData, join }) => ({
      user: [join(appData, "Claude", "claude_desktop_config.json")],
      project: [],
    }),
    groups: mcpServers,
    convert: (entry) => fromCommon(entry),
  },
  codex: {
    title: "Codex",
    format: "toml",
    files: ({ facts: { home, cwd, env }, join }) => ({
      user: [join(env.CODEX_HOME || join(home, ".codex"), "config.toml")],
      project: [join(cwd, ".codex", "config.toml")],
    }),
    groups: (root) => [{ path: ["mcp_servers"], servers: root.mcp_servers }],
    convert: (entry, root) => ({
      ...pick(entry, "command", "args", "env", "cwd", "url", "enabled"),
      headers: entry.http_headers,
      bearerTokenEnv: entry.bearer_token_env_var,
      startupTimeoutMs: seconds(entry.startup_timeout_sec) ?? entry.startup_timeout_ms,
      requestTimeoutMs: seconds(entry.tool_timeout_sec),
      includeTools: entry.enabled_tools,
      excludeTools: entry.disabled_tools,
      oauth: codexOauth(entry, root),
    }),
    headersFromEnv: (entry) => entry.env_http_headers,
    // An item is a name, or an object with a `name`.
    passesOn: ({ command, env_vars: names }) =>
      command !== undefined && Array.isArray(names)
        ? names.map((one) => (isObject(one) ? one.name : one))
        : undefined,
  },
  windsurf: {
    title: "Windsurf",
    files: ({ facts: { home }, join }) => ({
      user: [join(home, ".codeium", "windsurf", "mcp_config.json")],
      project: [],
    }),
    groups: mcpServers,
    convert: (entry) => fromCommon(entry),
    syntax: () => editorSyntax({}),
    foreign: /\$\{(file:[^}]*)\}/g,
  },
  vscode: {
    title: "VS Code",
    files: ({ facts: { cwd }, appData, join }) => ({
      user: [join(appData, "Code", "User", "mcp.json")],
      project: [join(cwd, ".vscode", "mcp.json")],
    }),
    groups: (root) => [{ path: ["servers"], servers: root.servers }],
    // VS Code allows numbers and null in `env`, and listens on 127.0.0.1, on a port of its own.
    convert: (entry, _, facts) => ({
      ...fromCommon(
        entry,
        commonOauth(entry, (port = 33418) => `http://127.0.0.1:${port}/`),
      ),
      ...envFileOf(entry),
      sandbox: wantsRoom(entry) && hasRooms(facts) ? true : undefined,
      env: isObject(entry.env)
        ? Object.fromEntries(Object.entries(compact(entry.env)).map(([key, value]) => [key, String(value)]))
        : undefined,
    }),
    // code.visualstudio.com/docs/copilot/reference/mcp-configuration, Sandbox configuration.
    differs: (entry, root, facts) => {
      if (!wantsRoom(entry)) return undefined;
      if (!hasRooms(facts))
        return {
          message: "runs without a sandbox: there is one on Linux and macOS alone, as in VS Code",
          remedy: "Run it in a container if it may not read your files.",
        };
      const ruled = [entry.sandbox, root.sandbox].some((rules) => Object.keys(objectAt(rules)).length > 0);
      return ruled
        ? {
            message: "its sandbox here has none of the rules that VS Code's sandbox has",
            remedy:
              'Write for example {"sandbox": {"write": ["~/notes"]}} for its name into your own mcp.json.',
          }
        : undefined;
    },
    // In VS Code a variable that is not set is empty.
    syntax: (facts) => editorSyntax({ ...editorVariables(facts), cwd: facts.cwd }, ":-"),
    expandsHomeInArgs: true,
    namesOpenFile: true,
    // A setting, an extension, an open file and another folder are known to VS Code only.
    foreign:
      /\$\{((?:config|command|workspaceFolder|extensionInstallFolder|env):[^}]*|input:[^A-Za-z}]*|(?:file|relativeFile|fileWorkspaceFolder|selected|line|column)[A-Za-z]*(?::[^}]*)?|execPath|defaultBuildTask)\}/g,
  },
  opencode: {
    title: "OpenCode",
    files: opencodeFiles,
    looksUp: true,
    mergesEntries: true,
    groups: opencodeGroups,
    convert: (entry) => {
      const [command, ...args] = [entry.command].flat();
      return {
        command,
        args: args.length > 0 ? args : undefined,
        env: entry.environment,
        ...pick(entry, "cwd", "url", "headers", "enabled", "disabled"),
        // In version 1: the milliseconds to list the tools.
        startupTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
        // `false` stays: OpenCode then signs in to nothing.
        oauth: isObject(entry.oauth)
          ? oauthOf(
              pick(entry.oauth, ...OPENCODE_OAUTH),
              (port = 19876) => `http://127.0.0.1:${port}/mcp/oauth/callback`,
            )
          : entry.oauth,
      };
    },
    // In OpenCode a variable that is not set is empty.
    syntax: () => ({
      pattern: /\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g,
      fill: (name) => ({ ours: `\${${name}:-}` }),
    }),
    foreign: /\{(file:[^}]*)\}/g,
  },
  "gemini-cli": {
    title: "Gemini CLI",
    files: ({ facts: { home, cwd }, join }) => ({
      user: [join(home, ".gemini", "settings.json")],
      project: [join(cwd, ".gemini", "settings.json")],
    }),
    groups: mcpServers,
    /** `mcp.excluded`, and what `mcp.allowed` leaves out. */
    disabled: (root) => {
      const { allowed, excluded } = objectAt(root.mcp);
      const names = Array.isArray(excluded) ? excluded : [];
      if (!Array.isArray(allowed)) return new Set(names);
      return new Set([
        ...names,
        ...Object.keys(objectAt(root.mcpServers)).filter((name) => !allowed.includes(name)),
      ]);
    },
    // `trust` lets every call run unasked there; here the person's own rules decide.
    convert: (entry) => ({
      ...fromCommon(entry),
      ...pick(entry, "description", "includeTools", "excludeTools"),
      url: entry.httpUrl ?? entry.url,
      ...(entry.httpUrl === undefined ? {} : { type: undefined }),
      requestTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
    }),
    syntax: shellSyntax,
    unusable: ({ authProviderType: provider }) =>
      provider === undefined || provider === "dynamic_discovery"
        ? undefined
        : "it signs in by a way that only Gemini CLI has (authProviderType)",
  },
  "copilot-cli": {
    title: "GitHub Copilot CLI",
    files: ({ facts: { home, cwd, env }, join }) => ({
      user: [join(env.COPILOT_HOME || join(home, ".copilot"), "mcp-config.json")],
      project: [join(cwd, ".github", "mcp.json")],
    }),
    groups: mcpServers,
    convert: (entry) => ({
      ...fromCommon(entry),
      type: entry.type === "local" ? "stdio" : typeOf(entry.type),
      includeTools: Array.isArray(entry.tools) && !entry.tools.includes("*") ? entry.tools : undefined,
      requestTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
    }),
    // `$X` without braces is filled in below `env` alone: elsewhere a shell may read it.
    syntax: (facts, key) => (key === "env" ? shellSyntax(facts) : claudeSyntax),
  },
};
