/**
 * Where other programs keep their MCP servers, on each platform. Pure: a table over home, platform and
 * environment. Lowest precedence first, as the program itself reads them.
 */

import { pathsOf } from "../entry/home.ts";
import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts, ConfigSource } from "../files/files.ts";

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

interface HostFiles {
  user: string[];
  /** From the working folder. */
  project: string[];
  /** Files of the user that win over the project's. */
  userLast?: string[];
}

/** The working folder and those above it up to the worktree's root, the outermost first. */
function foldersUp({ cwd, worktree, platform }: ConfigFacts): string[] {
  const { dirname } = pathsOf(platform);
  const folders = [cwd];
  for (let folder = cwd; worktree !== undefined && folder !== worktree; ) {
    const parent = dirname(folder);
    // A worktree that is not above the folder.
    if (parent === folder) return [cwd];
    folders.unshift(parent);
    folder = parent;
  }
  return folders;
}

/**
 * OpenCode's own order (its config/config.ts and paths.ts, opencode.ai/docs/config, "Precedence order"). Of
 * nested `.opencode` folders the inner one wins here, as its version 2 has it; version 1 has it the other way.
 */
function opencodeFiles({ facts, config, join }: Places): HostFiles {
  const { cwd, env, home, platform } = facts;
  const both = (folder: string): string[] =>
    ["opencode.json", "opencode.jsonc"].map((name) => join(folder, name));
  const folders = foldersUp(facts);
  const named = given(env.OPENCODE_CONFIG);
  const folder = given(env.OPENCODE_CONFIG_DIR);
  const absolute = (path: string): string => pathsOf(platform).resolve(cwd, path);
  return {
    user: [...both(join(config, "opencode")), ...(named === undefined ? [] : [absolute(named)])],
    project: [...folders.flatMap(both), ...folders.flatMap((each) => both(join(each, ".opencode")))],
    userLast: [...both(join(home, ".opencode")), ...(folder === undefined ? [] : both(absolute(folder)))],
  };
}

/** Files of the user and of the project. */
const FILES: Record<HostName, (places: Places) => HostFiles> = {
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
  opencode: opencodeFiles,
};

/** Files of one host. A project's files need a consent for each server, like `.mcp.json`. */
export function hostSources(host: HostName, facts: ConfigFacts): ConfigSource[] {
  const { user, project, userLast = [] } = FILES[host](placesOf(facts));
  const sourceOf =
    (origin: ConfigSource["origin"]) =>
    (file: string): ConfigSource => ({ file, origin, required: false });
  // A file that is the project's too, for a session in the home folder, is only that.
  return [
    ...user.map(sourceOf("import")),
    ...(facts.projectTrusted ? project : []).map(sourceOf("project-file")),
    ...userLast.filter((file) => !project.includes(file)).map(sourceOf("import")),
  ];
}
