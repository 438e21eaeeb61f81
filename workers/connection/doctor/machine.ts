/** This machine as the checks see it. A test gives another one. */
import { constants } from "node:fs";
import { access, lstat, open, readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { tempBeside } from "../../shared/files/atomic-file.ts";
import { PRIVATE_FILE } from "../../shared/files/private-modes.ts";
import { findHere } from "../../shared/programs/find-program.ts";
import type { Environment } from "../config/entry/interpolate.ts";
import { lookUp, openSocket, shakeHands } from "../web/web.ts";

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
