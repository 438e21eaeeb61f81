/**
 * One task: make the snapshot of the whole catalog, which main is sent. Keeping it in its file is another task:
 * nobody waits for a disk.
 */

import { threadId } from "node:worker_threads";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { snapshotChecksum } from "../../../src/shared/snapshot/snapshot.ts";
import type { PublishResult, PublishTask } from "../../shared/tasks.ts";
import { isMadeOf, sourceOf } from "./fingerprint.ts";
import { makeSnapshot, type SnapshotLimits } from "./make.ts";

export { keepSnapshot } from "./keep.ts";

/** `source`: what it is made of, if that can be told. */
export function publication(
  { servers, settings }: PublishTask,
  limits: Partial<SnapshotLimits> = {},
): PublishResult & Required<Pick<PublishResult, "snapshot">> {
  const made = makeSnapshot(servers, settings, { limitBytes: LIMITS.snapshotBytes, ...limits });
  const { snapshot, leftOut, collisions, repairs } = made;
  const checksum = snapshotChecksum(snapshot) ?? 0;
  return { checksum, snapshot, problems: leftOut, notices: collisions, repairs, threadId };
}

/** The task. `codeUrl`: of the file that makes snapshots. */
export async function publish(task: PublishTask, codeUrl: string = import.meta.url): Promise<PublishResult> {
  const { servers, settings, stored } = task;
  const source = await sourceOf({ servers, settings }, codeUrl);
  if (source && stored && (await isMadeOf(stored, source))) {
    return { checksum: stored.checksum, problems: [], notices: [], repairs: [], threadId };
  }
  return publication(task, { source });
}
