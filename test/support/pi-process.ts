/**
 * Owns: one child process that runs the real Pi against a scripted model, from start to exit.
 * Must not: interpret Pi's output.
 * Called by: pi-run.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ScriptedModel } from "./model.ts";
import { type PiHome, STUB_MODEL, STUB_PROVIDER } from "./pi-home.ts";
import { ensurePi } from "./pi-host.ts";

export interface PiOptions {
  home: PiHome;
  model: ScriptedModel;
  /** Paths for `-e`; without any, bare Pi runs. */
  extensions?: string | readonly string[];
  /** More arguments, before the prompt: for example `["--tools", "read"]`, `["--approve"]`, `["--continue"]`. */
  args?: readonly string[];
  /** Absolute path of the program that runs Pi's command line. Default: the Node of the tests. */
  runtime?: string;
  /** These variables override all others in the environment; `undefined` removes a variable. */
  env?: Readonly<Record<string, string | undefined>>;
}

export interface PiExit {
  /** Null if a signal ended the process. */
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Milliseconds from the start to the end of Pi's process, even if children still hold its output. */
  durationMs: number;
}

export interface PiProcess {
  pid: number;
  /** Milliseconds since the epoch, with fractions, taken right before the spawn. */
  startedAtMs: number;
  /** Null unless the caller asked for a pipe. */
  stdin: Writable | null;
  stdout: Readable;
  stderr: Readable;
  /** Resolves after the exit and the end of the output, never rejects. */
  exited: Promise<PiExit>;
  kill(signal: NodeJS.Signals): void;
}

/** A surviving child may hold Pi's stdout open for ever. Pi's own output has arrived within this time, on a busy machine too. */
const OUTPUT_GRACE_MS = 2_000;

/**
 * Pi's Node gets the first size of V8's young generation that this process has, as `fork` would pass it on: the Vitest
 * configuration sets it to save processor time. A bench has none, so its Pi runs as the Pi of users.
 */
export const ROOM_AT_START = process.execArgv.filter((flag) => flag.startsWith("--min-semi-space-size="));

/** Starts Pi with `--provider`, `--model`, the extensions and `modeArgs`. */
export async function startPi(
  options: PiOptions & { modeArgs: readonly string[]; stdin: "ignore" | "pipe" },
): Promise<PiProcess> {
  const pi = await ensurePi();
  await options.home.useModel(options.model.url);
  const args = [
    ...(options.runtime === undefined ? ROOM_AT_START : []),
    pi.cli,
    ...["--provider", STUB_PROVIDER, "--model", STUB_MODEL],
    ...[options.extensions ?? []].flat().flatMap((path) => ["-e", path]),
    ...(options.args ?? []),
    ...options.modeArgs,
  ];
  const startedAtMs = performance.timeOrigin + performance.now();
  const child = spawn(options.runtime ?? process.execPath, args, {
    cwd: options.home.cwd,
    env: options.home.env(options.env),
    stdio: [options.stdin, "pipe", "pipe"],
  });
  const { pid, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null) {
    const [error] = await once(child, "error");
    throw new Error(`Pi did not start: ${String(error)}`, { cause: error });
  }
  return {
    pid,
    startedAtMs,
    stdin: child.stdin,
    stdout: stdout.setEncoding("utf8"),
    stderr: stderr.setEncoding("utf8"),
    exited: waitForExit(child, startedAtMs),
    kill: (signal) => void child.kill(signal),
  };
}

async function waitForExit(child: ChildProcess, startedAtMs: number): Promise<PiExit> {
  const closed = once(child, "close");
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  const durationMs = performance.timeOrigin + performance.now() - startedAtMs;
  const timer = new AbortController();
  await Promise.race([closed, sleep(OUTPUT_GRACE_MS, undefined, { signal: timer.signal }).catch(() => {})]);
  timer.abort();
  child.stdout?.destroy();
  child.stderr?.destroy();
  return { code, signal, durationMs };
}
