/**
 * How to start a binary without npx: JavaScript by node, any other file directly. The server gets the same things that
 * npx would give it: the path of the link as its name, and the folders of commands first on the search path.
 */

import { createHash, randomBytes } from "node:crypto";
import { realpath, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, delimiter, extname, join, resolve } from "node:path";
import { makeFolder } from "../../shared/files/owner.ts";
import {
  PRIVATE_FILE,
  readRegularText,
  readTextOrThrow,
  SMALL_FILE_BYTES,
} from "../../shared/files/read-regular.ts";
import { type Env, findHere, nameIn } from "../../shared/programs/find-program.ts";
import { firstLineOf } from "../../shared/programs/launch.ts";
import { onWindows, systemShell } from "../../shared/programs/processes.ts";
import { type Declined, RETRY_SOON } from "./npm.ts";
import type { NpmWords } from "./npm-words.ts";
import type { Binary } from "./tree.ts";

export interface NpxLaunch {
  /** An absolute path. */
  command: string;
  args: string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
}

const JAVASCRIPT = new Set([".js", ".mjs", ".cjs"]);
/** `#!/usr/bin/env node`, also with `-S` and plain flags. A path to one certain node is left to the system. */
const NODE_SHEBANG = /^#!\s*\/(?:usr\/)?bin\/env\s+(?:-S\s+)?node((?:\s+-[\w=-]+)*)\s*$/;

type Runner = { kind: "node"; flags: string[] } | { kind: "itself" };

/** The program that runs a file: its first line decides, otherwise its extension. Pure. */
export function runnerOf(file: string, firstLine: string): Runner {
  if (firstLine.startsWith("#!")) {
    const flags = NODE_SHEBANG.exec(firstLine)?.[1];
    if (flags === undefined) return { kind: "itself" };
    return { kind: "node", flags: flags.split(/\s+/).filter((flag) => flag !== "") };
  }
  return JAVASCRIPT.has(extname(file).toLowerCase()) ? { kind: "node", flags: [] } : { kind: "itself" };
}

/** The host is not always node: Pi may be a Bun build. */
const isNode = (file: string): boolean => /^node(?:\.exe)?$/i.test(basename(file));

/** The node that a command finds in this environment, otherwise the node that runs this process. */
export async function findNode(env: Record<string, string>, cwd: string): Promise<string | undefined> {
  return (await findHere("node", { env, cwd })) ?? (isNode(process.execPath) ? process.execPath : undefined);
}

interface LaunchOptions {
  env: Record<string, string>;
  cwd: string;
  /** Folders of commands that come before PATH. */
  binFolders: readonly string[];
  args: string[];
  /** The node that runs the binary. Absent: the node that npx would find. */
  node?: string;
}

export async function launchOf(binary: Binary, options: LaunchOptions): Promise<NpxLaunch | Declined> {
  const { cwd, binFolders, args } = options;
  const path = pathVariable(options.env);
  const folders = [...new Set([binary.binFolder, ...binFolders]), path.value];
  const env = { ...options.env, [path.name]: folders.join(delimiter) };
  const runner = runnerOf(binary.file, await firstLineOf(binary.file));
  if (runner.kind === "itself") {
    if (onWindows) return { reason: `${binary.file} is not JavaScript` };
    return { command: binary.path, args, env, cwd };
  }
  const node = options.node ?? (await findNode(env, cwd));
  if (node === undefined) return { reason: "there is no node to run it" };
  return { command: node, args: [...runner.flags, binary.path, ...args], env, cwd };
}

/** Settings of npm that change the meaning of an npx command. If the environment sets one, npm itself is run. */
const DECISIVE = ["package", "call", "workspace", "workspaces", "script_shell", "global", "location"];
/** npm's settings, and the variables that say where npm finds its configuration and how its node behaves. */
const KEYED = /^(?:npm_config_.*|home|userprofile|appdata|localappdata|prefix|destdir|node_options)$/i;

/** Name and value of the search path. Windows may write the name in any case. */
function pathVariable(env: Env): { name: string; value: string } {
  const name = nameIn(env, "PATH", process.platform);
  return { name, value: env[name] ?? "" };
}

/** Name of the npm setting that a variable sets, in lower case with `_`; undefined for any other variable. */
const settingOf = (variable: string): string | undefined =>
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

export interface NeutralFolder {
  path: string;
  /**
   * A shell for npm that enters the folder in FOLDER_VARIABLE before it starts a server. Undefined on Windows, where
   * npm cannot start a script, and if the folder cannot be made.
   */
  shell: string | undefined;
}

/** Variables for the shell: the folder of the server, and the user's own shell for npm if there is one. */
const FOLDER_VARIABLE = "PI_MCP_NPX_FOLDER";
const SHELL_VARIABLE = "PI_MCP_NPX_SHELL";

/** Without this flag npm would look for the workspaces of a folder above. */
export const NO_WORKSPACES = "--workspaces=false";

/** For the user alone, as all files here. */
const EXECUTABLE_FILE = 0o700;

const MANIFEST = `${JSON.stringify({
  private: true,
  description: "npm runs here for npx servers, so that no project decides what it runs.",
})}\n`;

/**
 * npm also uses this shell for the scripts of packages that it installs, which stay in their own folder. The program
 * that is started must not see the variables, or this shell would also run the scripts that the program starts.
 */
const SHELL = `#!${systemShell()}
# npm starts a server with this shell: the server runs in its own folder, npm itself does not.
folder=$${FOLDER_VARIABLE}
shell=\${${SHELL_VARIABLE}:-${systemShell()}}
unset npm_config_script_shell
if [ -n "$${SHELL_VARIABLE}" ]; then npm_config_script_shell=$shell; export npm_config_script_shell; fi
unset ${FOLDER_VARIABLE} ${SHELL_VARIABLE}
if [ "$npm_lifecycle_event" = npx ]; then
  cd -- "$folder" || exit 1
  INIT_CWD=$folder; export INIT_CWD
fi
exec "$shell" "$@"
`;

/** Replaces the file in one step, because another process may be reading it, and only if its text differs. */
async function put(file: string, text: string, mode: number): Promise<void> {
  const found = await readRegularText(file, SMALL_FILE_BYTES);
  if (found.kind === "text" && found.text === text) return;
  const temp = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  await writeFile(temp, text, { mode, flag: "wx" });
  await rename(temp, file);
}

async function prepare(folder: string): Promise<NeutralFolder> {
  await makeFolder(folder);
  // npm resolves the links in the folders that it names.
  const path = await realpath(folder);
  await put(join(path, "package.json"), MANIFEST, PRIVATE_FILE);
  if (onWindows) return { path, shell: undefined };
  const shell = join(path, "shell.sh");
  await put(shell, SHELL, EXECUTABLE_FILE);
  return { path, shell };
}

/** Makes the folder. If that fails, npm runs in the home folder, which also belongs to the user. */
export const neutralFolder = (folder: string): Promise<NeutralFolder> =>
  prepare(folder).catch(async () => {
    const home = homedir();
    return { path: await realpath(home).catch(() => home), shell: undefined };
  });

const RELATIVE = /^(file:)?(\.{1,2}(?:[\\/].*)?)$/s;
/** A flag that takes no value from the next word. */
const ALONE = /^(?:-y|--yes|-q|--quiet|-s|--silent|--|-.*=.*)$/s;

/** Makes a path that starts from the server's folder absolute, with or without `--flag=` before it. */
function absolute(word: string, cwd: string): string {
  const [flag = "", value = word] = /^(--?[\w-]+=)(.*)$/s.exec(word)?.slice(1) ?? [];
  const [, scheme = "", path] = RELATIVE.exec(value) ?? [];
  return path === undefined ? word : `${flag}${scheme}${resolve(cwd, path)}`;
}

/** A line for npm's shell, which starts in the server's folder. */
const CALL = /^(?:-c|--call)$|^(?:-c|--call)=/;

/**
 * The same command line for npm in another folder: words with which npm finds the program name the same files.
 * Arguments of the server stay as they are.
 */
export function fromFolder(args: readonly string[], cwd: string): string[] {
  let end = 0;
  for (; end < args.length; end++) {
    const before = args[end - 1];
    const mayBeValue = before?.startsWith("-") === true && !ALONE.test(before);
    if (!args[end]?.startsWith("-") && !mayBeValue) break;
  }
  const isCall = (i: number): boolean =>
    CALL.test(args[i] ?? "") || /^(?:-c|--call)$/.test(args[i - 1] ?? "");
  return args.map((arg, i) => (i <= end && !isCall(i) ? absolute(arg, cwd) : arg));
}

/** `program`: the file of `npx` or `npm`. */
export function throughNpm(
  program: string,
  { args, isExec }: NpmWords,
  { cwd, env, neutral }: { cwd: string; env: Record<string, string>; neutral: NeutralFolder },
): NpxLaunch {
  const command = isExec ? args.slice(0, 1) : [];
  const words = [...command, NO_WORKSPACES, ...fromFolder(args.slice(command.length), cwd)];
  if (neutral.shell === undefined)
    return { command: program, args: words, env: { ...RETRY_SOON, ...env }, cwd: neutral.path };
  const isShell = (name: string): boolean => settingOf(name) === "script_shell";
  const own = Object.entries(env).find(([name]) => isShell(name))?.[1] ?? "";
  const others = Object.fromEntries(Object.entries(env).filter(([name]) => !isShell(name)));
  const variables = {
    npm_config_script_shell: neutral.shell,
    [FOLDER_VARIABLE]: cwd,
    [SHELL_VARIABLE]: own.startsWith("/") ? own : "",
  };
  return {
    command: program,
    args: words,
    env: { ...RETRY_SOON, ...others, ...variables },
    cwd: neutral.path,
  };
}
