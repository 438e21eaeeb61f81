/** This machine as the checks see it. A test gives another one. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { findHere } from "../../shared/programs/find-program.ts";
import type { Environment } from "../config/entry/interpolate.ts";
import { lookUp, openSocket, shakeHands } from "../web/web.ts";

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

export const thisMachine = (facts: MachineFacts): Machine => ({
  ...facts,
  findProgram: findHere,
  kindOf,
  lookUp,
  openSocket: async (...where) => {
    const socket = await openSocket(...where);
    return {
      destroy: () => socket.destroy(),
      secure: (expected, signal) => shakeHands(socket, expected, signal),
    };
  },
});
