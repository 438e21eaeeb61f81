/**
 * OpenCode. Sources: its config/config.ts and paths.ts, and opencode.ai/docs/config, "Precedence order" and
 * "Variables". Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { pathsOf } from "../entry/interpolate.ts";
import type { ConfigFacts } from "../files/files.ts";
import { type Data, type Dialect, given, type HostFiles, type HostFolders, pick } from "./dialect.ts";
import { opencodeOauth } from "./oauth.ts";

/** The working folder and those above it up to the worktree's root, the outermost first. */
function foldersUp({ cwd, worktree, platform }: ConfigFacts): string[] {
  const { dirname } = pathsOf(platform);
  const folders = [cwd];
  for (let folder = cwd; worktree !== undefined && folder !== worktree; ) {
    const parent = dirname(folder);
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
function files({ facts, config, join }: HostFolders): HostFiles {
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

/** Version 2 keeps the servers in `mcp.servers`, version 1 in `mcp`. */
const groups: Dialect["groups"] = (root) => {
  const mcp = isObject(root.mcp) ? root.mcp : {};
  const nested = isObject(mcp.servers) && typeof mcp.servers.type !== "string";
  if (!nested) return [{ path: ["mcp"], servers: root.mcp }];
  const { servers, timeout: _, ...plain } = mcp;
  return [
    { path: ["mcp"], servers: plain },
    { path: ["mcp", "servers"], servers },
  ];
};

function convert(entry: Data): Data {
  const { command } = entry;
  const words = Array.isArray(command) ? command : command === undefined ? [] : [command];
  return {
    command: words[0],
    args: words.length > 1 ? words.slice(1) : undefined,
    env: entry.environment,
    ...pick(entry, ["cwd", "url", "headers", "enabled", "disabled"]),
    // In version 1: the milliseconds to list the tools.
    startupTimeoutMs: typeof entry.timeout === "number" ? entry.timeout : undefined,
    oauth: opencodeOauth(entry),
  };
}

export const opencode: Dialect = {
  files,
  looksUp: true,
  mergesEntries: true,
  groups,
  convert,
  // In OpenCode a variable that is not set is empty.
  syntax: () => ({
    pattern: /\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g,
    fill: (name) => ({ ours: `\${${name}:-}` }),
  }),
  foreign: /\{(file:[^}]*)\}/g,
};
