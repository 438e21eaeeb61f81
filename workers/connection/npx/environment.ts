/** The environment that a server's process will have, as far as it decides what npx runs. */
import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { type Env, nameIn } from "../../shared/programs/environment.ts";

/** Settings of npm that change what an npx command means. Set in the environment, they are left to npm. */
const DECISIVE = ["package", "call", "workspace", "workspaces", "script_shell", "global", "location"];
/** Beside npm's own settings: where npm finds its configuration, and how its node behaves. */
const KEYED = /^(?:npm_config_.*|home|userprofile|appdata|localappdata|prefix|destdir|node_options)$/i;

/** Name and value of the search path; Windows writes the name in any case. */
export function pathVariable(env: Env): { name: string; value: string } {
  const name = nameIn(env, "PATH", process.platform);
  return { name, value: env[name] ?? "" };
}

/** A setting of npm's by its name in lower case with `_`, or undefined for any other variable. */
export const settingOf = (variable: string): string | undefined =>
  /^npm_config_(.+)$/i.exec(variable)?.[1]?.toLowerCase().replaceAll("-", "_");

/** A setting of npm's that makes its command mean something else, or undefined. */
export function decisiveSetting(env: Env): string | undefined {
  return Object.keys(env).find((key) => {
    const setting = settingOf(key);
    return setting !== undefined && DECISIVE.includes(setting) && env[key] !== "" && env[key] !== "false";
  });
}

const contentOf = (file: string): Promise<string> => readTextOrThrow(file, SMALL_FILE_BYTES).catch(() => "");

/**
 * One hash of everything but the packages that decides what npm finds: the npm and the node, npm's settings
 * in variables and files, and the folder that a relative path in one of them starts from. So what npm found in a
 * project is never taken for what it finds elsewhere. Values may be secrets: only the hash leaves here.
 */
export async function environmentKey(options: {
  env: Env;
  /** Files of npm and node. */
  programs: readonly string[];
  /** Where npm runs. */
  cwd: string;
  /** What npm takes for the project around that folder. */
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
