/**
 * What a program prints that runs once. Owns: its input, its time, its bytes and its end: when this settles, nothing of its
 * process group is left running, but for what the system does not let us end. Must not: choose the program.
 */
import type { EventEmitter } from "node:events";
import type { Readable, Writable } from "node:stream";
import { killTree, onWindows, type ServerProcess } from "./processes.ts";

/** A program may run without a pipe for its input and for its errors. */
type Program = EventEmitter &
  Pick<ServerProcess, "pid" | "stdout" | "unref"> & { stdin: Writable | null; stderr: Readable | null };

interface CollectOptions {
  stdin?: string | undefined;
  waitMs: number;
  /** Bytes of stdout and stderr together. */
  bytes: number;
  signal?: AbortSignal;
  /** Kills what the program leaves behind in its group. Absent: a daemon that it starts may stay. */
  endsGroup?: boolean;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
}

/** `code`: null for a program that a signal ended, which is `by`. */
export interface Printed {
  how: "ended";
  code: number | null;
  by: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export type Collected = Printed | { how: "late" | "long" | "cancelled" | "unstarted" };

/** Never rejects. */
export function collect(child: Program, options: CollectOptions): Promise<Collected> {
  const { stdin = "", waitMs, bytes: most, signal, endsGroup = false, onSpawn, onExit } = options;
  return new Promise((resolve) => {
    const { pid } = child;
    if (pid !== undefined) onSpawn(pid);
    const printed: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    let bytes = 0;
    let failure: Exclude<Collected, Printed> | undefined;
    const settle = (code: number | null, by: NodeJS.Signals | null = null): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      const textOf = (chunks: Buffer[]): string => Buffer.concat(chunks).toString("utf8");
      const { stdout, stderr } = printed;
      resolve(failure ?? { how: "ended", code, by, stdout: textOf(stdout), stderr: textOf(stderr) });
    };
    const stop = (how: "late" | "long" | "cancelled"): void => {
      failure ??= { how };
      const killed = pid === undefined ? "gone" : killTree(pid, "SIGKILL");
      // A process that has left the group may still hold the pipes.
      for (const stream of [child.stdout, child.stderr, child.stdin]) stream?.destroy();
      if (killed !== "refused") return;
      // For example `sudo`: nobody can end it, so nobody waits for its end.
      child.unref();
      settle(null);
    };
    const cancel = (): void => stop("cancelled");
    const timer = setTimeout(() => stop("late"), waitMs);
    signal?.addEventListener("abort", cancel, { once: true });
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > most) stop("long");
        else printed[name].push(chunk);
      });
    }
    child.once("error", () => {
      // Without a pid no "close" follows.
      if (pid !== undefined) return;
      failure = { how: "unstarted" };
      settle(null);
    });
    // What is left in the group may hold the pipes, and "close" would not come. Windows has no groups, and the number of the
    // process may already be another one's.
    child.once("exit", () => {
      if (endsGroup && !onWindows && pid !== undefined) killTree(pid, "SIGKILL");
    });
    child.once("close", (code: number | null, by: NodeJS.Signals | null) => {
      if (pid !== undefined) onExit(pid);
      settle(code, by);
    });
    // A program that has ended does not read: its code says why.
    child.stdin?.on("error", () => undefined).end(stdin);
    if (signal?.aborted) cancel();
  });
}
