/** The environment that a server's process will have, as far as it decides what npx runs. */
import { createHash } from "node:crypto";
import { access, constants, readFile, realpath, stat } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { onWindows } from "../transports/process-tree.ts";

export type Env = Record<string, string | undefined>;

/** Settings of npm that change what an npx command means. Set in the environment, they are left to npm. */
const DECISIVE = ["package", "call", "workspace", "workspaces", "script_shell", "global", "location"];
/** Beside npm's own settings: where npm finds its configuration, and how its node behaves. */
const KEYED = /^(?:npm_config_.*|home|userprofile|appdata|localappdata|prefix|node_options)$/i;

export const mergedEnv = (env: Record<string, string>): Env => ({ ...process.env, ...env });

/** Name and value of the search path; Windows writes the name in any case. */
export function pathVariable(env: Env): { name: string; value: string } {
  const name = onWindows ? (Object.keys(env).findLast((key) => /^path$/i.test(key)) ?? "Path") : "PATH";
  return { name, value: env[name] ?? "" };
}

export const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

const isExecutable = async (path: string): Promise<boolean> =>
  (await isFile(path)) &&
  (onWindows ||
    (await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )));

/** The file that a command stands for, undefined where there is none. */
export async function findCommand(
  command: string,
  { folders, cwd }: { folders: readonly string[]; cwd: string },
): Promise<string | undefined> {
  const candidates = /[\\/]/.test(command)
    ? [resolve(cwd, command)]
    : folders.filter((folder) => folder !== "").map((folder) => resolve(cwd, folder, command));
  const endings = onWindows && !/\.(?:exe|cmd)$/i.test(command) ? [".exe", ".cmd"] : [""];
  for (const candidate of candidates) {
    for (const ending of endings) if (await isExecutable(candidate + ending)) return candidate + ending;
  }
  return undefined;
}

export const pathFolders = (env: Env): string[] => pathVariable(env).value.split(delimiter);

/** A setting of npm's that makes its command mean something else, or undefined. */
export function decisiveSetting(env: Env): string | undefined {
  return Object.keys(env).find((key) => {
    const setting = /^npm_config_(.+)$/i.exec(key)?.[1]?.toLowerCase().replaceAll("-", "_");
    return setting !== undefined && DECISIVE.includes(setting) && env[key] !== "" && env[key] !== "false";
  });
}

const contentOf = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");

/**
 * One hash of everything but the packages that decides what npm finds: the npm and the node, npm's settings
 * in variables and files. Values may be secrets: only the hash leaves here.
 */
export async function environmentKey(options: {
  env: Env;
  /** Files of npm and node. */
  programs: readonly string[];
  projectPrefix: string;
}): Promise<string> {
  const { env, projectPrefix } = options;
  const variables = Object.entries(env).filter(([name]) => KEYED.test(name));
  const home = env.HOME ?? env.USERPROFILE ?? "";
  const userConfig = Object.entries(env).find(([name]) => /^npm_config_userconfig$/i.test(name))?.[1];
  const projectConfig = await contentOf(join(projectPrefix, ".npmrc"));
  const parts = [
    await Promise.all(options.programs.map((program) => realpath(program))),
    variables.sort(([a], [b]) => (a < b ? -1 : 1)),
    await contentOf(userConfig ?? join(home, ".npmrc")),
    // Relative paths in a project's settings start from the project.
    projectConfig === "" ? "" : [projectPrefix, projectConfig],
  ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
