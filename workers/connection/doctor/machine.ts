/** This machine as the checks see it. A test gives another one. */
import { constants } from "node:fs";
import { access, lstat, readdir, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { roomOf, tempBeside, writeFileAtomic } from "../../shared/files/file-system.ts";
import { findHere } from "../../shared/programs/find-program.ts";
import { type Launch, printedBy } from "../../shared/programs/processes.ts";
import type { Environment } from "../config/entry/interpolate.ts";
import { hubReport } from "../hub/ask.ts";
import { lookUp, openSocket, shakeHands } from "../web/reach.ts";
import { commandLines } from "./command-lines.ts";

/** One look at an address: its name, its port, its certificate. Names are looked up few at a time, as the system does. */
export const PROBE_MS = 3_000;

/** `cwd`: the session's folder. */
interface MachineFacts {
  env: Environment;
  home: string;
  platform: NodeJS.Platform;
  cwd: string;
}

export type Machine = ReturnType<typeof thisMachine>;

type Kind = "program" | "file" | "folder" | "other" | "missing";

const may = (path: string, mode: number): Promise<boolean> =>
  access(path, mode).then(
    () => true,
    () => false,
  );

async function kindOf(path: string): Promise<Kind> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return "folder";
    if (!found.isFile()) return "other";
    return (await may(path, constants.X_OK)) ? "program" : "file";
  } catch {
    return "missing";
  }
}

export type LookedAt = NonNullable<Awaited<ReturnType<typeof lookAt>>>;

/** What is at a path, without following a link; undefined if there is nothing, or if nobody may look. */
async function lookAt(path: string) {
  try {
    const found = await lstat(path);
    const kind: Kind = found.isFile() ? "file" : found.isDirectory() ? "folder" : "other";
    return { kind, mode: found.mode, size: found.size, canWrite: await may(path, constants.W_OK) };
  } catch {
    return undefined;
  }
}

/** As much as a small cache file: a full disk may still take a few bytes. */
const TRIED_BYTES = 64 * 1024;

/** Writes a file into the folder, as all are written, and removes it. Answers the code of the system's error, if there is one. */
async function tryToWrite(folder: string): Promise<string | undefined> {
  const tried = tempBeside(join(folder, "doctor"));
  try {
    // A write would make it.
    await stat(folder);
    await writeFileAtomic(tried, Buffer.alloc(TRIED_BYTES));
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "an error without a code";
  } finally {
    await rm(tried, { force: true }).catch(() => undefined);
  }
}

/** What the program prints within `PROBE_MS`: so many bytes of its start. Then it is ended. */
const printed = (launch: Launch, bytes: number, signal: AbortSignal) =>
  printedBy(launch, bytes, AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]));

const VERSION_CHARS = 40;

/** The first line that the program prints for `--version`; undefined if it prints none in time. */
async function versionOf(
  program: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const launch = { program, args: ["--version"], env, cwd: dirname(program) };
  const { stdout } = await printed(launch, VERSION_CHARS, signal);
  return stdout.split(/\r?\n/, 1)[0] || undefined;
}

/** Undefined if the system does not tell. */
const freeBytes = (folder: string): Promise<number | undefined> =>
  statfs(folder).then(roomOf, () => undefined);

/** Names in a folder; none if it cannot be read. */
const list = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

export const thisMachine = (facts: MachineFacts) => ({
  ...facts,
  findProgram: findHere,
  kindOf,
  versionOf,
  printedBy: printed,
  lookAt,
  list,
  tryToWrite,
  freeBytes,
  commandLines,
  sharedServers: hubReport,
  signIns: async (agentDir: string) => (await import("../auth/store/all.ts")).listSignIns(agentDir),
  /** Rejects with `SignInProblem` "system-store". */
  probeTokenStore: async () => {
    const { openSystemStore } = await import("../auth/store/system/system.ts");
    const system = { ...facts, onSpawn: () => undefined, onExit: () => undefined, waitMs: PROBE_MS };
    await openSystemStore("", system).probe();
  },
  lookUp,
  openSocket: async (...where: Parameters<typeof openSocket>) => {
    const socket = await openSocket(...where);
    return {
      destroy: (): unknown => socket.destroy(),
      secure: (expected: Parameters<typeof shakeHands>[1], signal: AbortSignal) =>
        shakeHands(socket, expected, signal),
    };
  },
});
