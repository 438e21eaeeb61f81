/**
 * The tasks around a snapshot. `publish` makes the snapshot of the whole catalog, which is then sent to main;
 * `publishStored` finds out whether it need not be made. `keepSnapshot` stores it in its file, as a task of its own, so
 * that nobody waits for a disk. Owns what goes into a snapshot, its fingerprint and its limits. Must not: know the
 * connection worker or its threads. To add a field:
 * shared/snapshot/contract.ts, its column in shared/snapshot/columns.ts, its value in prepare-tools.ts, and a new
 * `SNAPSHOT_VERSION`.
 */

import { createHash, hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { threadId } from "node:worker_threads";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import {
  HEADER_BYTES,
  SOURCE_BYTES,
  snapshotChecksum,
  snapshotSource,
} from "../../../src/shared/snapshot/snapshot.ts";
import {
  type FileSystem,
  KEPT_BY_SYSTEM,
  nodeFiles,
  pruneSnapshots,
  reasonOf,
  writeFileAtomic,
} from "../../shared/files/file-system.ts";
import { codeOf, readStart } from "../../shared/files/read-regular.ts";
import { withoutTools } from "../../shared/listed.ts";
import type { KeepTask, PublishResult, PublishTask, StoredSnapshot, StoredTask } from "../../shared/tasks.ts";
import { makeSnapshot, type SnapshotLimits } from "./make.ts";

/** Makes the snapshot, whether or not a stored one still holds. */
export function buildSnapshot(
  { servers, settings }: PublishTask,
  limits: Partial<SnapshotLimits> = {},
): PublishResult & Required<Pick<PublishResult, "snapshot">> {
  const listed = servers.reduce((sum, { tools }) => sum + tools.length, 0);
  const kept = Math.min(listed, LIMITS.snapshotTools);
  const { leftOut, ...made } = makeSnapshot(servers, settings, {
    limitBytes: Math.max(LIMITS.snapshotBytes, kept * LIMITS.snapshotBytesATool),
    textBytes: Math.max(LIMITS.snapshotTextBytes, kept * LIMITS.snapshotTextBytesATool),
    ...limits,
  });
  const checksum = snapshotChecksum(made.snapshot) ?? 0;
  return { checksum, ...made, problems: leftOut, threadId };
}

/**
 * The task `publish` if the stored snapshot still holds; undefined if the snapshot has to be made. `codeUrl`: URL of the
 * file that makes snapshots.
 */
export async function publishStored(
  { servers, settings, stored }: StoredTask,
  codeUrl: string = import.meta.url,
  source = fingerprintOf({ servers: servers.map(withoutTools), settings }, codeUrl),
): Promise<PublishResult | undefined> {
  const bytes = await source;
  if (!bytes || !stored || !(await fingerprintMatches(stored, bytes))) return undefined;
  return { checksum: stored.checksum, problems: [], notices: [], repairs: [], threadId };
}

/** The task: no snapshot in the answer if the stored one still holds. */
export async function publish(task: PublishTask, codeUrl: string = import.meta.url): Promise<PublishResult> {
  const { servers, settings } = task;
  const source = fingerprintOf({ servers: servers.map(withoutTools), settings }, codeUrl);
  return (await publishStored(task, codeUrl, source)) ?? buildSnapshot(task, { source: await source });
}

/**
 * Hash of the file that the code is bundled into. Undefined for raw TypeScript, which is many files under work, and if
 * the file is gone because the package is being updated.
 */
async function codeHash(url: string): Promise<string | undefined> {
  if (url.endsWith(".ts")) return undefined;
  const code = await readFile(fileURLToPath(url)).catch(() => undefined);
  return code && hash("sha256", code);
}

/** Read once, when this code is loaded: an update may replace the file while the code runs. */
const ownCode = codeHash(import.meta.url);

/**
 * `SOURCE_BYTES` that stand for `content` and the code. Undefined if the code is unknown. `content`: JSON. `url`: URL of
 * the file that makes snapshots.
 */
async function fingerprintOf(content: unknown, url: string): Promise<Uint8Array | undefined> {
  const code = await (url === import.meta.url ? ownCode : codeHash(url));
  if (code === undefined) return undefined;
  const digest = createHash("sha256").update(code).update(JSON.stringify(content)).digest();
  return new Uint8Array(digest.subarray(0, SOURCE_BYTES));
}

/** Whether the file holds the snapshot with that checksum, made from `source`. False if the file cannot be read. */
export async function fingerprintMatches(
  { path, checksum }: StoredSnapshot,
  source: Uint8Array,
): Promise<boolean> {
  const read = await readStart(path, HEADER_BYTES);
  if (read.kind !== "bytes" || snapshotChecksum(read.bytes) !== checksum) return false;
  return Buffer.compare(snapshotSource(read.bytes), source) === 0;
}

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

/** A mount of CIFS or NFS may take no times: the file is good all the same, and is made again once it counts as unused. */
const isTouched = (path: string, files: FileSystem): Promise<boolean> =>
  files.touch(path).then(
    () => true,
    (error: unknown) => {
      if (KEPT_BY_SYSTEM.includes(codeOf(error))) return false;
      throw error;
    },
  );

/** The task. Answers problems, one line each; the session goes on without the file. */
export async function keepSnapshot(task: KeepTask, context: KeepContext = realWorld): Promise<string[]> {
  const { path, snapshot, isNew } = task;
  const { files, now } = context;
  try {
    const { file } = isNew || (await isOutdated(path, snapshot)) ? {} : await files.find(path);
    if (!file && snapshot) await writeFileAtomic(path, snapshot, { files });
    else if (!file || now() - file.modifiedMs <= LIMITS.usedEveryMs || !(await isTouched(path, files)))
      return [];
    await pruneSnapshots(dirname(path), files, now());
    return [];
  } catch (error) {
    return [`${path} could not be written: ${reasonOf(error)}`];
  }
}
