/**
 * Changes a configuration file on the user's word. Owns the rule that nothing is lost: one process of ours at a time,
 * and what another program saved between our read and our write is read anew. A link stays a link, the mode is kept.
 */
import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { writeFileAtomic } from "../../../shared/files/atomic-file.ts";
import { nodeFiles, reasonOf } from "../../../shared/files/file-system.ts";
import { withLock } from "../../../shared/files/lock.ts";
import { readText } from "../files/files.ts";

const OWNER_MAY_WRITE = 0o200;
/** An editor that saves at the same moment is met once or twice. */
const ATTEMPTS = 5;
/** Until an editor that writes in place has written all of it. */
const RETRY_MS = 50;

/** Somebody else changed the file between our read and our write. */
class Overtaken extends Error {}

const unwritable = (file: string, reason: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} could not be written: ${reason}.`, {
    remedy: "Make it writable, or edit it yourself.",
    data: { file },
  });

/** Undefined where there is no file. Throws `bad_config` where it cannot be read. */
export async function textOf(file: string): Promise<string | undefined> {
  const read = await readText(file);
  if (read.kind !== "unreadable") return read.kind === "text" ? read.text : undefined;
  const { reason, remedy } = read;
  throw new ThreadsError("bad_config", `${file} cannot be read: ${reason}.`, { remedy, data: { file } });
}

/** The text of a file -> what it shall hold. */
export type Change = (text: string | undefined) => string;

async function changeOnce(file: string, change: Change, holds: () => Promise<boolean>): Promise<void> {
  const before = await textOf(file);
  const after = change(before);
  if (after === before) return;
  await writeFileAtomic(file, after, {
    beforeReplace: async () => {
      // The text is compared last: an editor knows no lock.
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
 * Puts what `change` makes of its text into the file; it may be asked again, where another program was faster. Throws
 * what `change` throws, and `bad_config` where the file cannot be read or written.
 */
export async function changeConfigFile(file: string, change: Change): Promise<void> {
  const mode = await stat(file).then(
    (found) => found.mode,
    () => OWNER_MAY_WRITE,
  );
  // It is replaced by rename, which would not ask.
  if ((mode & OWNER_MAY_WRITE) === 0) throw unwritable(file, "it is read-only");
  // Nothing is made where there is nothing to change.
  const before = await textOf(file);
  if (change(before) === before) return;
  try {
    const { target } = await nodeFiles.find(file);
    await withLock(target, { files: nodeFiles }, (holds) => changeUnderLock(file, change, holds));
  } catch (error) {
    throw error instanceof ThreadsError ? error : unwritable(file, reasonOf(error));
  }
}
