/**
 * Runs the program of the system's credential store once. Owns: which file that is, its time, its bytes and its end. The
 * program is found without the folder in which Pi runs and does not run there, and what it prints is in no error.
 */
import { homedir } from "node:os";
import { parse } from "node:path";
import { childEnvironment, type Env, findHere } from "../../../../shared/programs/find-program.ts";
import { killTree, type ServerProcess, spawnServer } from "../../../../shared/programs/processes.ts";
import type { Dialect, Ended, Run } from "./programs.ts";

export interface SystemOptions {
  env: Env;
  platform: NodeJS.Platform;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Tests pass a shorter time. */
  waitMs?: number;
}

/** The store may ask its user for a password meanwhile. */
const WAIT_MS = 30_000;
/** A text has some kilobytes. */
const OUTPUT_BYTES = 64 * 1024;
const UNSTARTED = "its program could not be started";

/** Why there is no answer, behind "the system's credential store cannot be used: ". */
export class Unanswered extends Error {}

/** Throws `Unanswered`; then nothing is left running. */
export async function run(
  { program: named, absent }: Dialect,
  { args, stdin }: Run,
  { env: base, platform, onSpawn, onExit, waitMs = WAIT_MS }: SystemOptions,
): Promise<Ended> {
  const independentOf = { cwd: process.cwd(), home: homedir() };
  // The words of the program are read, so they must not be translated.
  const own = { LC_ALL: "C", LANGUAGE: "" };
  const env = childEnvironment({ base, own, platform, independentOf });
  const { root } = parse(process.execPath);
  const program = await findHere(named, { env, cwd: root });
  if (program === undefined) throw new Unanswered(absent);
  let child: ServerProcess;
  try {
    child = spawnServer({ program, args, env, cwd: root });
  } catch {
    // Node's own error would show the environment's size or the arguments.
    throw new Unanswered(UNSTARTED);
  }
  return new Promise((resolve, reject) => {
    const { pid } = child;
    if (pid !== undefined) onSpawn(pid);
    const printed: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    let bytes = 0;
    let failure: Unanswered | undefined;
    const settle = (code: number | null): void => {
      clearTimeout(timer);
      const textOf = (chunks: Buffer[]): string => Buffer.concat(chunks).toString("utf8");
      const { stdout, stderr } = printed;
      if (failure) reject(failure);
      else resolve({ code: code ?? undefined, stdout: textOf(stdout), stderr: textOf(stderr) });
    };
    const stop = (what: string): void => {
      failure ??= new Unanswered(what);
      const killed = pid === undefined ? "gone" : killTree(pid, "SIGKILL");
      // A process that has left the group may still hold the pipes.
      for (const stream of [child.stdout, child.stderr, child.stdin]) stream.destroy();
      if (killed !== "refused") return;
      child.unref();
      settle(null);
    };
    const timer = setTimeout(
      () => stop(`it gave no answer in ${waitMs / 1_000} s, and perhaps waits for yours`),
      waitMs,
    );
    for (const name of ["stdout", "stderr"] as const) {
      child[name].on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > OUTPUT_BYTES) stop(`its program printed more than ${OUTPUT_BYTES / 1024} KiB`);
        else printed[name].push(chunk);
      });
    }
    child.once("error", () => {
      // Without a pid no "close" follows.
      if (pid !== undefined) return;
      failure = new Unanswered(UNSTARTED);
      settle(null);
    });
    child.once("close", (code) => {
      if (pid !== undefined) onExit(pid);
      settle(code);
    });
    // A program that has ended does not read: its code says why.
    child.stdin.on("error", () => undefined).end(stdin);
  });
}
