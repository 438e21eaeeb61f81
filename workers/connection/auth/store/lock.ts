/**
 * The lock of one sign-in. Owns: one holder at a time in this process and, by a lock beside the file, among all
 * processes; and what happens if the disk takes no lock: the holder is then alone in this process only, and must not
 * write. Called by: record-file.ts.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { type FileSystem, reasonOf } from "../../../shared/files/file-system.ts";
import { type LockTimes, withLock } from "../../../shared/files/lock.ts";
import { codeOf } from "../../../shared/files/read-regular.ts";
import { SignInProblem } from "../model/model.ts";
import { inTurn } from "./process-state.ts";

/** A refresh holds the lock while the authorization server answers, for up to 15 s. */
const WAIT_MS = 25_000;

export const SIGN_IN_LOCK: LockTimes = {
  waitMs: WAIT_MS,
  beatMs: LIMITS.lockBeatMs,
  silentMs: LIMITS.lockSilentMs,
};

/** The folder may be removed by one who has signed out between its making and its use. */
const ATTEMPTS = 5;

export type Held =
  /** `holds` answers whether this process still has the lock. Asked right before a file is replaced. */
  | { kind: "locked"; holds: () => Promise<boolean> }
  /** `why`: the disk takes no lock. */
  | { kind: "unlocked"; why: string };

export interface LockOptions {
  files: FileSystem;
  times: LockTimes;
  signal: AbortSignal;
  /** Why the disk must not be used. */
  refused?: string | undefined;
}

/** Throws "lock-busy" after the time, "cancelled" after the signal unless `work` has begun, and what `work` throws. */
export async function fileLocked<T>(
  path: string,
  { files, times, signal, refused }: LockOptions,
  work: (held: Held) => Promise<T>,
): Promise<T> {
  if (refused !== undefined) return work({ kind: "unlocked", why: refused });
  let isIn = false;
  const rename = async (from: string, to: string): Promise<void> => {
    // A contender renames at each attempt: here it notices that it is no longer needed.
    if (!isIn && signal.aborted) throw new SignInProblem("cancelled");
    await files.rename(from, to);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await withLock(path, { files: { ...files, rename }, times }, (holds) => {
        isIn = true;
        return work({ kind: "locked", holds });
      });
    } catch (error) {
      if (isIn || error instanceof SignInProblem) throw error;
      const code = codeOf(error);
      if (code === undefined) throw new SignInProblem("lock-busy", { path }, error);
      if (code === "ENOENT" && attempt < ATTEMPTS) continue;
      return work({ kind: "unlocked", why: reasonOf(error) });
    }
  }
}

/** The same, and one at a time in this process, also if the disk takes no lock. */
export const locked = <T>(path: string, options: LockOptions, work: (held: Held) => Promise<T>): Promise<T> =>
  inTurn(path, { waitMs: options.times.waitMs, signal: options.signal }, () =>
    fileLocked(path, options, work),
  );
