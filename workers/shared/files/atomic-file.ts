/**
 * Replaces a file in one step, so that a reader sees the whole old content or the whole new content, whatever happens
 * meanwhile: temp file beside the target, fsync, rename. A symlink is followed, the mode is kept.
 */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { type FileData, type FileSystem, nodeFiles } from "./file-system.ts";
import { PRIVATE_FILE } from "./private-modes.ts";

const TEMP_NAME_CHARS = 40;

export interface AtomicWriteOptions {
  files?: FileSystem;
  /**
   * Runs when the new content is on the disk, right before the rename. `target`: the file behind any link. If this
   * throws, the target stays as it is.
   */
  beforeReplace?: (target: string) => Promise<void>;
}

/** A unique path beside `target`. The length of its name does not depend on the target's name. */
export const tempBeside = (target: string): string =>
  join(
    dirname(target),
    `.${basename(target).replace(/^\./, "").slice(0, TEMP_NAME_CHARS)}.${randomBytes(6).toString("hex")}.tmp`,
  );

/** Whether `tempBeside` made the name, for a writer that is still at work or was killed. */
export const isTempName = (name: string): boolean => /^\.[^/]{1,40}\.[0-9a-f]{12}\.tmp$/.test(name);

/** Throws what the file system throws. Then the target is unchanged, and the temp file is removed if possible. */
export async function writeFileAtomic(
  path: string,
  data: FileData,
  { files = nodeFiles, beforeReplace }: AtomicWriteOptions = {},
): Promise<void> {
  const { target, file: before } = await files.find(path);
  // A link to /dev/null is a user's way to keep nothing. A rename would replace the device.
  if (before?.irregular !== undefined) throw new Error(`it is ${before.irregular}, not a regular file`);
  const temp = tempBeside(target);
  const file = await files.create(temp, before?.mode ?? PRIVATE_FILE);
  try {
    try {
      await file.write(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await beforeReplace?.(target);
    await files.rename(temp, target);
  } catch (error) {
    // The first failure is reported; sweepTemps removes a temp file that stays.
    await files.remove(temp).catch(() => undefined);
    throw error;
  }
}
