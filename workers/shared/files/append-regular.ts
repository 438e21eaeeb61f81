/**
 * Appends to a file at a path that others may have prepared. Owns the rule that only a regular file is written to,
 * without waiting: opening a pipe that nobody reads would block the thread, and a device would act on what it gets.
 * Called by: log.ts.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { codeOf } from "./file-system.ts";
import { PRIVATE_FILE } from "./private-modes.ts";
import { irregularKind, whyUnread } from "./read-regular.ts";

/** Windows has neither of the last two flags. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NONBLOCK ?? 0) |
  (constants.O_NOCTTY ?? 0);

/** Size of the regular file in bytes; 0 if there is none. Throws if the path leads to anything else. */
export async function regularSize(path: string): Promise<number> {
  try {
    const found = await stat(path);
    refuseIrregular(path, found);
    return found.size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return 0;
    throw error;
  }
}

/** Appends the text; a new file is private. Throws if the path leads to anything but a regular file. */
export async function appendRegular(path: string, text: string): Promise<void> {
  // The opening itself can do something to a device, so the path is looked at before.
  await regularSize(path);
  const file = await open(path, FLAGS, PRIVATE_FILE);
  try {
    // Another file may have taken the place meanwhile.
    refuseIrregular(path, await file.stat());
    await file.appendFile(text);
  } finally {
    await file.close();
  }
}

function refuseIrregular(path: string, stats: Parameters<typeof irregularKind>[0]): void {
  const what = irregularKind(stats);
  if (what !== undefined) throw new Error(`${path}: ${whyUnread({ kind: "irregular", what })}`);
}
