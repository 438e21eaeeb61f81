/** Owns: the parts of a server's environment that decide what npx runs. */
import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { type Env, nameIn } from "../../shared/programs/find-program.ts";

/** Settings of npm that change the meaning of an npx command. If the environment sets one, npm itself is run. */
const DECISIVE = ["package", "call", "workspace", "workspaces", "script_shell", "global", "location"];
/** npm's settings, and the variables that say where npm finds its configuration and how its node behaves. */
const KEYED = /^(?:npm_config_.*|home|userprofile|appdata|localappdata|prefix|destdir|node_options)$/i;

/** Name and value of the search path. Windows may write the name in any case. */
export function pathVariable(env: Env): { name: string; value: string } {
  const name = nameIn(env, "PATH", process.platform);
  return { name, value: env[name] ?? "" };
}

/** Name of the npm setting that a variable sets, in lower case with `_`; undefined for any other variable. */
export const settingOf = (variable: string): string | undefined =>
  /^npm_config_(.+)$/i.exec(variable)?.[1]?.toLowerCase().replaceAll("-", "_");

/** The variable with a setting that changes the meaning of the command; undefined if there is none. */
export function decisiveSetting(env: Env): string | undefined {
  return Object.keys(env).find((key) => {
    const setting = settingOf(key);
    return setting !== undefined && DECISIVE.includes(setting) && env[key] !== "" && env[key] !== "false";
  });
}

const contentOf = (file: string): Promise<string> => readTextOrThrow(file, SMALL_FILE_BYTES).catch(() => "");

/**
 * One hash of everything, except for the packages, that decides what npm finds: the files of npm and node, npm's
 * settings in variables and files, and the folder from which a relative path in a setting starts. A result of npm in
 * one project is therefore never used in another. Values may be secrets: only the hash leaves this function.
 */
export async function environmentKey(options: {
  env: Env;
  /** Files of npm and node. */
  programs: readonly string[];
  /** Where npm runs. */
  cwd: string;
  /** The folder that npm takes for the project around `cwd`. */
  prefix: string;
}): Promise<string> {
  const { env, cwd, prefix } = options;
  const variables = Object.entries(env).filter(([name]) => KEYED.test(name));
  const home = env.HOME ?? env.USERPROFILE ?? "";
  const userConfig = Object.entries(env).find(([name]) => settingOf(name) === "userconfig")?.[1];
  const parts = [
    await Promise.all(options.programs.map((program) => realpath(program))),
    variables.sort(([a], [b]) => (a < b ? -1 : 1)),
    await contentOf(resolve(cwd, userConfig ?? join(home, ".npmrc"))),
    cwd,
    prefix,
    await contentOf(join(prefix, ".npmrc")),
  ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
