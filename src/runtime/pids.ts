/**
 * The server processes that the worker has reported, so that none outlives it: children of a worker
 * survive its end, and no exit hook of a worker runs. Every pid leads a process group of its own (on
 * Windows, a tree).
 */
import { spawnSync } from "node:child_process";
import { systemProgram } from "../shared/process/windows-programs.ts";

export interface PidRegistry {
  add(pid: number): void;
  remove(pid: number): void;
  /** Kills every group that is still registered. Synchronous: also runs in an exit hook. */
  killAll(): void;
  /** Stops watching for the end of the process. */
  dispose(): void;
}

/** Signals that end a process without any hook, where nobody listens to them. */
const DEADLY = ["SIGINT", "SIGHUP"] as const;

function killGroup(pid: number): void {
  if (process.platform === "win32") {
    const taskkill = systemProgram("taskkill.exe", process.env);
    spawnSync(taskkill, ["/PID", String(pid), "/T", "/F"], { windowsHide: true });
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone (ESRCH), or the system refuses (EPERM). Nothing is left to do, and an exit hook must not throw.
  }
}

/**
 * Listeners of the package signal-exit, which Pi bundles: each waits until only its like are left and then
 * raises the signal again. Counting them as somebody who decides would make both sides wait for ever.
 * Version 3 keeps its emitter on `process`, version 4 under a global symbol.
 */
function signalExitListeners(): number {
  const version3 = (process as { __signal_exit_emitter__?: { count?: number } }).__signal_exit_emitter__;
  const version4 = (globalThis as { [key: symbol]: { count?: number } | undefined })[
    Symbol.for("signal-exit emitter")
  ];
  return (version3?.count ?? 0) + (version4?.count ?? 0);
}

export function createPidRegistry(): PidRegistry {
  const pids = new Set<number>();
  const killAll = (): void => {
    for (const pid of pids) killGroup(pid);
    pids.clear();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    // Another listener, for example Pi's own, decides what the signal means; then this is not the end.
    if (process.listenerCount(signal) - 1 > signalExitListeners()) return;
    killAll();
    process.off(signal, onSignal);
    process.kill(process.pid, signal);
  };
  process.on("exit", killAll);
  for (const signal of DEADLY) process.on(signal, onSignal);
  return {
    add: (pid) => pids.add(pid),
    remove: (pid) => pids.delete(pid),
    killAll,
    dispose: () => {
      process.off("exit", killAll);
      for (const signal of DEADLY) process.off(signal, onSignal);
    },
  };
}
