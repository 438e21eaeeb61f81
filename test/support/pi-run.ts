/**
 * Owns: the ways a test runs the real Pi: print mode until it exits, or an RPC session.
 * Must not: prepare homes (pi-home.ts) or speak the protocol (rpc-session.ts).
 * Called by: end-to-end tests and benches.
 */
import { type PiExit, type PiOptions, startPi } from "./pi-process.ts";
import { RpcSession } from "./rpc-session.ts";

export { createHome, type HomeOptions, type PiHome } from "./pi-home.ts";
export type { PiExit, PiOptions } from "./pi-process.ts";
export type { RpcSession } from "./rpc-session.ts";

/** This limit ends hangs only, so it is long enough for a busy machine. */
const DEFAULT_TIMEOUT_MS = 100_000;

export interface PrintOptions extends PiOptions {
  prompt: string;
  /** Time until Pi is killed, in milliseconds. */
  timeoutMs?: number;
}

export interface PrintResult extends PiExit {
  stdout: string;
  stderr: string;
  /** Milliseconds since the epoch: `request.arrivedAtMs - startedAtMs` is the time to a request. */
  startedAtMs: number;
  /** True if `timeoutMs` ended Pi. */
  timedOut: boolean;
}

export interface PrintRun {
  pid: number;
  startedAtMs: number;
  kill(signal: NodeJS.Signals): void;
  /** Never rejects. */
  done: Promise<PrintResult>;
}

/** Runs `pi -p <prompt>` until it exits. If Pi fails, the result says so; nothing is thrown. */
export async function runPrint(options: PrintOptions): Promise<PrintResult> {
  const run = await startPrint(options);
  return run.done;
}

/** Starts `pi -p <prompt>`, for tests that signal or watch Pi while it runs. */
export async function startPrint(options: PrintOptions): Promise<PrintRun> {
  const child = await startPi({ ...options, modeArgs: ["-p", options.prompt], stdin: "ignore" });
  let stdout = "";
  let stderr = "";
  let timedOut = false;
  child.stdout.on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk: string) => {
    stderr += chunk;
  });
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill("SIGKILL");
  }, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const finish = (exit: PiExit): PrintResult => {
    clearTimeout(timer);
    return { ...exit, stdout, stderr, startedAtMs: child.startedAtMs, timedOut };
  };
  return {
    pid: child.pid,
    startedAtMs: child.startedAtMs,
    kill: child.kill,
    done: child.exited.then(finish),
  };
}

/** Starts `pi --mode rpc` and returns right after the spawn. Records that are sent early wait in Pi's stdin. */
export async function startRpc(options: PiOptions): Promise<RpcSession> {
  return new RpcSession(await startPi({ ...options, modeArgs: ["--mode", "rpc"], stdin: "pipe" }));
}
