/**
 * Owns: lists of the processes of this machine: descendants, survivors with a marker; and waiting for their end.
 * Must not: start processes, or end a process that does not carry the marker of a test.
 * Called by: pi-home.ts for its cleanup, and tests that look for processes after an exit.
 *
 * Linux reads /proc; macOS and other Unix systems read `ps`. Windows is not supported and throws.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { PATIENCE_MS } from "./patience.ts";

export interface ProcessInfo {
  pid: number;
  ppid: number;
  /** Arguments joined by blanks. */
  command: string;
}

interface ProcessEntry extends ProcessInfo {
  /** Environment as `NAME=value` entries; empty if it cannot be read. */
  environment: readonly string[];
}

const POLL_MS = 20;
const PS_OUTPUT_BYTES = 16_000_000;

/** All running processes that `pid` started, directly or not, nearest first. Orphans are not in this tree. */
export async function descendants(pid: number): Promise<ProcessInfo[]> {
  const all = await listProcesses();
  const found: ProcessInfo[] = [];
  let parents = new Set([pid]);
  while (parents.size > 0) {
    const children = all.filter((entry) => parents.has(entry.ppid));
    found.push(...children.map(toInfo));
    parents = new Set(children.map((child) => child.pid));
  }
  return found;
}

/** The pids of all processes. */
export async function allPids(): Promise<Set<number>> {
  return new Set(process.platform === "linux" ? pidsInProc() : (await listProcesses()).map(({ pid }) => pid));
}

/**
 * Running processes, except this one and those in `except`, whose environment or command line contains `marker`.
 * The marker `home.dir` finds orphans too, because servers inherit HOME.
 */
export async function processesWithMarker(
  marker: string,
  except: ReadonlySet<number> = new Set(),
): Promise<ProcessInfo[]> {
  const all = await listProcesses(except);
  return all
    .filter((entry) => entry.pid !== process.pid)
    .filter((entry) => entry.command.includes(marker) || entry.environment.some((v) => v.includes(marker)))
    .map(toInfo);
}

/** Less than the half minute after which a start is given up, and the minute after which what nobody uses ends by itself. */
const GONE_MS = PATIENCE_MS / 3;

/** Waits until none of the processes runs (a zombie does not run). Returns the pids of processes that still run. */
export async function waitGone(pids: readonly number[], timeoutMs = GONE_MS): Promise<number[]> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const left = await stillRunning(pids);
    if (left.length === 0 || performance.now() > deadlineMs) return left;
    await sleep(POLL_MS);
  }
}

async function stillRunning(pids: readonly number[]): Promise<number[]> {
  if (process.platform === "linux") return pids.filter((pid) => readParent(pid) !== undefined);
  const running = new Set((await listProcesses()).map((entry) => entry.pid));
  return pids.filter((pid) => running.has(pid));
}

/** Kills every process with exactly this `NAME=value` in its environment and waits for their end. */
export async function killMarked(variable: string): Promise<void> {
  if (process.platform === "win32") return;
  const all = await listProcesses();
  const marked = all.filter((entry) => entry.pid !== process.pid && entry.environment.includes(variable));
  for (const entry of marked) {
    try {
      process.kill(entry.pid, "SIGKILL");
    } catch (error) {
      // The process may have ended after the listing.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
  if (marked.length === 0) return;
  await waitGone(marked.map((entry) => entry.pid));
}

function toInfo({ pid, ppid, command }: ProcessEntry): ProcessInfo {
  return { pid, ppid, command };
}

async function listProcesses(except: ReadonlySet<number> = new Set()): Promise<ProcessEntry[]> {
  if (process.platform === "linux") return listFromProc(except);
  if (process.platform === "win32") throw new Error("processes.ts lists processes on Unix systems only");
  return (await listFromPs()).filter(({ pid }) => !except.has(pid));
}

const pidsInProc = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

function listFromProc(except: ReadonlySet<number>): ProcessEntry[] {
  const pids = pidsInProc().filter((pid) => !except.has(pid));
  return pids.map(readProc).filter((entry) => entry !== undefined);
}

/**
 * Empty if the process has ended. Reads synchronously: the kernel answers from memory, a promise costs ten times
 * more.
 */
function readProcFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

/** Undefined for a zombie and for a process that has ended. */
function readParent(pid: number): number | undefined {
  const stat = readProcFile(pid, "stat");
  // proc(5): `pid (name) state ppid ...`; the name may hold blanks and brackets.
  const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return stat === "" || state === "Z" || state === "X" || ppid === undefined ? undefined : Number(ppid);
}

function readProc(pid: number): ProcessEntry | undefined {
  const ppid = readParent(pid);
  if (ppid === undefined) return undefined;
  const environment = readProcFile(pid, "environ").split("\0");
  return {
    pid,
    ppid,
    command: readProcFile(pid, "cmdline").split("\0").join(" ").trim(),
    environment: environment.filter((variable) => variable !== ""),
  };
}

/** On macOS `-E` appends the environment to the command, separated by blanks. Other systems ignore or lack `-E`. */
async function listFromPs(): Promise<ProcessEntry[]> {
  const flags = process.platform === "darwin" ? ["-E"] : [];
  const args = [...flags, "-A", "-ww", "-o", "pid=,ppid=,state=,command="];
  const { stdout } = await promisify(execFile)("ps", args, { maxBuffer: PS_OUTPUT_BYTES });
  return stdout.split("\n").flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line);
    if (match === null || match[3]?.startsWith("Z")) return [];
    const command = match[4] ?? "";
    return [{ pid: Number(match[1]), ppid: Number(match[2]), command, environment: command.split(" ") }];
  });
}
