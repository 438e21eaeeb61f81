/**
 * One task: make the snapshot of the whole catalog, which main is sent. Keeping it in its file is another task:
 * nobody waits for a disk.
 */
import { threadId } from "node:worker_threads";
import { LIMITS } from "../../src/protocol/limits.ts";
import { type CatalogSettings, snapshotChecksum } from "../../src/protocol/snapshot.ts";
import { type CatalogServer, makeSnapshot } from "./catalog-snapshot.ts";
import { isMadeOf, type StoredSnapshot, sourceOf } from "./source.ts";

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
  {
    limitBytes = LIMITS.snapshotBytes,
    source,
  }: { limitBytes?: number; source?: Uint8Array | undefined } = {},
): PublishResult & Required<Pick<PublishResult, "snapshot">> {
  const made = makeSnapshot(servers, settings, { limitBytes, source });
  const { snapshot, leftOut, collisions, repairs } = made;
  const limit = `${Math.round(limitBytes / 2 ** 20)} MiB`;
  const problems =
    leftOut.length > 0
      ? [`the tool catalog exceeds ${limit}: the tools of ${leftOut.join(", ")} are left out`]
      : [];
  const checksum = snapshotChecksum(snapshot) ?? 0;
  return { checksum, snapshot, problems, notices: collisions, repairs, threadId };
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
