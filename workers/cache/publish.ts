/**
 * One task: make the snapshot of the whole catalog, which main is sent. Keeping it in its file is another task:
 * nobody waits for a disk.
 */
import { threadId } from "node:worker_threads";
import { LIMITS } from "../../src/protocol/limits.ts";
import { type CatalogSettings, snapshotChecksum } from "../../src/protocol/snapshot.ts";
import { type CatalogServer, makeSnapshot } from "./catalog-snapshot.ts";

export interface PublishTask {
  /** The whole catalog, servers in the order of the configuration. */
  servers: CatalogServer[];
  settings: CatalogSettings;
}

export interface PublishResult {
  checksum: number;
  snapshot: Uint8Array<ArrayBuffer>;
  /** What could not be done, one line each. The session goes on without. */
  problems: string[];
  /** What the user should know of the tools' names, one line each. */
  notices: string[];
  /** What had to be mended of tools' schemas, one line each, for the log. */
  repairs: string[];
  /** Thread that did it, for the log. */
  threadId: number;
}

export function publish(task: PublishTask, limitBytes: number = LIMITS.snapshotBytes): PublishResult {
  const { snapshot, leftOut, collisions, repairs } = makeSnapshot(task.servers, task.settings, limitBytes);
  const limit = `${Math.round(limitBytes / 2 ** 20)} MiB`;
  const problems =
    leftOut.length > 0
      ? [`the tool catalog exceeds ${limit}: the tools of ${leftOut.join(", ")} are left out`]
      : [];
  const checksum = snapshotChecksum(snapshot) ?? 0;
  return { checksum, snapshot, problems, notices: collisions, repairs, threadId };
}
