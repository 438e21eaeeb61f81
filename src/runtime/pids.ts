/**
 * The server processes that the worker has reported, so that main can end them: child processes survive the end of a
 * worker, and no exit hook of a worker runs. Every pid leads a process group of its own (on Windows, a tree).
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import {
  fromPs,
  fromStat,
  type ProcessRow,
  PS_COLUMNS,
  PS_ENV,
  straysOf,
  systemProgram,
} from "../shared/process/strays.ts";

/** Signals that end a process without running exit hooks, unless somebody listens to them. */
const DEADLY = ["SIGINT", "SIGHUP", "SIGTERM"] as const;

function killGroup(pid: number): void {
  if (process.platform === "win32") {
    const taskkill = systemProgram("taskkill.exe", process.env);
    spawnSync(taskkill, ["/PID", String(pid), "/T", "/F"], { windowsHide: true });
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has ended (ESRCH), or the system refuses (EPERM). Nothing more can be done, and an exit hook must not
    // throw.
  }
}

const PS = "/bin/ps";
const PS_MS = 1_000;

function statOf(pid: string): ProcessRow[] {
  try {
    return [fromStat(readFileSync(`/proc/${pid}/stat`, "latin1"))].filter((row) => row !== undefined);
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

/** All processes. None where the system does not tell. */
function processRows(): ProcessRow[] {
  if (process.platform === "darwin") {
    const options = { env: PS_ENV, timeout: PS_MS, encoding: "utf8" } as const;
    const { stdout } = spawnSync(PS, ["-ax", "-o", PS_COLUMNS], options);
    return fromPs(stdout ?? "");
  }
  if (process.platform !== "linux") return [];
  try {
    return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? statOf(name) : []));
  } catch {
    return [];
  }
}

function killStray(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // As for a group.
  }
}

/**
 * Counts the listeners of the package signal-exit, which Pi bundles. Each of them waits until only listeners of
 * signal-exit are left, and then raises the signal again. If onSignal waited for them too, both sides would wait for
 * ever. Version 3 of the package keeps its emitter on `process`, version 4 under a global symbol.
 */
function signalExitListeners(): number {
  const version3 = (process as { __signal_exit_emitter__?: { count?: number } }).__signal_exit_emitter__;
  const version4 = (globalThis as { [key: symbol]: { count?: number } | undefined })[
    Symbol.for("signal-exit emitter")
  ];
  return (version3?.count ?? 0) + (version4?.count ?? 0);
}

/** What watches for the end of this process, for all registries together. */
interface End {
  /** The `killAll` of each registry. */
  kills: Set<() => void>;
  ignore: () => void;
}

/**
 * Global, because this module may be loaded anew for another session. With a listener of its own each registry would take that of
 * another one for somebody who handles the signal.
 */
const END = Symbol.for("pi-mcp-threads:end");
const shared = globalThis as { [END]?: End };

function watchEnd(): End {
  const kills = new Set<() => void>();
  const killAll = (): void => {
    for (const kill of kills) kill();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    // Another listener, for example Pi's own, handles the signal, and the process may go on.
    if (process.listenerCount(signal) - 1 > signalExitListeners()) return;
    killAll();
    process.off(signal, onSignal);
    process.kill(process.pid, signal);
  };
  process.on("exit", killAll);
  for (const signal of DEADLY) process.on(signal, onSignal);
  return {
    kills,
    ignore: () => {
      process.off("exit", killAll);
      for (const signal of DEADLY) process.off(signal, onSignal);
    },
  };
}

export function createPidRegistry() {
  const pids = new Set<number>();
  const killAll = (): void => {
    if (pids.size === 0) return;
    // Children of a process that has ended have lost it as their parent, so they are looked for before.
    const rows = processRows();
    const strays = [...pids].flatMap((pid) => straysOf(pid, rows));
    for (const pid of pids) killGroup(pid);
    for (const { pid } of strays) killStray(pid);
    pids.clear();
  };
  const end = shared[END] ?? watchEnd();
  shared[END] = end;
  end.kills.add(killAll);
  return {
    add: (pid: number) => pids.add(pid),
    remove: (pid: number) => pids.delete(pid),
    /** Kills every group that is still registered. Synchronous, because it also runs in an exit hook. */
    killAll,
    /** Stops watching for the end of the process. */
    dispose: (): void => {
      end.kills.delete(killAll);
      if (end.kills.size > 0) return;
      end.ignore();
      if (shared[END] === end) delete shared[END];
    },
  };
}
