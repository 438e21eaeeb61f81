/**
 * Starts and ends a server process together with everything that it starts: on POSIX by a process group of its own, on
 * Windows by `taskkill /T`. Every program is started by its whole path.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { commandShell, systemProgram } from "../../../src/shared/process/windows-programs.ts";
import { windowsCall } from "./windows-call.ts";

export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

export const onWindows = process.platform === "win32";

/** Whole path of the system's shell, chosen as Node chooses it. */
export const systemShell = (): string => {
  if (onWindows) return commandShell(process.env);
  return process.platform === "android" ? "/system/bin/sh" : "/bin/sh";
};

/** Everything that the system needs to start a process. */
export interface Launch {
  /** An absolute path. */
  program: string;
  args: readonly string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
}

export function spawnServer({ program, args, env, cwd }: Launch): ServerProcess {
  const call = onWindows
    ? windowsCall(program, args, systemShell())
    : { file: program, args, verbatim: false };
  return spawn(call.file, call.args, {
    cwd,
    env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: !onWindows,
    windowsHide: true,
    windowsVerbatimArguments: call.verbatim,
  });
}

/** `gone`: nothing is left to signal. `refused`: the system forbids it, for example for a server behind `sudo`. */
export type Killed = "sent" | "gone" | "refused";

/**
 * Signals the whole group. Never throws: event handlers call it, and an error there would end the worker. macOS also
 * answers EPERM, which becomes `refused`, for a group that has just ended.
 */
export function killTree(pid: number, signal: "SIGTERM" | "SIGKILL"): Killed {
  try {
    if (onWindows) {
      const force = signal === "SIGKILL" ? ["/F"] : [];
      const taskkill = systemProgram("taskkill.exe", process.env);
      const args = ["/PID", String(pid), "/T", ...force];
      // Without a listener a taskkill that cannot be started would end the worker.
      spawn(taskkill, args, { stdio: "ignore", windowsHide: true }).on("error", () => undefined);
    } else process.kill(-pid, signal);
    return "sent";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? "gone" : "refused";
  }
}
