/**
 * Owns: how a file with a person's answers is read and changed. It has mode 0600, and one process at a time writes the whole file.
 * A corrupt file counts as empty and is kept aside, never lost.
 */
import type * as z from "zod";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { keepAside, nodeFiles, sweepTemps, writeFileAtomic } from "./file-system.ts";
import { withLock } from "./lock.ts";
import { readRegularText, whyUnread } from "./read-regular.ts";

/** More bytes than all answers can take: a larger file was not written here. */
const FILE_BYTES = 8 * 1024 * 1024;

type Found<T> =
  /** `value`: undefined if there is no file. */
  | { state: "usable"; value: T | undefined }
  /** `what`: why nothing in the file counts. */
  | { state: "corrupt"; what: string };

/** Makes the schema of the file's JSON, only if there is a file. */
type Schema<T> = () => z.ZodType<T>;

/** Throws what the file system throws. */
export async function readAnswers<T>(file: string, schema: Schema<T>): Promise<Found<T>> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind === "missing") return { state: "usable", value: undefined };
  if (read.kind === "too-large") return { state: "corrupt", what: whyUnread(read) };
  if (read.kind === "irregular") throw Object.assign(new Error(whyUnread(read)), { code: "EINVAL" });
  if (read.kind === "unreadable") throw read.error;
  try {
    const { success, data } = schema().safeParse(JSON.parse(read.text));
    return success
      ? { state: "usable", value: data }
      : { state: "corrupt", what: "it is not a list of answers" };
  } catch (error) {
    return { state: "corrupt", what: `it is not complete JSON (${messageOf(error)})` };
  }
}

/**
 * Writes what `change` makes of the file, and answers it. Throws what the file system throws, or if the lock was not free in
 * time.
 */
export async function changeAnswers<T>(
  file: string,
  schema: Schema<T>,
  change: (found: Found<T>) => T,
): Promise<T> {
  const { target } = await nodeFiles.find(file);
  const changed = await withLock(target, { files: nodeFiles }, async (holds) => {
    const found = await readAnswers(file, schema);
    const next = change(found);
    await writeFileAtomic(file, `${JSON.stringify(next, null, 2)}\n`, {
      beforeReplace: async (replaced) => {
        // A process that was suspended for long has lost the lock, and the text that it read may be old.
        if (!(await holds())) throw new Error("another process has it now");
        if (found.state === "corrupt") await keepAside(replaced, nodeFiles, Date.now());
      },
    });
    return next;
  });
  await sweepTemps(target, nodeFiles, Date.now());
  return changed;
}
