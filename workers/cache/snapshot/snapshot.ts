/**
 * The tasks around a snapshot. `publish` makes the snapshot of the whole catalog, which is then sent to main;
 * `publishStored` finds out whether it need not be made. `keepSnapshot` stores it in its file, as a task of its own, so
 * that nobody waits for a disk. Owns what goes into a snapshot, its fingerprint and its limits. Must not: know the
 * connection worker or its threads. Called by the cache worker (workers/cache.ts). To add a field:
 * shared/snapshot/contract.ts, its column in shared/snapshot/columns.ts, its value in prepare-tools.ts, and a new
 * `SNAPSHOT_VERSION`.
 */

import { threadId } from "node:worker_threads";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { snapshotChecksum } from "../../../src/shared/snapshot/snapshot.ts";
import type { PublishResult, PublishTask } from "../../shared/tasks.ts";
import { fingerprintMatches, fingerprintOf } from "./fingerprint.ts";
import { makeSnapshot, type SnapshotLimits } from "./make.ts";

export { keepSnapshot } from "./keep.ts";

/** Makes the snapshot, whether or not a stored one still holds. */
export function buildSnapshot(
  { servers, settings }: PublishTask,
  limits: Partial<SnapshotLimits> = {},
): PublishResult & Required<Pick<PublishResult, "snapshot">> {
  const listed = servers.reduce((sum, { tools }) => sum + tools.length, 0);
  const kept = Math.min(listed, LIMITS.snapshotTools);
  const made = makeSnapshot(servers, settings, {
    limitBytes: Math.max(LIMITS.snapshotBytes, kept * LIMITS.snapshotBytesATool),
    textBytes: Math.max(LIMITS.snapshotTextBytes, kept * LIMITS.snapshotTextBytesATool),
    ...limits,
  });
  const { snapshot, leftOut, collisions, repairs } = made;
  const checksum = snapshotChecksum(snapshot) ?? 0;
  return { checksum, snapshot, problems: leftOut, notices: collisions, repairs, threadId };
}

const sourceOf = ({ servers, settings }: PublishTask, codeUrl: string): Promise<Uint8Array | undefined> =>
  fingerprintOf({ servers, settings }, codeUrl);

/** The answer if the stored snapshot has this source. */
async function storedResult(
  { stored }: PublishTask,
  source: Uint8Array | undefined,
): Promise<PublishResult | undefined> {
  if (!source || !stored || !(await fingerprintMatches(stored, source))) return undefined;
  return { checksum: stored.checksum, problems: [], notices: [], repairs: [], threadId };
}

/** The task `publish` if the stored snapshot still holds; undefined if the snapshot has to be made. */
export async function publishStored(
  task: PublishTask,
  codeUrl: string = import.meta.url,
): Promise<PublishResult | undefined> {
  return await storedResult(task, await sourceOf(task, codeUrl));
}

/** The task: no snapshot in the answer if the stored one still holds. `codeUrl`: URL of the file that makes snapshots. */
export async function publish(task: PublishTask, codeUrl: string = import.meta.url): Promise<PublishResult> {
  const source = await sourceOf(task, codeUrl);
  return (await storedResult(task, source)) ?? buildSnapshot(task, { source });
}
