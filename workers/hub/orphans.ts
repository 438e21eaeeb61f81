/**
 * Servers that a hub which was killed has left: their stdin has ended, and most end with it. The others are ended by the next
 * hub, which finds them in a private file by process id and start time: a pid alone may be another process by then.
 */

import type { ProcessRow } from "../../src/shared/process/strays.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { isObject } from "../../src/shared/protocol/values.ts";
import { nodeFiles, writeFileAtomic } from "../shared/files/file-system.ts";
import { readRegularText } from "../shared/files/read-regular.ts";
import { killStrays, processRows } from "../shared/programs/processes.ts";

const FILE_BYTES = 1024 * 1024;

/** Keeps the file. Writes follow each other; only the newest list is written. */
export function createServersFile(path: string, onNote: (note: string) => void) {
  let wanted: readonly number[] | undefined;
  let writing: Promise<void> | undefined;
  let left: readonly ProcessRow[] = [];
  let written: string | undefined;
  const write = async (): Promise<void> => {
    while (wanted) {
      const pids = wanted;
      wanted = undefined;
      try {
        const text = JSON.stringify([...left, ...(await processRows(pids))]);
        await writeFileAtomic(path, text);
        written = text;
      } catch (error) {
        onNote(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  return {
    set: (pids: readonly number[]): void => {
      wanted = pids;
      writing ??= write().finally(() => {
        writing = undefined;
      });
    },
    /** Servers of an earlier hub stay in each list until they have ended, since this hub may be killed before. */
    keep: (rows: readonly ProcessRow[]): void => {
      left = rows;
    },
    /** Leaves the list of a later hub, which has begun while this one ends. */
    remove: async (): Promise<void> => {
      await writing;
      const read = await readRegularText(path, FILE_BYTES);
      if (written === undefined || (read.kind === "text" && read.text === written))
        await nodeFiles.remove(path);
    },
  };
}

const isRow = (value: unknown): value is ProcessRow =>
  isObject(value) &&
  Number.isSafeInteger(value.pid) &&
  Number(value.pid) > 1 &&
  Number.isSafeInteger(value.group) &&
  typeof value.started === "string";

/** Servers of the last hub; none if there is no such file. */
export async function leftServers(path: string): Promise<ProcessRow[]> {
  const read = await readRegularText(path, FILE_BYTES);
  if (read.kind !== "text") return [];
  try {
    const rows: unknown = JSON.parse(read.text);
    return Array.isArray(rows) ? rows.filter(isRow) : [];
  } catch {
    return [];
  }
}

/** Ends those that have not ended by themselves after a while. Never rejects. */
export async function endLeft(rows: readonly ProcessRow[]): Promise<void> {
  if (rows.length === 0) return;
  await new Promise((resolve) => setTimeout(resolve, LIMITS.closeKillMs).unref());
  await killStrays(rows);
}
