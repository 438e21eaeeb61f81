/** Codex: TOML, with keys of its own. It fills in nothing. Pure. */
import { type Data, type Dialect, given, pick } from "./dialect.ts";
import { codexOauth } from "./oauth.ts";

/** Seconds as milliseconds. */
const seconds = (value: unknown): unknown => (typeof value === "number" ? value * 1_000 : undefined);

function convert(entry: Data, root: Data): Data {
  return {
    ...pick(entry, ["command", "args", "env", "cwd", "url", "enabled"]),
    headers: entry.http_headers,
    bearerTokenEnv: entry.bearer_token_env_var,
    startupTimeoutMs: seconds(entry.startup_timeout_sec) ?? entry.startup_timeout_ms,
    requestTimeoutMs: seconds(entry.tool_timeout_sec),
    includeTools: entry.enabled_tools,
    excludeTools: entry.disabled_tools,
    oauth: codexOauth(entry, root),
  };
}

export const codex: Dialect = {
  format: "toml",
  files: ({ facts: { home, cwd, env }, join }) => ({
    user: [join(given(env.CODEX_HOME) ?? join(home, ".codex"), "config.toml")],
    project: [join(cwd, ".codex", "config.toml")],
  }),
  groups: (root) => [{ path: ["mcp_servers"], servers: root.mcp_servers }],
  convert,
  headersFromEnv: (entry) => entry.env_http_headers,
};
