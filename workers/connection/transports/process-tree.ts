/**
 * Starts and ends a server process together with everything it starts: on POSIX a process group of its
 * own, on Windows `taskkill /T`.
 */
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import spawn from "cross-spawn";

export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

export const onWindows = process.platform === "win32";

export function spawnServer(options: {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
}): ServerProcess {
  // cross-spawn resolves `.cmd` shims on Windows; elsewhere it is `child_process.spawn`.
  return spawn(options.command, [...options.args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: !onWindows,
    windowsHide: true,
  }) as ServerProcess;
}

/** Signals the whole group. A group that is gone already is what was wanted. */
export function killTree(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  if (onWindows) {
    const force = signal === "SIGKILL" ? ["/F"] : [];
    spawn("taskkill", ["/PID", String(pid), "/T", ...force], { stdio: "ignore", windowsHide: true });
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
