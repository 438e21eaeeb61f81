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
import { childEnvironment, endsOf } from "../../../shared/programs/find-program.ts";
import { killTree, onWindows, systemShell } from "../../../shared/programs/processes.ts";

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

const startShell = (
  command: string,
  { cwd, env }: { cwd: string; env: Record<string, string> },
): ChildProcessByStdio<null, Readable, null> =>
  spawn(command, {
    shell: systemShell(),
    cwd,
    env,
    stdio: ["ignore", "pipe", "ignore"],
    detached: !onWindows,
    windowsHide: true,
  });

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

/** Gives the trimmed output, which is not empty. Throws `bad_config` or `cancelled`; then nothing is left running. */
export async function runCommand(options: CommandOptions): Promise<string> {
  const { command, label, signal, timeoutMs = TIMEOUT_MS } = options;
  const cancelled = (): ThreadsError => new ThreadsError("cancelled", `${label}: its command was cancelled.`);
  const folderAndEnv = await surroundings(options);
  if (signal.aborted) throw cancelled();
  const fail = (text: string): ThreadsError =>
    new ThreadsError("bad_config", `${label}: its command ${text}.`, { remedy: REMEDY });
  const start = (): ReturnType<typeof startShell> | undefined => {
    try {
      return startShell(command, folderAndEnv);
    } catch {
      // The command is too long or holds a forbidden character; Node's own error would show the command.
      return undefined;
    }
  };
  return new Promise((resolve, reject) => {
    const child = start();
    if (!child) return reject(fail("could not be started"));
    const { pid } = child;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let failure: ThreadsError | undefined;
    const stop = (reason: ThreadsError): void => {
      failure ??= reason;
      const killed = pid === undefined ? "gone" : killTree(pid, "SIGKILL");
      // A grandchild in a group of its own may still hold the pipe.
      child.stdout.destroy();
      if (killed !== "refused") return;
      // For example `sudo`: nobody can end it, so nobody waits for its end.
      child.unref();
      settle(failure);
    };
    const onAbort = (): void => stop(cancelled());
    const timer = setTimeout(() => stop(fail(`took more than ${timeoutMs / 1_000} s`)), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    if (pid !== undefined) options.onSpawn(pid);

    child.stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > OUTPUT_BYTES) stop(fail("printed more than 1 MiB"));
    });
    const settle = (error: ThreadsError | undefined): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      const printed = Buffer.concat(chunks).toString("utf8").trim();
      if (error) reject(error);
      else if (printed === "") reject(fail("printed nothing"));
      else resolve(printed);
    };
    child.once("error", () => {
      // Without a pid no "close" follows.
      if (pid === undefined) settle(fail("could not be started"));
    });
    child.once("close", (code, killed) => {
      if (pid !== undefined) options.onExit(pid);
      const ended = code === null ? `was ended by ${killed}` : `ended with code ${code}`;
      settle(failure ?? (code === 0 ? undefined : fail(ended)));
    });
  });
}
