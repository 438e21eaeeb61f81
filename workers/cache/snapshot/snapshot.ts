/**
 * One task: make the snapshot of the whole catalog, which main is sent. Keeping it in its file is another task:
 * nobody waits for a disk.
 */
import { threadId } from "node:worker_threads";
import type { CatalogSettings } from "../../../src/shared/protocol/catalog.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { snapshotChecksum } from "../../../src/shared/snapshot/snapshot.ts";
import { isMadeOf, type StoredSnapshot, sourceOf } from "./fingerprint.ts";
import { type CatalogServer, makeSnapshot, type SnapshotLimits } from "./make.ts";

export interface PublishTask {
  /** The whole catalog, servers in the order of the configuration. */
  servers: CatalogServer[];
  settings: CatalogSettings;
  /** What main has already. */
  stored?: StoredSnapshot;
}

export interface PublishResult {
  checksum: number;
  /** Absent where what is stored was made of the same: then nothing is made, and nothing told. */
  snapshot?: Uint8Array<ArrayBuffer>;
  /** What could not be done, one line each. The session goes on without. */
  problems: string[];
  /** What the user should know of the tools' names, one line each. */
  notices: string[];
  /** What had to be mended of tools' schemas, one line each, for the log. */
  repairs: string[];
  /** Thread that did it, for the log. */
  threadId: number;
}

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
