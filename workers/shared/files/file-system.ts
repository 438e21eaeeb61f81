/**
 * Writing and clearing up: the few operations of the file system that a test can make fail, each of which throws what Node
 * throws unless its comment says otherwise; the replacement of a file in one step; the removal of files that nobody
 * needs any more, snapshots and compiled code among them; and which paths do not answer. That removal never fails a task: a file
 * that cannot be removed now is removed later.
 */

import { randomBytes } from "node:crypto";
import {
  lstat,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rmdir,
  stat,
  unlink,
  utimes,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { settledWithin } from "../pace/abort.ts";
import { give, makeFolder, type Owner } from "./owner.ts";
import { codeOf, irregularKind, PRIVATE_FILE, readBytesOrThrow } from "./read-regular.ts";

/** The parts of a list are written one after the other. */
type FileData = Uint8Array | string | readonly Uint8Array[];

export type FileSystem = typeof nodeFiles;

/** The message of an error without the paths that Node appends, so that equal failures have equal messages. */
export const reasonOf = (error: unknown): string => messageOf(error).replace(/ '[^']*'(?: -> '[^']*')?$/, "");

/** The answer of `task`, or undefined if the path does not exist. */
async function unlessMissing<T>(task: Promise<T>): Promise<T | undefined> {
  try {
    return await task;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

export interface Found {
  /** The path behind all links. The path need not exist. */
  target: string;
  /**
   * Undefined if the path does not exist. `mode`: the permission bits only. `irregular`: words for anything that is not
   * a regular file. `stamp`: differs as soon as the file is replaced or written.
   */
  file?: {
    mode: number;
    bytes: number;
    modifiedMs: number;
    stamp: string;
    owner?: Owner;
    irregular?: string;
  };
}

/** Linux follows as many links. */
const MOST_LINKS = 40;

/** Where the system would make the file: a link names its target as seen from the real folder in which the link lies. */
async function missingTarget(path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < MOST_LINKS; links++) {
    const link = await readlink(at).catch(() => undefined);
    if (link === undefined) return at;
    const folder = await realpath(dirname(at)).catch(() => dirname(at));
    at = resolve(folder, link);
  }
  throw Object.assign(new Error(`ELOOP: too many symbolic links, '${path}'`), { code: "ELOOP" });
}

async function find(path: string): Promise<Found> {
  const real = await unlessMissing(realpath(path));
  if (real === undefined) return { target: await missingTarget(path) };
  const found = await unlessMissing(stat(real));
  if (!found) return { target: real };
  const irregular = irregularKind(found);
  const { size: bytes, mtimeMs: modifiedMs } = found;
  const stamp = [found.dev, found.ino, bytes, modifiedMs, found.ctimeMs].join(" ");
  const owner = { uid: found.uid, gid: found.gid };
  const file = { mode: found.mode & 0o777, bytes, modifiedMs, stamp, owner };
  return { target: real, file: irregular === undefined ? file : { ...file, irregular } };
}

/** What chmod and utimes answer where the system alone decides on modes and times: CIFS, `/mnt/c` of WSL, a folder of Windows in a container. */
export const KEPT_BY_SYSTEM: readonly (string | undefined)[] = ["EPERM", "ENOTSUP", "ENOSYS"];

async function create(path: string, mode: number, owner?: Owner) {
  await makeFolder(dirname(path));
  const file = await open(path, "wx", mode);
  await give(file, dirname(path), owner);
  return {
    write: async (data: FileData): Promise<void> => {
      // `open` applies the umask to the mode. It only takes bits away, so that without chmod nobody else gets in by the mode.
      await file.chmod(mode).catch((error: unknown) => {
        if (!KEPT_BY_SYSTEM.includes(codeOf(error))) throw error;
      });
      await file.writeFile(data);
    },
    /** Settles when the content is on the disk. */
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

async function remove(path: string): Promise<void> {
  // Looked up first, since not every system refuses `unlink` of a folder.
  const found = await unlessMissing(lstat(path));
  if (found) await unlessMissing(found.isDirectory() ? rmdir(path) : unlink(path));
}

export const nodeFiles = {
  find,
  /** The bytes of a regular file of at most so many. Throws for anything else, with what it is. */
  readBytes: readBytesOrThrow,
  /** Makes a file, to be written, and the folders above it. Throws `EEXIST` if the path exists. `owner`: whose it is if root makes it. */
  create,
  rename: (from: string, to: string): Promise<void> => rename(from, to),
  /** Removes a file or an empty folder. Does nothing if the path does not exist. */
  remove,
  /** Names in a folder; none if the folder does not exist. */
  list: async (folder: string): Promise<string[]> => (await unlessMissing(readdir(folder))) ?? [],
  /** Sets the time of change to now. */
  touch: async (path: string): Promise<void> => {
    const now = new Date();
    await utimes(path, now, now);
  },
};

/** Bytes that are free, of what `statfs` answers. A disk without blocks, such as ramfs, does not tell its room, and has some. */
export const roomOf = ({
  bavail,
  bsize,
  blocks,
}: {
  bavail: number;
  bsize: number;
  blocks: number;
}): number => (blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize);

/** False for anything else, for a link that leads nowhere, and for what cannot be looked at. Never rejects. */
export const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

const TEMP_NAME_CHARS = 40;

/** A unique path beside `target`. The length of its name does not depend on the target's name. */
export const tempBeside = (target: string): string =>
  join(
    dirname(target),
    `.${basename(target).replace(/^\./, "").slice(0, TEMP_NAME_CHARS)}.${randomBytes(6).toString("hex")}.tmp`,
  );

/** Whether `tempBeside` made the name, for a writer that is still at work or was killed. */
const isTempName = (name: string): boolean => /^\.[^/]{1,40}\.[0-9a-f]{12}\.tmp$/.test(name);

/** What Windows answers while another process has the file open, such as a virus scanner that looks at each new file. */
const IN_USE: readonly (string | undefined)[] = ["EPERM", "EACCES", "EBUSY"];
/** How long a file may be in use: shorter than the wait for a lock, since the writer may hold one. */
const IN_USE_MS = 2_000;
/** The first pause; each further one is twice as long. */
const FIRST_PAUSE_MS = 10;

/** Repeats on Windows what the use of a file by others has refused. Elsewhere the same codes are no matter of time. */
async function onceFree(task: () => Promise<void>, platform: NodeJS.Platform): Promise<void> {
  let waitedMs = 0;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await task();
    } catch (error) {
      if (platform !== "win32" || !IN_USE.includes(codeOf(error)) || waitedMs >= IN_USE_MS) throw error;
    }
    const nextMs = Math.min(pauseMs, IN_USE_MS - waitedMs);
    await sleep(nextMs);
    waitedMs += nextMs;
  }
}

/**
 * Replaces a file in one step, so that a reader sees the whole old content or the whole new content, whatever happens
 * meanwhile: temp file beside the target, fsync, rename. A symlink is followed, mode and owner are kept. Throws what the file
 * system throws. Then the target is unchanged, and the temp file is removed if possible. `beforeReplace`: runs when the
 * new content is on the disk, right before each attempt to rename the file behind any link; if it throws, the target stays.
 */
export async function writeFileAtomic(
  path: string,
  data: FileData,
  {
    files = nodeFiles,
    beforeReplace,
    platform = process.platform,
  }: {
    files?: FileSystem;
    beforeReplace?: (target: string) => Promise<void>;
    platform?: NodeJS.Platform;
  } = {},
): Promise<void> {
  const { target, file: before } = await files.find(path);
  // A link to /dev/null is a user's way to keep nothing. A rename would replace the device.
  if (before?.irregular !== undefined) throw new Error(`it is ${before.irregular}, not a regular file`);
  const temp = tempBeside(target);
  const file = await files.create(temp, before?.mode ?? PRIVATE_FILE, before?.owner);
  try {
    try {
      await file.write(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await onceFree(async () => {
      await beforeReplace?.(target);
      await files.rename(temp, target);
    }, platform);
  } catch (error) {
    // The first failure is reported; sweepTemps removes a temp file that stays.
    await onceFree(() => files.remove(temp), platform).catch(() => undefined);
    throw error;
  }
}

/** What is in a folder, by name. */
interface Kept {
  name: string;
  bytes: number;
  modifiedMs: number;
}

/**
 * Removes files, and folders with their files, whose last change is long ago, as far as possible; of a link itself, since it may
 * lead to the folder of another program. Resolves with those that stay. Never rejects.
 */
export async function removeOld(
  folder: string,
  files: FileSystem,
  { nowMs, olderThanMs, fits }: { nowMs: number; olderThanMs: number; fits: (name: string) => boolean },
): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const name of (await files.list(folder).catch(() => [])).filter(fits)) {
    try {
      const path = join(folder, name);
      const found = await lstat(path);
      if (nowMs - found.mtimeMs <= olderThanMs) {
        kept.push({ name, bytes: found.size, modifiedMs: found.mtimeMs });
        continue;
      }
      const inside = found.isDirectory() ? await files.list(path).catch(() => []) : [];
      for (const one of inside) await files.remove(join(path, one));
      await files.remove(path);
    } catch {
      // The file is gone, or belongs to another process now.
    }
  }
  return kept;
}

/** Removes all temp files of a folder of ours whose writers were killed. */
export async function sweepFolder(folder: string, files: FileSystem, nowMs: number): Promise<void> {
  await removeOld(folder, files, { nowMs, olderThanMs: LIMITS.leftoverMs, fits: isTempName });
}

/** Removes temp files beside `target` whose writers were killed. Files of other programs stay. */
export async function sweepTemps(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const start = `.${basename(target).replace(/^\./, "").slice(0, TEMP_NAME_CHARS)}.`;
  await removeOld(dirname(target), files, {
    nowMs,
    olderThanMs: LIMITS.leftoverMs,
    fits: (name) => name.startsWith(start) && isTempName(name),
  });
}

const corruptPrefix = (target: string): string => `${basename(target)}.corrupt-`;

/** Moves a broken file aside, and removes the oldest such copies beyond the limit. Throws if the file cannot be moved. */
export async function keepAside(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const date = new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-");
  const folder = dirname(target);
  await files.rename(target, join(folder, `${corruptPrefix(target)}${date}`));
  try {
    // The date sorts as text.
    const copies = (await files.list(folder)).filter((name) => name.startsWith(corruptPrefix(target))).sort();
    for (const name of copies.slice(0, -LIMITS.corruptCopies)) await files.remove(join(folder, name));
  } catch {
    // An extra copy does no harm.
  }
}

/** A folder for each task, such as a worktree, leaves a snapshot each. */
const SNAPSHOTS = 200;
const SNAPSHOTS_BYTES = 200 * 1024 * 1024;

/** The names that are beyond the limits when those that were used last stay. */
function surplusOf(snapshots: readonly Kept[]): string[] {
  let bytes = 0;
  return snapshots
    .toSorted((one, other) => other.modifiedMs - one.modifiedMs)
    .filter((file, index) => {
      bytes += file.bytes;
      return index >= SNAPSHOTS || (index > 0 && bytes > SNAPSHOTS_BYTES);
    })
    .map(({ name }) => name);
}

/**
 * Removes snapshots that nobody used for thirty days, those beyond the limits, what lies beside them, and their writers' temp files.
 */
export async function pruneSnapshots(folder: string, files: FileSystem, nowMs: number): Promise<void> {
  const isSnapshot = (name: string): boolean => /\.(bin|left-out\.json|rest\.json)$/.test(name);
  const kept = await removeOld(folder, files, { nowMs, olderThanMs: LIMITS.unusedMs, fits: isSnapshot });
  await sweepFolder(folder, files, nowMs);
  for (const name of surplusOf(kept.filter(({ name }) => name.endsWith(".bin")))) {
    const beside = [".left-out.json", ".rest.json"].map((end) => name.replace(/\.bin$/, end));
    // Another process may remove it, too.
    for (const one of [name, ...beside]) await files.remove(join(folder, one)).catch(() => undefined);
  }
}

/**
 * Removes compiled code that was written long ago, since each update of the package and of Node leaves what nobody reads any
 * more. Node does not tell what it reads: code that is still in use is compiled once more. `folder`: of Node's compile cache.
 */
export async function sweepCompiled(folder: string, files: FileSystem, nowMs: number): Promise<void> {
  const versions = (await files.list(folder).catch(() => [])).filter((name) => /^v\d/.test(name));
  for (const name of versions) {
    const fits = (file: string): boolean => /^[0-9a-f]{1,8}(\.\w{6})?$/.test(file);
    await removeOld(join(folder, name), files, { nowMs, olderThanMs: LIMITS.unusedMs, fits });
  }
}

/*
 * A path in a clone can lead to another machine, and a read that gets no answer cannot be ended: it holds one of Node's
 * four threads for files. So nobody looks at such a path again until the answer has come.
 */

/** Paths that have not answered; each promise settles with the answer and never rejects. */
const silent = new Map<string, Promise<void>>();

/** Settles when the path answers; undefined: no answer is overdue. */
export const silenceOf = (path: string): Promise<void> | undefined => silent.get(path);

/** The result of `task`, which looks at this path, or that there is none within `ms` milliseconds. Rejects as the task does. */
export async function inTime<T>(
  path: string,
  task: () => Promise<T>,
  ms: number,
): Promise<{ value: T } | { silent: Promise<void> }> {
  const overdue = silent.get(path);
  if (overdue) return { silent: overdue };
  const running = task();
  if (await settledWithin(running, ms)) return { value: await running };
  const forget = (): void => void silent.delete(path);
  const answered = running.then(forget, forget);
  silent.set(path, answered);
  return { silent: answered };
}
