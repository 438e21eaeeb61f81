/** This machine as the checks see it. A test gives another one. */
import { constants } from "node:fs";
import { access, lstat, open, readdir, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { tempBeside } from "../../shared/files/atomic-file.ts";
import { PRIVATE_FILE } from "../../shared/files/private-modes.ts";
import { findHere } from "../../shared/programs/find-program.ts";
import { killTree, spawnServer } from "../../shared/programs/processes.ts";
import type { Environment } from "../config/entry/interpolate.ts";
import { lookUp, openSocket, shakeHands } from "../web/reach.ts";

/** One look at an address: its name, its port, its certificate. Names are looked up few at a time, as the system does. */
export const PROBE_MS = 3_000;

export interface LookedAt {
  kind: "file" | "folder" | "other";
  mode: number;
  size: number;
  canWrite: boolean;
}

export interface MachineFacts {
  env: Environment;
  home: string;
  platform: NodeJS.Platform;
  /** The session's folder. */
  cwd: string;
}

export interface Machine extends MachineFacts {
  /** The path of the program that a command starts; undefined if there is none. */
  findProgram(command: string, where: { env: Environment; cwd: string }): Promise<string | undefined>;
  kindOf(path: string): Promise<"program" | "file" | "folder" | "other" | "missing">;
  /** The first line that the program prints for `--version`; undefined if it prints none in time. */
  versionOf(program: string, env: Record<string, string>, signal: AbortSignal): Promise<string | undefined>;
  /** What is at a path, without following a link; undefined if there is nothing, or if nobody may look. */
  lookAt(path: string): Promise<LookedAt | undefined>;
  /** Names in a folder; none if it cannot be read. */
  list(folder: string): Promise<string[]>;
  /** Writes a small file into the folder and removes it. Answers the code of the system's error, if there is one. */
  tryToWrite(folder: string): Promise<string | undefined>;
  /** Undefined if the system does not tell. */
  freeBytes(folder: string): Promise<number | undefined>;
  /** Rejects with the system's error. */
  lookUp: typeof lookUp;
  openSocket(...where: Parameters<typeof openSocket>): Promise<{
    destroy(): unknown;
    secure(expected: Parameters<typeof shakeHands>[1], signal: AbortSignal): Promise<void>;
  }>;
}

async function kindOf(path: string): ReturnType<Machine["kindOf"]> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return "folder";
    if (!found.isFile()) return "other";
    return await access(path, constants.X_OK).then(
      () => "program",
      () => "file",
    );
  } catch {
    return "missing";
  }
}

async function lookAt(path: string): Promise<LookedAt | undefined> {
  try {
    const found = await lstat(path);
    const kind = found.isFile() ? "file" : found.isDirectory() ? "folder" : "other";
    const canWrite = await access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
    return { kind, mode: found.mode, size: found.size, canWrite };
  } catch {
    return undefined;
  }
}

/** As much as a small cache file: a full disk may still take a few bytes. */
const TRIED_BYTES = 64 * 1024;

async function tryToWrite(folder: string): Promise<string | undefined> {
  const temp = tempBeside(join(folder, "doctor"));
  try {
    const file = await open(temp, "wx", PRIVATE_FILE);
    try {
      await file.writeFile(Buffer.alloc(TRIED_BYTES));
      await file.sync();
    } finally {
      await file.close();
    }
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "an error without a code";
  } finally {
    await rm(temp, { force: true }).catch(() => undefined);
  }
}

const VERSION_CHARS = 40;

async function versionOf(
  program: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = spawnServer({ program, args: ["--version"], env, cwd: dirname(program) });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const stop = (): void => {
    if (child.pid !== undefined) killTree(child.pid, "SIGKILL");
    resolve();
  };
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => {
    if (printed.length < VERSION_CHARS) printed += chunk.toString("latin1").slice(0, VERSION_CHARS);
  });
  child.stderr.resume();
  child.stdin.on("error", () => undefined).end();
  child.once("error", () => resolve());
  child.once("close", () => resolve());
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
  limit.addEventListener("abort", stop, { once: true });
  if (limit.aborted) stop();
  await ended.finally(() => limit.removeEventListener("abort", stop));
  return printed.split(/\r?\n/, 1)[0] || undefined;
}

const freeBytes = (folder: string): Promise<number | undefined> =>
  statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => undefined,
  );

const list = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

export const thisMachine = (facts: MachineFacts): Machine => ({
  ...facts,
  findProgram: findHere,
  kindOf,
  versionOf,
  lookAt,
  list,
  tryToWrite,
  freeBytes,
  lookUp,
  openSocket: async (...where) => {
    const socket = await openSocket(...where);
    return {
      destroy: () => socket.destroy(),
      secure: (expected, signal) => shakeHands(socket, expected, signal),
    };
  },
});
