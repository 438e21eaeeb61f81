/**
 * The paths of our configuration files and of the files that we write. Pure: home, platform and environment are
 * given.
 */
import { join } from "node:path";
import type { RegisteredServer } from "../../../../src/shared/protocol/session.ts";
import type { Origin } from "../entry/definition.ts";
import { expandHome, pathsOf } from "../entry/interpolate.ts";

/** Everything that decides which files are read. */
export interface ConfigFacts {
  agentDir: string;
  cwd: string;
  /** `ctx.isProjectTrusted()`: without it no file of the project is read. */
  projectTrusted: boolean;
  /** `--mcp-config`: read in place of `<agentDir>/mcp.json`. */
  configPath?: string | undefined;
  /** Root of the Git worktree around `cwd`, if there is one and a host looks for files up to it. */
  worktree?: string | undefined;
  /** `pi.getMcpServers()`. */
  registered?: readonly RegisteredServer[] | undefined;
  platform: NodeJS.Platform;
  home: string;
  env: Readonly<Record<string, string | undefined>>;
}

export interface ConfigSource {
  file: string;
  origin: Origin;
  /** The user named this very file, so that it must exist. */
  required: boolean;
}

/** Our own files, lowest precedence first. */
export function configSources(facts: Omit<ConfigFacts, "env" | "registered">): ConfigSource[] {
  const paths = pathsOf(facts.platform);
  const { configPath, cwd } = facts;
  const user: ConfigSource =
    configPath === undefined
      ? { file: paths.join(facts.agentDir, "mcp.json"), origin: "user", required: false }
      : { file: paths.resolve(cwd, expandHome(configPath, facts)), origin: "user", required: true };
  const shared = paths.join(facts.home, ".config", "mcp", "mcp.json");
  const project: ConfigSource[] = [
    { file: paths.join(cwd, ".mcp.json"), origin: "project-file", required: false },
    { file: paths.join(cwd, ".pi", "mcp.json"), origin: "project-pi", required: false },
  ];
  return [
    { file: shared, origin: "user" as const, required: false },
    user,
    // A project's file that the user named by --mcp-config counts as the user's own.
    ...(facts.projectTrusted ? project.filter(({ file }) => file !== user.file) : []),
  ].filter(({ file }, i) => i > 0 || file !== user.file);
}

export const cacheFile = (agentDir: string): string => join(agentDir, "mcp-cache.json");

export const npxCacheFile = (agentDir: string): string => join(agentDir, "mcp-npx-cache.json");
/** As trusted as the project. */
export const projectPiFile = (cwd: string): string => join(cwd, ".pi", "mcp.json");

export const trustFile = (agentDir: string): string => join(agentDir, "mcp-trust.json");
