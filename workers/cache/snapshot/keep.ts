/**
 * The task that keeps the snapshot's file up to date for the next start. It writes the file only if the content or the
 * fingerprint changed, and marks the file as used at most once a day.
 */

import { dirname } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { snapshotChecksum, snapshotSource } from "../../../src/shared/snapshot/snapshot.ts";
import { writeFileAtomic } from "../../shared/files/atomic-file.ts";
import { type FileSystem, nodeFiles, reasonOf } from "../../shared/files/file-system.ts";
import { pruneSnapshots } from "../../shared/files/housekeeping.ts";
import type { KeepTask } from "../../shared/tasks.ts";
import { fingerprintMatches } from "./fingerprint.ts";

export interface KeepContext {
  files: FileSystem;
  now: () => number;
}

const realWorld: KeepContext = { files: nodeFiles, now: Date.now };

/** Whether the file has the same content with another fingerprint: the next start would make the snapshot again. */
async function isOutdated(path: string, snapshot: Uint8Array | undefined): Promise<boolean> {
  if (!snapshot) return false;
  const checksum = snapshotChecksum(snapshot);
  return checksum !== undefined && !(await fingerprintMatches({ path, checksum }, snapshotSource(snapshot)));
}

/** The task. Answers problems, one line each; the session goes on without the file. */
export async function keepSnapshot(task: KeepTask, context: KeepContext = realWorld): Promise<string[]> {
  const { path, snapshot, isNew } = task;
  const { files, now } = context;
  try {
    const { file } = isNew || (await isOutdated(path, snapshot)) ? {} : await files.find(path);
    if (!file && snapshot) await writeFileAtomic(path, snapshot, { files });
    else if (file && now() - file.modifiedMs > LIMITS.usedEveryMs) await files.touch(path);
    else return [];
    await pruneSnapshots(dirname(path), files, now());
    return [];
  } catch (error) {
    return [`${path} could not be written: ${reasonOf(error)}`];
  }
}
