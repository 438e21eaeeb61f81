/**
 * Where other programs keep their MCP servers, on each platform, in the order in which the program reads them. Pure.
 */

import { pathsOf } from "../entry/interpolate.ts";
import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts, ConfigSource } from "../files/files.ts";
import { given, type HostFolders } from "./dialect.ts";
import { DIALECTS } from "./dialects.ts";

function foldersOf(facts: ConfigFacts): HostFolders {
  const { env, home, platform } = facts;
  const { join } = pathsOf(platform);
  const config = given(env.XDG_CONFIG_HOME) ?? join(home, ".config");
  if (platform === "darwin")
    return { facts, join, config, appData: join(home, "Library", "Application Support") };
  if (platform !== "win32") return { facts, join, config, appData: config };
  return { facts, join, config, appData: given(env.APPDATA) ?? join(home, "AppData", "Roaming") };
}

/** Files of one host, lowest precedence first. A project's files need a consent for each server, like `.mcp.json`. */
export function hostSources(host: HostName, facts: ConfigFacts): ConfigSource[] {
  const { user, project, userLast = [] } = DIALECTS[host].files(foldersOf(facts));
  const sourceOf =
    (origin: ConfigSource["origin"]) =>
    (file: string): ConfigSource => ({ file, origin, required: false });
  // If the session runs in the home folder, a file can be the user's and the project's: then it is the project's only.
  return [
    ...user.map(sourceOf("import")),
    ...(facts.projectTrusted ? project : []).map(sourceOf("project-file")),
    ...userLast.filter((file) => !project.includes(file)).map(sourceOf("import")),
  ];
}

/** Whether the host looks for files above the working folder, so that its sources depend on the worktree. */
export const looksUp = (host: HostName): boolean => DIALECTS[host].looksUp === true;
