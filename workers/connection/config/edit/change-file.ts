/**
 * Changes a configuration file on the user's word, and owns the rule that nothing is lost: one process of ours writes
 * at a time, and a text that another program saves between our read and our write is read again. A link stays a link,
 * and the mode is kept.
 */
import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { nodeFiles, reasonOf, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { withLock } from "../../../shared/files/lock.ts";
import { readText } from "../files/files.ts";

const OWNER_MAY_WRITE = 0o200;
/** How often a change is tried: an editor may save at the same moment once or twice. */
const ATTEMPTS = 5;
/** Milliseconds until an editor that writes in place has written the whole text. */
const RETRY_MS = 50;

/** Another program changed the file between our read and our write. */
class Overtaken extends Error {}

const unwritable = (file: string, reason: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} could not be written: ${reason}.`, {
    remedy: "Make it writable, or edit it yourself.",
    data: { file },
  });

/** The text of the file; undefined if there is no file. Throws `bad_config` if the file cannot be read. */
export async function textOf(file: string): Promise<string | undefined> {
  const read = await readText(file);
  if (read.kind !== "unreadable") return read.kind === "text" ? read.text : undefined;
  const { reason, remedy } = read;
  throw new ThreadsError("bad_config", `${file} cannot be read: ${reason}.`, { remedy, data: { file } });
}

/** Makes the new text of a file from the old one. */
export type Change = (text: string | undefined) => string;

async function changeOnce(file: string, change: Change, holds: () => Promise<boolean>): Promise<void> {
  const before = await textOf(file);
  const after = change(before);
  if (after === before) return;
  await writeFileAtomic(file, after, {
    beforeReplace: async () => {
      // The text is compared last, because an editor does not know the lock.
      if (!(await holds()) || (await textOf(file)) !== before) throw new Overtaken();
    },
  });
}

async function changeUnderLock(file: string, change: Change, holds: () => Promise<boolean>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await changeOnce(file, change, holds);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (attempt === ATTEMPTS || !(await holds())) throw new Error("other programs keep changing it");
      await sleep(RETRY_MS);
    }
  }
}

/**
 * Replaces the text of the file with the text that `change` makes of it. `change` is called again if another program
 * was faster. Throws what `change` throws, and `bad_config` if the file cannot be read or written.
 */
export async function changeConfigFile(file: string, change: Change): Promise<void> {
  const mode = await stat(file).then(
    (found) => found.mode,
    () => OWNER_MAY_WRITE,
  );
  // The file is replaced by rename, which would ignore that it is read-only.
  if ((mode & OWNER_MAY_WRITE) === 0) throw unwritable(file, "it is read-only");
  // Without a change there is no need for a lock or a new file.
  const before = await textOf(file);
  if (change(before) === before) return;
  try {
    const { target } = await nodeFiles.find(file);
    await withLock(target, { files: nodeFiles }, (holds) => changeUnderLock(file, change, holds));
  } catch (error) {
    throw error instanceof ThreadsError ? error : unwritable(file, reasonOf(error));
  }
}
