/**
 * Turns a command into a launch: the program by its whole path, and the variables that keep the program from running
 * code of its working directory.
 */

import { open } from "node:fs/promises";
import { resolve, win32 } from "node:path";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isFolder } from "../files/file-system.ts";
import { findHere, namesFile } from "./find-program.ts";
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

export async function firstLineOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES), 0, FIRST_LINE_BYTES, 0);
    return buffer.toString("latin1", 0, bytesRead).split(/\r?\n/, 1)[0] ?? "";
  } finally {
    await handle.close();
  }
}

const PYTHON = /^(?:python|pythonw|pypy|py)[\d.]*(?:\.exe)?$/i;
/** Flags that take the next argument as their value. */
const WITH_VALUE = /^-[A-Za-z]*[WX]$|^--check-hash-based-pycs$/;
/** `m` or `c` among flags that take no value. */
const RUNS_CODE = /^-[bBdEhiIOPqsSuvVx?]*[mc]/;

/** `program`: path or name. */
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

interface FailedSpawn {
  server: string;
  /** The command as the definition writes it. */
  command: string;
  cwd: string;
  /** Error of the system; undefined if the search for the command found nothing. */
  error?: unknown;
}

/** ENOENT means that either the command or the folder does not exist. */
async function describe({ server, command, cwd, error }: FailedSpawn): Promise<string> {
  if (error !== undefined && (error as NodeJS.ErrnoException).code !== "ENOENT") {
    return `${server}: "${command}" could not be started: ${messageOf(error)}.`;
  }
  return (await isFolder(cwd))
    ? `${server}: the command "${command}" was not found.`
    : `${server}: its working directory ${cwd} does not exist.`;
}

/** The error `spawn_failed` with its remedy. */
export async function spawnFailure(failed: FailedSpawn): Promise<ThreadsError> {
  return new ThreadsError("spawn_failed", await describe(failed), {
    remedy:
      "Check command, cwd and PATH in mcp.json. A program of the working directory needs its path, such as ./server.",
    data: { server: failed.server },
  });
}
