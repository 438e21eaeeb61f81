/**
 * Keys that other programs write into a server's entry or a file, and what to write in their place here. A key of the same
 * meaning has only our name; one with another unit or another meaning says what differs. To add a key: a row. Pure.
 * Sources: docs.cline.bot (mcp), docs.roocode.com (mcp), code.claude.com/docs/en/mcp, Codex's mcp_types.rs,
 * github.com/google-gemini/gemini-cli docs/tools/mcp-server.md, code.visualstudio.com/docs/reference/mcp-configuration.
 */

interface ForeignKey {
  /** The key here. */
  ours: string;
  /** What differs from our key; absent: only the name. */
  what?: string;
  remedy?: string;
  /** It lets more run: without it nobody is protected less. */
  widens?: true;
}

const UNASKED: ForeignKey = {
  ours: "approve",
  widens: true,
  what: "this list of tools that run unasked is unknown here: every tool does, unless approve says otherwise",
  remedy:
    'Remove it; or, to be asked about all other tools, write "approve": {"name_of_tool": "allow", "*": "ask"}.',
};

const inSeconds = (key: string): ForeignKey => ({
  ours: "timeout",
  what: `unknown key: the limit of a call is timeout, in seconds${key === "ms" ? " and not in milliseconds" : ""}`,
  remedy: 'Write for example "timeout": 60, which is one minute.',
});

const inMs: ForeignKey = {
  ours: "startupTimeoutMs",
  what: "unknown key: the limit of a start is startupTimeoutMs, in milliseconds and not in seconds",
  remedy: 'Write for example "startupTimeoutMs": 30000, which is half a minute.',
};

const named = (...keys: readonly (readonly [theirs: string, ours: string])[]): Record<string, ForeignKey> =>
  Object.fromEntries(keys.map(([theirs, ours]) => [theirs, { ours }]));

/** Key of another program -> ours. */
const FOREIGN_KEYS: Readonly<Record<string, ForeignKey>> = {
  ...named(
    ["bearer_token_env_var", "bearerTokenEnv"],
    ["disabledTools", "excludeTools"],
    ["disabled_tools", "excludeTools"],
    ["enabledTools", "includeTools"],
    ["enabled_tools", "includeTools"],
    ["environment", "env"],
    ["httpUrl", "url"],
    ["http_headers", "headers"],
    ["mcp", "mcpServers"],
    ["mcp_servers", "mcpServers"],
    ["serverUrl", "url"],
    ["servers", "mcpServers"],
    ["startup_timeout_ms", "startupTimeoutMs"],
    ["transport", "type"],
    ["transportType", "type"],
  ),
  alwaysAllow: UNASKED,
  autoApprove: UNASKED,
  default_tools_approval_mode: {
    ours: "approve",
    what: "unknown key: which tools ask before they run is approve here",
    remedy:
      'Write "approve": "always" to be asked before each call, or "destructive" about those that change something.',
  },
  trust: {
    ours: "approve",
    widens: true,
    what: "unknown key: whether tools ask before they run is approve here",
    remedy: 'Remove it, or write "approve": "always" to be asked before each call.',
  },
  timeoutMs: inSeconds("ms"),
  timeout_ms: inSeconds("ms"),
  requestTimeout: inSeconds("s"),
  tool_timeout_sec: inSeconds("s"),
  startup_timeout_sec: inMs,
  env_http_headers: {
    ours: "headers",
    what: "unknown key: a header takes its value from a variable as ${NAME} here",
    remedy: 'Write "headers": {"X-API-Key": "${NAME_OF_VARIABLE}"}.',
  },
  headersHelper: {
    ours: "headers",
    what: "unknown key: a header takes its value from a command as !command here",
    remedy: 'Write "headers": {"Authorization": "!command that prints the value"}.',
  },
  env_vars: {
    ours: "env",
    what: "unknown key: a variable of Pi is named in env here",
    remedy: 'Write "env": {"NAME": "${NAME}"}.',
  },
  inputs: {
    ours: "mcpServers",
    what: "unknown key: nothing here asks for ${input:...}",
    remedy: "Write ${NAME_OF_VARIABLE} in place of ${input:...}, and set the variable.",
  },
};

/** The row of a key; undefined if no program is known to write it, or ours does not belong here. `known`: our keys here. */
export function foreignKey(key: string, known: readonly string[]): ForeignKey | undefined {
  const found = Object.hasOwn(FOREIGN_KEYS, key) ? FOREIGN_KEYS[key] : undefined;
  return found && known.includes(found.ours) ? found : undefined;
}
