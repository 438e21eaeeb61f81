/**
 * Processes of this user with the command line of a server: how often it runs on this machine, for other sessions and other
 * programs. Command lines may hold secrets, so they are only compared, and never shown.
 */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { processRows, ps } from "../../shared/programs/processes.ts";

export interface CommandLine {
  pid: number;
  parent: number;
  group: number;
  /** Resident bytes of this process alone. */
  bytes: number;
  line: string;
}

/** More of a command line is not compared. */
const LINE_BYTES = 16 * 1024;
/** Files of /proc that are read in one turn: about a millisecond. */
const READS_A_TURN = 64;

const buffer = Buffer.alloc(LINE_BYTES);

/** `/proc/<pid>/cmdline` (proc_pid_cmdline(5)): the arguments, each with a zero behind it. Empty for a thread of the system. */
function lineOf(pid: number): string {
  const file = openSync(`/proc/${pid}/cmdline`, "r");
  try {
    return buffer.toString("latin1", 0, readSync(file, buffer, 0, LINE_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

/** `VmRSS` of `/proc/<pid>/status` (proc_pid_status(5)), in bytes. */
const residentBytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) * 1024;

async function fromProc(servers: readonly number[]): Promise<CommandLine[]> {
  const uid = process.getuid?.();
  const found: CommandLine[] = [];
  const wanted = new Set<string>();
  const look = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch {
      // It has ended meanwhile, or is another user's.
      return undefined;
    }
  };
  for (const pid of servers) wanted.add(look(() => lineOf(pid)) ?? "");
  wanted.delete("");
  if (wanted.size === 0) return [];
  for (const [at, { pid, parent, group }] of (await processRows()).entries()) {
    if (at % READS_A_TURN === READS_A_TURN - 1) await nextTurn();
    look(() => {
      const line = lineOf(pid);
      if (!wanted.has(line) || statSync(`/proc/${pid}`).uid !== uid) return;
      found.push({ pid, parent, group, bytes: residentBytes(pid), line });
    });
  }
  return found;
}

/** The lines of `ps -o pid=,ppid=,pgid=,rss=,command=`, which tells KiB. */
export function fromPsLines(text: string): CommandLine[] {
  return text.split("\n").flatMap((row) => {
    const [, pid, parent, group, kib, line = ""] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(.+)$/.exec(row) ?? [];
    if (pid === undefined) return [];
    const cut = line.slice(0, LINE_BYTES);
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        bytes: Number(kib) * 1024,
        line: cut,
      },
    ];
  });
}

/** Processes of this user that have the command line of one of these. None where the system does not tell: on Windows. */
export async function commandLines(servers: readonly number[]): Promise<CommandLine[]> {
  if (servers.length === 0) return [];
  if (process.platform === "linux") return fromProc(servers);
  if (process.platform !== "darwin") return [];
  const options = ["-xww", "-U", String(process.getuid?.()), "-o", "pid=,ppid=,pgid=,rss=,command="];
  const rows = fromPsLines(await ps(options));
  const wanted = new Set(rows.filter(({ pid }) => servers.includes(pid)).map(({ line }) => line));
  return rows.filter(({ line }) => wanted.has(line));
}

/**
 * How often the server's program runs beside this process, and the resident bytes of that. What the server itself has started
 * is its own, and a process that one of them has started counts only its bytes.
 */
export function othersLike(pid: number, rows: readonly CommandLine[]): { count: number; bytes: number } {
  const own = rows.find((row) => row.pid === pid);
  const others = own ? rows.filter(({ line, group }) => line === own.line && group !== own.group) : [];
  const pids = new Set(others.map((row) => row.pid));
  return {
    count: others.filter(({ parent }) => !pids.has(parent)).length,
    bytes: others.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
