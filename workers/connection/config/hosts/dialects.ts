/**
 * Everything that is peculiar to a program whose servers can be imported: one row of DIALECTS for each, of data and pure
 * functions. Reading, checking and translating are the same for all of them (hosts.ts). Sources: code.claude.com/docs/en/mcp;
 * cursor.com/docs, Config interpolation; docs.windsurf.com, Config Interpolation; code.visualstudio.com/docs/reference and
 * extHostMcpNode.ts and mcpSandboxService.ts of VS Code; Codex's mcp_types.rs; Gemini CLI's docs/tools/mcp-server.md, its resolver of
 * variables and what `gemini mcp disable` writes; docs.github.com/copilot, the command reference of GitHub Copilot CLI.
 */

import type { HostName } from "../../../../src/shared/import-names.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { isNeeded } from "../entry/inherit-env.ts";
import { escapeVariables, pathsOf } from "../entry/interpolate.ts";
import { isOfPrograms } from "../env-files/deciding-variables.ts";
import type { ConfigFacts } from "../files/sources.ts";
import { compact, type Data, type Dialect, OFF, oauthOf, objectAt, pick, type Syntax } from "./format.ts";
import { OPENCODE } from "./opencode.ts";

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

/** Whether VS Code's sandbox lets it reach more than npm's registry. */
const namesDomains = (entry: Data, root: Data): boolean =>
  [entry.sandbox, root.sandbox].some((rules) => {
    const { allowedDomains } = objectAt(objectAt(rules).network);
    return Array.isArray(allowedDomains) && allowedDomains.length > 0;
  });

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
function inputVariable(id: string): string | undefined {
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

/**
 * The entries of the working folder, and of its repository, under whose root Claude Code writes. Windows may have several of a
 * folder; the one that is spelt as Pi spells it comes last.
 */
function claudeProjects(root: Data, facts: ConfigFacts): [folder: string, entry: Data][] {
  const { cwd, worktree = cwd, repository = worktree } = facts;
  const projects = Object.entries(objectAt(root.projects)).filter((entry): entry is [string, Data] =>
    isObject(entry[1]),
  );
  return [...new Set([repository, worktree, cwd])].flatMap((folder) =>
    projects
      .filter(([written]) => sameFolder(written, folder, facts))
      .sort(([a], [b]) => Number(a === folder) - Number(b === folder)),
  );
}

/** Claude Code takes no less for milliseconds. */
const LEAST_CLAUDE_MS = 1_000;

const seconds = (value: unknown): unknown => (typeof value === "number" ? value * 1_000 : undefined);

/** Codex's word for what a call meets; one that is not known asks. `auto` goes by the policy of Codex's session. */
function codexRule(mode: unknown): "allow" | "ask" | "destructive" | undefined {
  if (mode === undefined || mode === "auto") return undefined;
  if (mode === "approve") return "allow";
  return mode === "writes" ? "destructive" : "ask";
}

/** What Codex asks about. What it lets run counts as an exception from that alone: else the person's own rules decide. */
function codexApprove({ default_tools_approval_mode: mode, tools }: Data): Data | undefined {
  const preset = codexRule(mode);
  const asks = preset !== undefined && preset !== "allow";
  const single = Object.entries(objectAt(tools))
    .map(([tool, one]) => [tool, codexRule(objectAt(one).approval_mode)] as const)
    .filter(([, rule]) => rule !== undefined && (asks || rule !== "allow"));
  const rules = Object.fromEntries([...(asks ? [["*", preset] as const] : []), ...single]);
  return Object.keys(rules).length > 0 ? rules : undefined;
}

/** Copilot CLI's settings name the servers that `/mcp disable` has switched off; config.json is their older place. */
const isCopilotSettings = (file: string): boolean => /[\\/](?:config|settings)\.json$/.test(file);

/** Names of servers that `gemini mcp disable` has switched off, in lower case. */
const GEMINI_SWITCHES = "mcp-server-enablement.json";

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
    looksUp: true,
    files: ({ facts: { home, env }, join }) => ({
      user: [join(env.CLAUDE_CONFIG_DIR || home, ".claude.json")],
      project: [],
    }),
    groups: (root, facts, file) => [
      ...mcpServers(root, facts, file),
      ...claudeProjects(root, facts).map(([folder, { mcpServers: servers }]) => ({
        path: ["projects", folder, "mcpServers"],
        servers,
      })),
    ],
    /** The names that Claude Code's `/mcp` disabled in the working folder or its repository. */
    rules: (root, facts) => {
      const off = new Set(
        claudeProjects(root, facts).flatMap(([, { disabledMcpServers: names }]) =>
          Array.isArray(names) ? names : [],
        ),
      );
      return { count: 0, of: (name) => (off.has(name) ? OFF : undefined) };
    },
    // It listens on `localhost`, on `callbackPort` or any port.
    convert: (entry) => ({
      ...fromCommon(
        entry,
        commonOauth(entry, (port) => `http://localhost:${port ?? "{port}"}/callback`),
      ),
      requestTimeoutMs:
        typeof entry.timeout === "number" && entry.timeout >= LEAST_CLAUDE_MS ? entry.timeout : undefined,
    }),
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
    mergesEntries: true,
    groups: (root) => [{ path: ["mcp_servers"], servers: root.mcp_servers }],
    convert: (entry, root) => ({
      ...pick(entry, "command", "args", "env", "cwd", "url", "enabled"),
      headers: entry.http_headers,
      bearerTokenEnv: entry.bearer_token_env_var,
      startupTimeoutMs: seconds(entry.startup_timeout_sec) ?? entry.startup_timeout_ms,
      requestTimeoutMs: seconds(entry.tool_timeout_sec),
      includeTools: entry.enabled_tools,
      excludeTools: entry.disabled_tools,
      approve: codexApprove(entry),
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
    convert: (entry, root, facts) => ({
      ...fromCommon(
        entry,
        commonOauth(entry, (port = 33418) => `http://127.0.0.1:${port}/`),
      ),
      ...envFileOf(entry),
      // In VS Code it then reaches npm's registry, which a server here needs not: npx packages are installed before it starts.
      sandbox:
        wantsRoom(entry) && hasRooms(facts) ? namesDomains(entry, root) || { network: false } : undefined,
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
      const reach = namesDomains(entry, root)
        ? "and reaches the whole network, not only allowedDomains"
        : "and no network";
      return ruled
        ? {
            message: `its sandbox here has none of the rules that VS Code's sandbox has, ${reach}`,
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
  opencode: OPENCODE,
  "gemini-cli": {
    title: "Gemini CLI",
    files: ({ facts: { home, cwd, env }, join }) => {
      const folder = join(env.GEMINI_CLI_HOME || home, ".gemini");
      return {
        user: [join(folder, "settings.json")],
        project: [join(cwd, ".gemini", "settings.json")],
        userLast: [join(folder, GEMINI_SWITCHES)],
      };
    },
    groups: mcpServers,
    /** `mcp.excluded`, what `mcp.allowed` leaves out, and what is switched off in a file of its own. */
    rules: (root, _, file) => {
      const { allowed, excluded } = objectAt(root.mcp);
      const isOff = ([, one]: [string, unknown]): boolean => objectAt(one).enabled === false;
      const off = new Set(
        file.endsWith(GEMINI_SWITCHES)
          ? Object.entries(root)
              .filter(isOff)
              .map(([name]) => name)
          : (Array.isArray(excluded) ? excluded : []).map((name) => String(name).toLowerCase().trim()),
      );
      const only = Array.isArray(allowed) ? new Set(allowed) : undefined;
      const of = (name: string) =>
        off.has(name.toLowerCase().trim()) || only?.has(name) === false ? OFF : undefined;
      return { count: 0, of };
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
    files: ({ facts: { home, cwd, env }, join }) => {
      const folder = env.COPILOT_HOME || join(home, ".copilot");
      return {
        user: [join(folder, "mcp-config.json")],
        project: [join(cwd, ".github", "mcp.json")],
        userLast: [join(folder, "config.json"), join(folder, "settings.json")],
      };
    },
    groups: (root, facts, file) => (isCopilotSettings(file) ? [] : mcpServers(root, facts, file)),
    rules: ({ disabledMcpServers: names }, _, file) => {
      const off = new Set(isCopilotSettings(file) && Array.isArray(names) ? names : []);
      return { count: 0, of: (name) => (off.has(name) ? OFF : undefined) };
    },
    convert: (entry) => ({
      ...fromCommon(
        entry,
        oauthOf({
          ...commonOauth(entry),
          ...compact({ clientId: entry.oauthClientId, scope: scopeText(entry.oauthScopes) }),
        }),
      ),
      type: entry.type === "local" ? "stdio" : typeOf(entry.type),
      includeTools: Array.isArray(entry.tools) && !entry.tools.includes("*") ? entry.tools : undefined,
      requestTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
    }),
    // `$X` without braces is filled in below `env` alone: elsewhere a shell may read it.
    syntax: (facts, key) => (key === "env" ? shellSyntax(facts) : claudeSyntax),
    unusable: ({ oidc, oauthGrantType: grant, oauthPublicClient: isPublic }) => {
      if (oidc === true) return "it signs in with a token that Copilot CLI alone gets (oidc)";
      return grant === "client_credentials" || isPublic === false
        ? "the secret of its OAuth client is in Copilot CLI's keychain alone (oauthPublicClient, oauthGrantType)"
        : undefined;
    },
  },
};
