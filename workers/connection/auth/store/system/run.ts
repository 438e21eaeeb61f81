/**
 * Runs the program of the system's credential store once. Owns: which file that is, its time, its bytes and its end. The
 * program is found without the folder in which Pi runs and does not run there, and what it prints is in no error.
 */
import { homedir } from "node:os";
import { parse } from "node:path";
import { collect } from "../../../../shared/programs/collect.ts";
import { childEnvironment, type Env, endsOf, findHere } from "../../../../shared/programs/find-program.ts";
import { type ServerProcess, spawnServer } from "../../../../shared/programs/processes.ts";
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
  const folders = { cwd: process.cwd(), home: homedir() };
  const independentOf = { ...folders, ends: await endsOf(base, folders) };
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
  const collected = await collect(child, { stdin, waitMs, bytes: OUTPUT_BYTES, onSpawn, onExit });
  if (collected.how === "ended") return { ...collected, code: collected.code ?? undefined };
  if (collected.how === "late")
    throw new Unanswered(`it gave no answer in ${waitMs / 1_000} s, and perhaps waits for yours`);
  const isLong = collected.how === "long";
  throw new Unanswered(isLong ? `its program printed more than ${OUTPUT_BYTES / 1024} KiB` : UNSTARTED);
}
