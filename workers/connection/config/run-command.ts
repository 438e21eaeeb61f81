/**
 * Runs a `!command` of the configuration in a shell and gives what it printed. Bounded in time and
 * bytes; its whole process group ends with it. What it printed is a secret: it is in no error.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import { killTree, onWindows } from "../transports/process-tree.ts";

const TIMEOUT_MS = 10_000;
const OUTPUT_BYTES = 1024 * 1024;

export interface CommandOptions {
  command: string;
  /** Who wants the value, for the error: `docs: env.TOKEN`. */
  label: string;
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  timeoutMs?: number;
}

const startShell = (
  command: string,
  { cwd, env }: Pick<CommandOptions, "cwd" | "env">,
): ChildProcessByStdio<null, Readable, null> =>
  spawn(command, {
    shell: true,
    cwd,
    env: { ...env },
    stdio: ["ignore", "pipe", "ignore"],
    detached: !onWindows,
    windowsHide: true,
  });

const REMEDY = "Run it in a shell to see why.";

/** Trimmed output, which is not empty. Throws `bad_config` or `cancelled`; nothing is left running then. */
export function runCommand(options: CommandOptions): Promise<string> {
  const { command, label, cwd, env, signal, timeoutMs = TIMEOUT_MS } = options;
  const cancelled = (): ThreadsError => new ThreadsError("cancelled", `${label}: its command was cancelled.`);
  if (signal.aborted) return Promise.reject(cancelled());
  const fail = (text: string): ThreadsError =>
    new ThreadsError("bad_config", `${label}: its command ${text}.`, { remedy: REMEDY });
  const start = (): ReturnType<typeof startShell> | undefined => {
    try {
      return startShell(command, { cwd, env });
    } catch {
      // Too long, or holds what no command may; Node's own error would show it.
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
      if (pid !== undefined) killTree(pid, "SIGKILL");
      // A grandchild in a group of its own may still hold the pipe.
      child.stdout.destroy();
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
