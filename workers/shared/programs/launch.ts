/**
 * Turns a command into a launch: the program by its whole path, and the variables that keep the program from running
 * code of its working directory.
 */

import { resolve, win32 } from "node:path";
import { lackRemedy, messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isFolder } from "../files/file-system.ts";
import { codeOf, readStart, whyUnread } from "../files/read-regular.ts";
import { findHere, namesFile } from "./find-program.ts";
import { dividedCommand, dividedRemedy } from "./one-text.ts";
import { type Launch, onWindows, scriptRunner } from "./processes.ts";

export interface Command {
  command: string;
  args: readonly string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
  /** The folder in which Pi runs must not decide what is started. */
  isIndependent: boolean;
}

/** Windows does not read the first line of a script: the program that the line names is started with the script. */
async function withRunner(program: string, command: Command): Promise<Pick<Launch, "program" | "args">> {
  const { args } = command;
  const runner = onWindows && scriptRunner(program, await firstLineOf(program).catch(() => ""));
  const runs = runner ? await findHere(runner.command, command) : undefined;
  return runner && runs ? { program: runs, args: [...runner.flags, program, ...args] } : { program, args };
}

/** Throws `spawn_failed` if there is no such program. */
export async function launchOf(command: Command, server: string): Promise<Launch> {
  const { args, cwd, env, isIndependent } = command;
  const found = await findHere(command.command, command);
  // If the command names a file, the system's own error says best why the file cannot be started.
  const isNamed = !onWindows && namesFile(command.command, process.platform);
  const program = found ?? (isNamed ? resolve(cwd, command.command) : undefined);
  if (program === undefined) throw await spawnFailure({ server, command: command.command, cwd });
  const searches = isIndependent && searchesWorkingDirectory(program, args);
  return {
    ...(await withRunner(program, command)),
    env: searches ? { PYTHONSAFEPATH: "1", ...env } : env,
    cwd,
  };
}

const FIRST_LINE_BYTES = 256;

/** The first line of a file, which may name the program that runs the file. Throws if it cannot be read. */
export async function firstLineOf(file: string): Promise<string> {
  const read = await readStart(file, FIRST_LINE_BYTES);
  if (read.kind !== "bytes") throw new Error(`${file}: ${whyUnread(read)}`);
  return read.bytes.toString("latin1").split(/\r?\n/, 1)[0] ?? "";
}

const PYTHON = /^(?:python|pythonw|pypy|py)[\d.]*(?:\.exe)?$/i;
/** Flags that take the next argument as their value. */
const WITH_VALUE = /^-[A-Za-z]*[WX]$|^--check-hash-based-pycs$/;
/** `m` or `c` among flags that take no value. */
const RUNS_CODE = /^-[bBdEhiIOPqsSuvVx?]*[mc]/;

/**
 * Whether Python would look for modules in its working directory first. With `-m` and `-c` it does, and a file
 * `json.py` in a clone then runs in place of Python's own module. `program`: path or name.
 */
export function searchesWorkingDirectory(program: string, args: readonly string[]): boolean {
  if (!PYTHON.test(win32.basename(program))) return false;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (!arg.startsWith("-") || arg === "--") return false;
    if (RUNS_CODE.test(arg)) return true;
    if (WITH_VALUE.test(arg)) i++;
  }
  return false;
}

const CHECK_FOLDER = "Make it, or correct cwd in mcp.json.";
const CHECK_COMMAND =
  "Check command, cwd and PATH in mcp.json. A program in the working directory needs its path, such as ./server.";

const CHECK_MODE =
  "Check command and cwd in mcp.json: the file must be executable (chmod +x) and its disk not mounted noexec, and the folder open to you.";

/**
 * The error `spawn_failed`: because of the command as the definition writes it, its working directory, or the system's error.
 * `error`: undefined if the search for the command found nothing.
 */
export async function spawnFailure({
  server,
  command,
  cwd,
  error,
}: {
  server: string;
  command: string;
  cwd: string;
  error?: unknown;
}): Promise<ThreadsError> {
  const divided =
    error === undefined || codeOf(error) === "ENOENT" ? await dividedCommand(command, cwd) : undefined;
  // ENOENT means that either the command or the folder does not exist.
  const hasFolder = await isFolder(cwd);
  const isSystems = error !== undefined && codeOf(error) !== "ENOENT";
  const what = isSystems
    ? `"${command}" could not be started: ${messageOf(error)}.`
    : hasFolder
      ? `the command "${command}" was not found${divided ? ": it holds its arguments too" : ""}.`
      : `its working directory ${cwd} does not exist.`;
  const check = hasFolder || isSystems ? CHECK_COMMAND : CHECK_FOLDER;
  const reason = isSystems ? codeOf(error) : hasFolder ? undefined : "no-folder";
  return new ThreadsError("spawn_failed", `${server}: ${what}`, {
    remedy:
      lackRemedy(error) ??
      (divided ? dividedRemedy(divided) : codeOf(error) === "EACCES" ? CHECK_MODE : check),
    data: { server, ...(reason && { reason }) },
  });
}
