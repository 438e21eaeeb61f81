/**
 * Where other programs keep their MCP servers, on each platform. Pure: a table over home, platform and
 * environment. Lowest precedence first, as the program itself reads them.
 */
import { type ConfigFacts, type ConfigSource, pathsOf } from "./paths.ts";
import type { HostName } from "./schema.ts";

type Join = (...parts: string[]) => string;

interface Places {
  facts: ConfigFacts;
  join: Join;
  /** `~/.config`, or what `XDG_CONFIG_HOME` names. */
  config: string;
  /** Where desktop programs keep settings: differs by platform. */
  appData: string;
}

const given = (value: string | undefined): string | undefined => (value ? value : undefined);

function placesOf(facts: ConfigFacts): Places {
  const { env, home, platform } = facts;
  const { join } = pathsOf(platform);
  const config = given(env.XDG_CONFIG_HOME) ?? join(home, ".config");
  if (platform === "darwin")
    return { facts, join, config, appData: join(home, "Library", "Application Support") };
  if (platform !== "win32") return { facts, join, config, appData: config };
  return { facts, join, config, appData: given(env.APPDATA) ?? join(home, "AppData", "Roaming") };
}

/** Files of the user and, from the working folder, of the project. */
const FILES: Record<HostName, (places: Places) => { user: string[]; project: string[] }> = {
  cursor: ({ facts: { home, cwd }, join }) => ({
    user: [join(home, ".cursor", "mcp.json")],
    project: [join(cwd, ".cursor", "mcp.json")],
  }),
  // Its project file is `.mcp.json`, which is a source of its own.
  "claude-code": ({ facts: { home, env }, join }) => ({
    user: [join(given(env.CLAUDE_CONFIG_DIR) ?? home, ".claude.json")],
    project: [],
  }),
  "claude-desktop": ({ appData, join }) => ({
    user: [join(appData, "Claude", "claude_desktop_config.json")],
    project: [],
  }),
  codex: ({ facts: { home, cwd, env }, join }) => ({
    user: [join(given(env.CODEX_HOME) ?? join(home, ".codex"), "config.toml")],
    project: [join(cwd, ".codex", "config.toml")],
  }),
  windsurf: ({ facts: { home }, join }) => ({
    user: [join(home, ".codeium", "windsurf", "mcp_config.json")],
    project: [],
  }),
  vscode: ({ facts: { cwd }, appData, join }) => ({
    user: [join(appData, "Code", "User", "mcp.json")],
    project: [join(cwd, ".vscode", "mcp.json")],
  }),
  // Follows the XDG rules on every platform.
  opencode: ({ facts: { cwd, env }, config, join }) => ({
    user: [
      join(config, "opencode", "opencode.json"),
      join(config, "opencode", "opencode.jsonc"),
      ...[given(env.OPENCODE_CONFIG)].filter((file) => file !== undefined),
    ],
    project: [
      join(cwd, "opencode.json"),
      join(cwd, "opencode.jsonc"),
      join(cwd, ".opencode", "opencode.json"),
      join(cwd, ".opencode", "opencode.jsonc"),
    ],
  }),
};

/** Files of one host. A project's files need a consent for each server, like `.mcp.json`. */
export function hostSources(host: HostName, facts: ConfigFacts): ConfigSource[] {
  const { user, project } = FILES[host](placesOf(facts));
  const sources: ConfigSource[] = user.map((file) => ({ file, origin: "import", required: false }));
  if (!facts.projectTrusted) return sources;
  return [
    ...sources,
    ...project.map((file): ConfigSource => ({ file, origin: "project-file", required: false })),
  ];
}
