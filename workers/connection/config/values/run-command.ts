/**
 * Runs a `!command` of the configuration in a shell and gives its output. Time and bytes are bounded, and the whole
 * process group ends with the command. The output is a secret, so that no error holds it. A command of the user's own
 * files does not run in the folder in which Pi runs: `python -m keyring` would load a clone's keyring.py.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { parse } from "node:path";
import type { Readable } from "node:stream";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isFolder } from "../../../shared/files/file-system.ts";
import { collect } from "../../../shared/programs/collect.ts";
import { childEnvironment, endsOf } from "../../../shared/programs/find-program.ts";
import { onWindows, systemShell } from "../../../shared/programs/processes.ts";

const TIMEOUT_MS = 10_000;
const OUTPUT_BYTES = 1024 * 1024;

interface CommandOptions {
  command: string;
  /** The server and key that need the value, for errors: `docs: env.TOKEN`. */
  label: string;
  /** The folder in which Pi runs: a command of a project's file runs here. */
  cwd: string;
  /** The user's home folder: every other command runs here. */
  home: string;
  definedByProject: boolean;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  timeoutMs?: number;
}

/** Undefined: the command is too long or holds a forbidden character, or no file descriptor is left. */
function startShell(
  command: string,
  { cwd, env }: { cwd: string; env: Record<string, string> },
): ChildProcessByStdio<null, Readable, null> | undefined {
  try {
    const child = spawn(command, {
      shell: systemShell(),
      cwd,
      env,
      stdio: ["ignore", "pipe", "ignore"],
      detached: !onWindows,
      windowsHide: true,
    });
    if ((child.stdout as Readable | undefined) !== undefined) return child;
    // Without file descriptors Node makes no streams, and tells the error later.
    child.on("error", () => undefined);
  } catch {
    // Node's own error would show the command.
  }
  return undefined;
}

/** The home folder, or the root if there is none, as in some containers. */
const homeOrRoot = async (home: string): Promise<string> =>
  (await isFolder(home)) ? home : parse(process.execPath).root;

/** The folder and the environment of a command. `own`: variables that its key sets. */
export async function surroundings(
  {
    cwd,
    home,
    env: base,
    definedByProject,
  }: Pick<CommandOptions, "cwd" | "home" | "env" | "definedByProject">,
  own: Readonly<Record<string, string>> = {},
): Promise<{ cwd: string; env: Record<string, string> }> {
  const independentOf = definedByProject ? undefined : { cwd, home, ends: await endsOf(base, { cwd, home }) };
  const env = childEnvironment({ base, own, platform: process.platform, independentOf });
  return { cwd: definedByProject ? cwd : await homeOrRoot(home), env };
}

const REMEDY = "Run it in a shell to see why.";
const UNSTARTED = "could not be started";

/** Gives the trimmed output, which is not empty. Throws `bad_config` or `cancelled`; then nothing is left running. */
export async function runCommand(options: CommandOptions): Promise<string> {
  const { command, label, signal, timeoutMs = TIMEOUT_MS } = options;
  const cancelled = (): ThreadsError => new ThreadsError("cancelled", `${label}: its command was cancelled.`);
  const folderAndEnv = await surroundings(options);
  if (signal.aborted) throw cancelled();
  const fail = (text: string): ThreadsError =>
    new ThreadsError("bad_config", `${label}: its command ${text}.`, { remedy: REMEDY });
  const child = startShell(command, folderAndEnv);
  if (!child) throw fail(UNSTARTED);
  const { onSpawn, onExit } = options;
  const ended = await collect(child, { waitMs: timeoutMs, bytes: OUTPUT_BYTES, signal, onSpawn, onExit });
  if (ended.how === "cancelled") throw cancelled();
  if (ended.how !== "ended") {
    const reasons = { late: `took more than ${timeoutMs / 1_000} s`, long: "printed more than 1 MiB" };
    throw fail(ended.how === "unstarted" ? UNSTARTED : reasons[ended.how]);
  }
  if (ended.code === null) throw fail(`was ended by ${ended.by}`);
  if (ended.code !== 0) throw fail(`ended with code ${ended.code}`);
  const printed = ended.stdout.trim();
  if (printed === "") throw fail("printed nothing");
  return printed;
}
