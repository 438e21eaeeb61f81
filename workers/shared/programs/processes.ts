/**
 * Starts and ends a server process together with everything that it starts: on POSIX by a process group of its own, on
 * Windows by `taskkill /T`. Every program is started by its whole path.
 */

import { execFile, spawn } from "node:child_process";
import type { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import escaping from "cross-spawn/lib/util/escape.js";
import {
  commandShell,
  fromPs,
  fromStat,
  type ProcessRow,
  PS_COLUMNS,
  PS_ENV,
  straysOf,
  systemProgram,
} from "../../../src/shared/process/strays.ts";
import type { Launch } from "../../../src/shared/protocol/person.ts";
import type { Sharing } from "../../../src/shared/protocol/session.ts";
import type { Leave } from "../pace/pace.ts";

export type { Launch };

/** A child process, or the use of a process that sessions share: its events are those of Node's `ChildProcess`. */
export interface ServerProcess extends EventEmitter {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly pid?: number | undefined;
  unref(): void;
  /** Only of a shared one: ends this session's use of it. Nothing is signalled. */
  leave?(how: Leave): void;
  readonly sharing?: Sharing | undefined;
  /** The hub has gone, and nothing is known of the server. */
  readonly isLost?: boolean;
}

export const onWindows = process.platform === "win32";

/** Whole path of the system's shell, chosen as Node chooses it. */
export const systemShell = (): string => {
  if (onWindows) return commandShell(process.env);
  return process.platform === "android" ? "/system/bin/sh" : "/bin/sh";
};

/** Throws what Node refuses without an event, such as an environment that is too long for the system. */
export function spawnServer({ program, args, env, cwd }: Launch): ServerProcess {
  const call = onWindows
    ? windowsCall(program, args, systemShell())
    : { file: program, args, verbatim: false };
  const child = spawn(call.file, call.args, {
    cwd,
    env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: !onWindows,
    windowsHide: true,
    windowsVerbatimArguments: call.verbatim,
  });
  // Without file descriptors Node makes no streams, and tells the error later.
  if ((child.stdin as Writable | undefined) === undefined) {
    child.on("error", () => undefined);
    throw Object.assign(new Error("no file descriptors are left (EMFILE)"), { code: "EMFILE" });
  }
  return child;
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

/** What the program prints, so many bytes of its start, until it or `signal` ends it. */
export async function printedBy(launch: Launch, bytes: number, signal: AbortSignal) {
  const child = spawnServer(launch);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const stop = (): void => {
    if (child.pid !== undefined) killTree(child.pid, "SIGKILL");
    resolve();
  };
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (chunk: Buffer) => {
      printed[name] += chunk.toString("latin1").slice(0, bytes - printed[name].length);
    });
  }
  child.stdin.on("error", () => undefined).end();
  child.once("error", () => resolve());
  child.once("close", () => resolve());
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  await ended.finally(() => signal.removeEventListener("abort", stop));
  return printed;
}

const PS = "/bin/ps";
const PS_MS = 1_000;
/** A machine has thousands of processes, with command lines of kilobytes. */
const PS_BYTES = 32 * 1024 * 1024;

/** What `ps` prints. `env`: absent, that of this process. */
export async function ps(options: readonly string[], env = process.env): Promise<string> {
  const { stdout } = await promisify(execFile)(PS, options, { env, timeout: PS_MS, maxBuffer: PS_BYTES });
  return stdout;
}

/** Files of /proc that are read in one turn: a millisecond. A promise for each would take five times as long. */
const READS_A_TURN = 64;

async function fromProc(pids: readonly string[]): Promise<ProcessRow[]> {
  const rows: ProcessRow[] = [];
  for (const [at, pid] of pids.entries()) {
    if (at % READS_A_TURN === READS_A_TURN - 1) await nextTurn();
    try {
      const row = fromStat(readFileSync(`/proc/${pid}/stat`, "latin1"));
      if (row) rows.push(row);
    } catch {
      // It has ended meanwhile.
    }
  }
  return rows;
}

/** All processes, or those with these pids. None where the system does not tell. */
export async function processRows(pids?: readonly number[]): Promise<ProcessRow[]> {
  if (process.platform === "linux") {
    const names = pids?.map(String) ?? (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    return fromProc(names);
  }
  if (process.platform !== "darwin" || pids?.length === 0) return [];
  const which = pids ? ["-p", pids.join(",")] : ["-ax"];
  return fromPs(await ps([...which, "-o", PS_COLUMNS], PS_ENV));
}

let looking: Promise<ProcessRow[]> | undefined;

/**
 * What the process has started that is not in its group. Must be asked for while the process lives, since its children
 * then lose it as their parent. Processes that end together share one look. On Windows `taskkill /T` knows them. Never
 * rejects.
 */
export async function findStrays(pid: number): Promise<ProcessRow[]> {
  looking ??= processRows()
    .catch((): ProcessRow[] => [])
    .finally(() => {
      looking = undefined;
    });
  return straysOf(pid, await looking);
}

/** Kills them, but none that has taken the pid of one which has ended. Never rejects. */
export async function killStrays(strays: readonly ProcessRow[]): Promise<void> {
  if (strays.length === 0) return;
  const now = await processRows(strays.map(({ pid }) => pid)).catch((): ProcessRow[] => []);
  for (const { pid, started } of strays) {
    const row = now.find((one) => one.pid === pid && one.started === started);
    if (!row) continue;
    try {
      // The leader of a group takes along what it has started since.
      process.kill(row.group === pid ? -pid : pid, "SIGKILL");
    } catch {
      // It has ended (ESRCH), or the system refuses (EPERM).
    }
  }
}

const PROGRAM = /\.(?:com|exe)$/i;
/** npm's shims hand their arguments to a second command shell. */
const SHIM = /node_modules[\\/]\.bin[\\/][^\\/]+\.cmd$/i;
/** Files that the system starts by itself or through the command shell. */
const STARTABLE = /\.(?:com|exe|cmd|bat)$/i;

/**
 * How a file is started on Windows: a program directly, any other file, such as an npm `.cmd`, by the command shell with
 * its arguments escaped (`verbatim`). `program`, `shell`: whole paths of the program and of the command shell.
 */
export function windowsCall(
  program: string,
  args: readonly string[],
  shell: string,
): { file: string; args: string[]; verbatim: boolean } {
  if (PROGRAM.test(program)) return { file: program, args: [...args], verbatim: false };
  const isShim = SHIM.test(program);
  const words = [escaping.command(program), ...args.map((arg) => escaping.argument(arg, isShim))];
  return { file: shell, args: ["/d", "/s", "/c", `"${words.join(" ")}"`], verbatim: true };
}

/** The program that a script's first line names, with its flags; undefined if the system starts the file itself. */
export function scriptRunner(
  file: string,
  firstLine: string,
): { command: string; flags: string[] } | undefined {
  if (STARTABLE.test(file)) return undefined;
  const [path = "", ...words] = /^#!\s*(.*)$/.exec(firstLine)?.[1]?.trim().split(/\s+/) ?? [];
  const name = path.split("/").at(-1) ?? "";
  if (name === "") return undefined;
  if (name !== "env") return { command: name, flags: words };
  const [command, ...flags] = words.filter((word) => word !== "-S");
  return command === undefined ? undefined : { command, flags };
}

/** Resident bytes of whole process groups, by the pid of their leaders. Those that the system does not tell are left out. */
export async function groupMemory(leaders: readonly number[]): Promise<Map<number, number>> {
  const memory = new Map<number, number>();
  if (leaders.length === 0) return memory;
  const add = (group: number, bytes: number): void => {
    if (leaders.includes(group)) memory.set(group, (memory.get(group) ?? 0) + bytes);
  };
  if (process.platform === "linux") {
    for (const { pid, group } of await processRows()) {
      if (leaders.includes(group)) add(group, residentBytes(pid));
    }
  } else if (process.platform === "darwin") {
    for (const line of (await ps(["-axo", "pgid=,rss="])).split("\n")) {
      const [group, kib] = line.trim().split(/\s+/).map(Number);
      if (group !== undefined && kib !== undefined) add(group, kib * 1024);
    }
  }
  return memory;
}

/** `VmRSS` of `/proc/<pid>/status` (proc_pid_status(5)), in bytes; 0 for a process that has ended. */
function residentBytes(pid: number): number {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
    return Number(kib ?? 0) * 1024;
  } catch {
    return 0;
  }
}
