/**
 * Turns a command into a launch: the program by its whole path, and the variables that keep the program from running
 * code of its working directory.
 */
import { resolve } from "node:path";
import { findHere, namesFile } from "./find-program.ts";
import { firstLineOf } from "./first-line.ts";
import { type Launch, onWindows } from "./processes.ts";
import { searchesWorkingDirectory } from "./python.ts";
import { spawnFailure } from "./spawn-failure.ts";
import { scriptRunner } from "./windows-call.ts";

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
