/**
 * From a command to what the system is told to start: its program by the whole path, and what the program must know
 * so that it runs nothing that lies in its working directory.
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
  /** The folder in which Pi runs decides nothing of what is started. */
  isIndependent: boolean;
}

/** Windows does not read the first line of a script, so the program that it names is started with the script. */
async function withRunner(program: string, command: Command): Promise<Pick<Launch, "program" | "args">> {
  const { args } = command;
  const runner = onWindows && scriptRunner(program, await firstLineOf(program).catch(() => ""));
  const runs = runner ? await findHere(runner.command, command) : undefined;
  return runner && runs ? { program: runs, args: [...runner.flags, program, ...args] } : { program, args };
}

/** Throws `spawn_failed` where there is no such program. */
export async function launchOf(command: Command, server: string): Promise<Launch> {
  const { args, cwd, env, isIndependent } = command;
  const found = await findHere(command.command, command);
  // The system says best why a file that is named cannot be started.
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
