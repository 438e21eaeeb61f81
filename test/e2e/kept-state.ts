/**
 * Owns: the state that one session of a shared Pi left in its home, from which other sessions of this Pi begin.
 * Must not: decide what the state is.
 */
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Change, type InTurn, type TakeTurn, type Turn, writeFiles } from "./in-turn.ts";

/** What `make` learned, and the text of the session that later sessions go on with. */
export interface Made {
  session?: string;
}

interface Begun<T> {
  pi: InTurn;
  made: T;
}

/**
 * Returns a function that begins a session in the state after `make`, changed as asked. The first call makes the state,
 * and so does the first call after a failure, which has another Pi in another home. The change may depend on what `make`
 * learned. With `resumes` the session of `make` goes on.
 */
export function keptState<T extends Made>(turn: TakeTurn, first: Turn, make: (pi: InTurn) => Promise<T>) {
  let kept: { dir: string; folder: string; made: T } | undefined;
  let sessions = 0;
  return async (change: Change | ((made: T) => Change) = {}, resumes = false): Promise<Begun<T>> => {
    const changeAfter = (made: T): Change => (typeof change === "function" ? change(made) : change);
    const sessionFile = async (made: T, tmpDir: string): Promise<string | undefined> => {
      if (!resumes) return undefined;
      const path = join(tmpDir, `session-${++sessions}.jsonl`);
      await writeFile(path, made.session ?? "");
      return path;
    };
    if (kept) {
      const { dir, folder, made } = kept;
      const resumed = await sessionFile(made, join(dir, "tmp"));
      const { files = {}, removed = [] } = changeAfter(made);
      const fill = async (next: string): Promise<void> => {
        await copy(folder, next);
        for (const path of removed) await rm(join(next, path), { recursive: true });
        await writeFiles(next, files);
      };
      const pi = await turn(({ dir: now }) =>
        now === dir ? { ...first, fill, ...(resumed === undefined ? {} : { resumed }) } : first,
      );
      if (pi.at.dir === dir) return { pi, made };
      return { pi, made: await makeIn(pi) };
    }
    const pi = await turn(first);
    return { pi, made: await makeIn(pi) };

    async function makeIn(pi: InTurn): Promise<T> {
      const made = await make(pi);
      // The session writes what it has learned at its end.
      await pi.again();
      const { dir, tmpDir } = pi.at;
      const folder = join(tmpDir, `kept-${++sessions}`);
      await copy(dir, folder);
      kept = { dir, folder, made };
      await pi.again(changeAfter(made), await sessionFile(made, tmpDir));
      return made;
    }
  };
}

/**
 * File times are kept because a snapshot must stay younger than its source files. Pi keeps the files of its sessions, and
 * each home its own link to the compiled code that all homes share (`support/pi-home.ts`).
 */
async function copy(from: string, to: string): Promise<void> {
  for (const folder of [".pi", "project"]) {
    const filter = (path: string): boolean =>
      !path.endsWith(join("agent", "sessions")) && !path.endsWith(join("agent", "mcp-code"));
    const how = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter };
    await cp(join(from, folder), join(to, folder), how);
  }
}
