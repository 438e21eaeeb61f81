/**
 * One task: make the snapshot of the whole catalog, and keep its file up to date. The file is written only
 * when its content changes; that it is still of use is written down at most once a day.
 */
import { dirname } from "node:path";
import { threadId } from "node:worker_threads";
import { LIMITS } from "../../src/protocol/limits.ts";
import { type CatalogSettings, snapshotChecksum } from "../../src/protocol/snapshot.ts";
import { writeFileAtomic } from "./atomic-file.ts";
import { type CatalogServer, makeSnapshot } from "./catalog-snapshot.ts";
import { type FileSystem, nodeFiles, reasonOf } from "./file-system.ts";
import { pruneSnapshots } from "./housekeeping.ts";

export interface PublishTask {
  snapshotPath: string;
  /** The whole catalog, servers in the order of the configuration. */
  servers: CatalogServer[];
  settings: CatalogSettings;
  /** Checksum of the snapshot that main has already. */
  knownChecksum: number | undefined;
}

export interface PublishResult {
  checksum: number;
  /** Absent where main has this content already. */
  snapshot?: Uint8Array<ArrayBuffer>;
  /** What could not be done, one line each. The session goes on without. */
  problems: string[];
  /** What the user should know of the tools' names, one line each. */
  notices?: string[];
  /** What had to be mended of tools' schemas, one line each, for the log. */
  repairs?: string[];
  /** Thread that did it, for the log. */
  threadId: number;
}

export interface PublishContext {
  files: FileSystem;
  now: () => number;
  limitBytes: number;
}

const realWorld: PublishContext = { files: nodeFiles, now: Date.now, limitBytes: LIMITS.snapshotBytes };

/** Writes the file where its content is new or it is missing, else notes its use once a day. */
async function keepFile(
  path: string,
  snapshot: Uint8Array,
  isNew: boolean,
  { files, now }: PublishContext,
): Promise<void> {
  const { file } = isNew ? {} : await files.find(path);
  if (!file) await writeFileAtomic(path, snapshot, { files });
  else if (now() - file.modifiedMs > LIMITS.usedEveryMs) await files.touch(path);
  else return;
  await pruneSnapshots(dirname(path), files, now());
}

export async function publish(
  task: PublishTask,
  context: PublishContext = realWorld,
): Promise<PublishResult> {
  const { servers, settings } = task;
  const { snapshot, leftOut, collisions, repairs } = makeSnapshot(servers, settings, context.limitBytes);
  const problems: string[] = [];
  if (leftOut.length > 0) {
    const limit = `${Math.round(context.limitBytes / 2 ** 20)} MiB`;
    problems.push(`the tool catalog exceeds ${limit}: the tools of ${leftOut.join(", ")} are left out`);
  }
  const checksum = snapshotChecksum(snapshot) ?? 0;
  const isNew = checksum !== task.knownChecksum;
  try {
    await keepFile(task.snapshotPath, snapshot, isNew, context);
  } catch (error) {
    problems.push(`${task.snapshotPath} could not be written: ${reasonOf(error)}`);
  }
  return { checksum, ...(isNew ? { snapshot } : {}), problems, notices: collisions, repairs, threadId };
}
