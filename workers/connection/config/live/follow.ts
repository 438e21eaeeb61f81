/**
 * Owns: the current configuration while a session is open. Reads the files again when one of them changes, waits
 * for a file that is half-written or has just vanished, and hands each new result on once. Loads never overlap.
 */

import type { Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type ChokidarOptions, FSWatcher } from "chokidar";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { fileStamp } from "../../../../src/shared/protocol/values.ts";
import { inTime } from "../../../shared/files/file-system.ts";
import { canonical } from "../../../shared/json.ts";
import { comparable } from "../entry/definition.ts";
import { type ConfigFacts, MOST_SILENT } from "../files/sources.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";

/** Milliseconds without an event until a burst is over. */
export const SETTLE_MS = 100;

/**
 * The files are looked at as well, so often: no event tells of a link behind a link, and now and then the events of a
 * folder that is removed and made again at once are lost.
 */
export const LOOK_MS = 5_000;

/** A path and every folder above it. */
function withParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...withParents(parent)];
}

/** The paths that are watched for one file. */
interface Ways {
  /** The wanted path, and the path of the real file. */
  files: string[];
  /** Links on the way: each can be pointed elsewhere. */
  links: string[];
  /** A folder at the path of the wanted file. */
  inPlace: string[];
}

/** The links among the folders on the way to a file. */
async function linkedFolders(file: string): Promise<string[]> {
  const folders = withParents(dirname(file));
  const isLink = (folder: string): Promise<boolean> =>
    lstat(folder).then(
      (stats) => stats.isSymbolicLink(),
      () => false,
    );
  const linked = await Promise.all(folders.map(isLink));
  return folders.filter((_, i) => linked[i]);
}

/**
 * A link that leads to a device, a folder or itself is watched as a link, because its target is never read and can
 * be a tree of any size, or a device that changes with each key press. A named pipe is watched through its folder.
 */
async function irregularWays(file: string, links: string[]): Promise<Ways> {
  const found = await lstat(file).catch(() => undefined);
  if (found?.isSymbolicLink()) return { files: [], links: [...links, file], inPlace: [] };
  if (found?.isDirectory()) return { files: [], links, inPlace: [file] };
  return { files: [file], links, inPlace: [] };
}

async function findWays(file: string): Promise<Ways> {
  const isReadable = await stat(file).then(
    (stats) => stats.isFile(),
    (error: NodeJS.ErrnoException) => error.code !== "ELOOP",
  );
  const real = await realpath(file).catch(() => undefined);
  const links = real === file ? [] : await linkedFolders(file);
  if (!isReadable) return irregularWays(file, links);
  return { files: [file, ...(real === undefined || real === file ? [] : [real])], links, inPlace: [] };
}

/**
 * The answer of `look`, or `instead` if the file does not answer, as one of a mount that hangs. Nobody looks or reads there again
 * until it does, since each look would hold one more of Pi's four threads for files.
 */
async function answerOf<T, U>(file: string, look: (file: string) => Promise<T>, instead: U): Promise<T | U> {
  const found = await inTime(file, () => look(file), LIMITS.projectReadMs);
  return "value" in found ? found.value : instead;
}

/** Looks at one file after the other. `instead`: for one that does not answer, and for the others beyond a few of these. */
async function eachOf<T>(
  files: readonly string[],
  look: (file: string) => Promise<T>,
  instead: (file: string) => T,
): Promise<T[]> {
  const found: T[] = [];
  let silent = 0;
  for (const file of files) {
    const one = silent < MOST_SILENT ? await answerOf(file, look, undefined) : undefined;
    if (one === undefined) silent++;
    found.push(one ?? instead(file));
  }
  return found;
}

/** What changes with each edit of the file. */
const stampOf = (file: string): Promise<string> =>
  stat(file).then(
    ({ ino, size, mtimeMs, mode }) => [ino, size, mtimeMs, mode].join(" "),
    (error: NodeJS.ErrnoException) => String(error.code),
  );

/** Rejects for a file that is there and cannot be looked at. */
const restStampOf = async (file: string): Promise<[string, string]> => [
  file,
  fileStamp(
    await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
      return undefined;
    }),
  ),
];

/** One after the other, up to the first file that does not answer. Undefined: one does not, or cannot be looked at. */
async function restStamps(files: readonly string[]): Promise<[string, string][] | undefined> {
  const stamps: [string, string][] = [];
  for (const file of files) {
    const stamp = await answerOf(file, restStampOf, undefined).catch(() => undefined);
    if (stamp === undefined) return undefined;
    stamps.push(stamp);
  }
  return stamps;
}

/** A path as it is compared with that of an event, which on Windows may have other slashes and letters. */
const eventKey = (path: string): string => resolve(path).toLowerCase();

interface PathSet {
  readonly watcher: FSWatcher;
  update(paths: readonly string[]): void;
}

/**
 * A watcher for a set of paths. `followSymlinks`: watches the target of a link, or the link itself. `isWanted`:
 * accepts more paths than the set and the folders on the way to it.
 */
function createPathSet(
  options: Pick<ChokidarOptions, "followSymlinks" | "depth">,
  isWanted: (path: string, stats: Stats | undefined) => boolean = () => false,
): PathSet {
  let watched = new Set<string>();
  let onTheWay = new Set<string>();
  let eventKeys = new Set<string>();
  /**
   * Where chokidar waits for a file that is not there, it lists the folder and looks at each of its files after every event
   * in it. A home or a project's root has many files and an event each second, so an event counts only for a path of
   * the set. No option says that: `ignored` is asked about the files of the list, when they have been looked at.
   */
  class SetWatcher extends FSWatcher {
    override isUnwatched(path: string): boolean {
      const isOfSet = eventKeys.has(eventKey(path)) || isWanted(path, undefined);
      return !isOfSet || super.isUnwatched(path);
    }
  }
  const watcher = new SetWatcher({
    ...options,
    // Not persistent, so that a process that has nothing else to do can end.
    persistent: false,
    // An event for a path that is added later says that it is watched now: its reader reads it again.
    ignoreInitial: false,
    // chokidar's own smoothing would hide a rename for a moment; the settling here covers that case.
    atomic: false,
    // A folder on the way is watched when it appears, but nothing else in that folder.
    ignored: (path, stats) => !onTheWay.has(path) && !isWanted(path, stats),
  });
  return {
    watcher,
    update: (paths) => {
      const next = new Set(paths);
      const added = paths.filter((path) => !watched.has(path));
      const dropped = [...watched].filter((path) => !next.has(path));
      watched = next;
      onTheWay = new Set(paths.flatMap(withParents));
      eventKeys = new Set([...onTheWay].map(eventKey));
      if (dropped.length > 0) watcher.unwatch(dropped);
      if (added.length > 0) watcher.add(added);
    },
  };
}

export type ConfigWatcher = ReturnType<typeof watchConfig>;

/** `onError`: a line for the log; watching itself has a problem, and changes may go unseen. */
export function watchConfig(options: {
  files: readonly string[];
  onChange: () => void;
  /** The first sign of a burst: `onChange` follows when it has settled. */
  onFirstChange?: () => void;
  onError: (message: string) => void;
  settleMs?: number;
  lookMs?: number;
}) {
  const { onChange, onFirstChange, onError, settleMs = SETTLE_MS, lookMs = LOOK_MS } = options;
  let wanted = [...options.files];
  let closed = false;
  /** Folders at the paths of wanted files. */
  let inPlace = new Set<string>();
  const files = createPathSet({ followSymlinks: true });
  const links = createPathSet({ followSymlinks: false });
  // The folder around such a folder reports when a file takes its place. The folder itself may hold anything.
  const around = createPathSet(
    { followSymlinks: true, depth: 0 },
    (path, stats) => inPlace.has(path) && stats?.isDirectory() !== true,
  );
  const sets = [files, links, around];

  /** Gives the sets that watch anything. */
  const update = async (): Promise<PathSet[]> => {
    // A file that does not answer stays watched as it is.
    const ways = await eachOf(wanted, findWays, (file) => ({ files: [file], links: [], inPlace: [] }));
    if (closed) return [];
    inPlace = new Set(ways.flatMap((way) => way.inPlace));
    const paths = [
      ways.flatMap((way) => way.files),
      ways.flatMap((way) => way.links),
      [...inPlace].map((folder) => dirname(folder)),
    ].map((some) => [...new Set(some)]);
    for (const [i, set] of sets.entries()) set.update(paths[i] ?? []);
    return sets.filter((_, i) => (paths[i] ?? []).length > 0);
  };

  const lastStamps = new Map<string, string>();
  /** A file that does not answer counts as it was. */
  const stamps = async (): Promise<string> => {
    const looked = [...wanted];
    const found = await eachOf(looked, stampOf, (file) => lastStamps.get(file) ?? "");
    for (const [i, file] of looked.entries()) lastStamps.set(file, found[i] ?? "");
    return found.join("\n");
  };

  const bursts = createBursts({
    stamps,
    onFirst: onFirstChange,
    // An edit of a file to which a link leads from now on must be seen once the file has been read.
    onSettled: () =>
      void update().then(() => {
        if (!closed) onChange();
      }),
    settleMs,
    lookMs,
  });

  const failed = (error: unknown): void => {
    // A link that leads back to itself has appeared: a change like any other.
    if ((error as NodeJS.ErrnoException | undefined)?.code === "ELOOP") bursts.saw();
    else onError(messageOf(error));
  };
  const readiness = new Map(
    sets.map((set) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      set.watcher.once("ready", resolve).on("all", bursts.saw).on("error", failed);
      return [set, promise];
    }),
  );
  const ready = update().then(async (used) => {
    await Promise.all(used.map((set) => readiness.get(set)));
    await bursts.begin();
  });

  return {
    /** Folders and files that are really watched: the cost of watching. */
    watched: (): string[] =>
      sets.flatMap(({ watcher }) =>
        Object.entries(watcher.getWatched()).flatMap(([folder, names]) => [
          folder,
          ...names.map((name) => join(folder, name)),
        ]),
      ),
    /** Settles when changes of every file are seen. The caller has to read earlier changes itself. */
    ready,
    /** Watches these files from now on, and no others. */
    follow: async (next: readonly string[]) => {
      wanted = [...next];
      bursts.forget();
      await update();
    },
    close: async () => {
      closed = true;
      bursts.stop();
      await Promise.all(sets.map(({ watcher }) => watcher.close()));
    },
  };
}

/**
 * When a change of watched files is reported: once for each burst of events, after it has settled, and also for a change
 * that no event told of, because the stamps of the files are looked at. Owns the clocks.
 */
export function createBursts(options: {
  /** The state of all files as one text. Does not reject. */
  stamps: () => Promise<string>;
  /** The first sign of a burst: `onSettled` follows. */
  onFirst: (() => void) | undefined;
  onSettled: () => void;
  settleMs: number;
  lookMs: number;
}) {
  const { stamps, onFirst, onSettled, settleMs, lookMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;
  let stopped = false;
  let started = false;
  /** The stamps of the files before they were read last; undefined: nobody knows them. */
  let seen: string | undefined;

  const saw = (): void => {
    if (!started) return;
    if (timer === undefined) onFirst?.();
    clearTimeout(timer);
    const settled = setTimeout(async () => {
      const now = await stamps();
      // Another event has begun the wait anew.
      if (stopped || timer !== settled) return;
      timer = undefined;
      seen = now;
      onSettled();
    }, settleMs);
    timer = settled;
    timer.unref();
  };
  const look = async (): Promise<void> => {
    const before = seen;
    const now = await stamps();
    if (stopped) return;
    if (timer === undefined && seen === before) {
      seen = now;
      if (before !== now) saw();
    }
    lookAgain();
  };
  const lookAgain = (): void => {
    looking = setTimeout(look, lookMs).unref();
  };

  return {
    /** An event: something may have changed. Counts once `begin` has looked at the files. */
    saw,
    /** Settles when the files have been looked at for the first time. */
    begin: async () => {
      seen = await stamps();
      started = true;
      if (!stopped) lookAgain();
    },
    /**
     * Other files are watched from now on. The next look counts as a change: one of them may have changed since it was read, and
     * what watches it was not there yet.
     */
    forget: () => {
      seen = undefined;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(looking);
    },
  };
}

/**
 * A file that is broken or gone is read a second time after this many milliseconds, because an editor may be
 * replacing it. The servers of a deleted file therefore go after this time and the watcher's 100 ms together.
 */
const BELIEVE_MS = 250;

interface LiveOptions {
  facts: ConfigFacts;
  first: LoadedConfig;
  /** Gets each result that differs from the one before in servers, settings, problems or files. */
  onConfig: (config: LoadedConfig, before: LoadedConfig) => void | Promise<void>;
  /** A file is being written: a result may follow in a moment. */
  onFirstChange?: () => void;
  /** Gets one line for the log if watching or applying failed, and why an edit could not be applied. */
  onError: (message: string, error?: unknown) => void;
  settleMs?: number;
  believeMs?: number;
}

const fingerprint = ({ servers, settings, problems, policy, denied, watched }: LoadedConfig): string =>
  canonical({ servers: servers.map(comparable), settings, problems, policy, denied, watched });

/** Whether the load before could use a file that this load cannot use: perhaps somebody is writing the file. */
const isSuspect = (now: LoadedConfig, before: LoadedConfig): boolean =>
  now.broken.some((file) => !before.broken.includes(file)) ||
  [...before.texts.keys()].some((file) => now.reads.has(file) && !now.texts.has(file));

/** Follows the files of `first` until it is closed. */
export function followConfig(options: LiveOptions) {
  const { onConfig, onError, believeMs = BELIEVE_MS } = options;
  let { facts, first: current } = options;
  let closed = false;
  let work: Promise<void> = Promise.resolve();
  let doubt: NodeJS.Timeout | undefined;
  const awaited = new WeakSet<Promise<void>>();

  const apply = async (next: LoadedConfig): Promise<void> => {
    const before = current;
    current = next;
    if (fingerprint(next) === fingerprint(before)) return;
    await watcher.follow(next.watched);
    await onConfig(next, before);
  };

  const read = async (believe: boolean): Promise<void> => {
    clearTimeout(doubt);
    const next = await loadConfig(facts, current);
    if (closed) return;
    awaitAnswers(next);
    if (believe || !isSuspect(next, current)) return apply(next);
    doubt = setTimeout(() => enqueue(true), believeMs);
    doubt.unref();
  };

  /** A file that answers at last is read at once. */
  const awaitAnswers = ({ unanswered }: LoadedConfig): void => {
    for (const answer of unanswered.values()) {
      if (awaited.has(answer)) continue;
      awaited.add(answer);
      void answer.then(() => enqueue(true));
    }
  };

  const enqueue = (believe: boolean): Promise<void> => {
    work = work
      .then(() => (closed ? undefined : read(believe)))
      .catch((error) => onError(`configuration could not be applied: ${messageOf(error)}`, error));
    return work;
  };

  const watcher = watchConfig({
    files: current.watched,
    onChange: () => void enqueue(false),
    ...(options.onFirstChange ? { onFirstChange: options.onFirstChange } : {}),
    onError: (message) => onError(`configuration files cannot be watched: ${message}`),
    ...(options.settleMs === undefined ? {} : { settleMs: options.settleMs }),
  });

  awaitAnswers(current);
  return {
    get current(): LoadedConfig {
      return current;
    },
    /** Settles when every change of a file is seen from then on. The watcher saw none between the first load and now. */
    ready: watcher.ready.then(() => enqueue(false)),
    /**
     * The stamps of the watched files if these still say what `current` does; undefined if an edit is on its way, or a file
     * cannot be looked at or does not answer.
     */
    confirmed: async (): Promise<[file: string, stamp: string][] | undefined> => {
      const before = current;
      const stamps = await restStamps(before.watched);
      if (!stamps) return undefined;
      const again = await loadConfig(facts, before);
      const isSame = current === before && fingerprint(again) === fingerprint(before);
      return isSame ? stamps : undefined;
    },
    /** Reads now, for example because extensions registered other servers. Settles when the result is applied. */
    reload: (changed: Partial<ConfigFacts> = {}): Promise<void> => {
      facts = { ...facts, ...changed };
      return enqueue(true);
    },
    close: async () => {
      closed = true;
      clearTimeout(doubt);
      await watcher.close();
      await work;
    },
  };
}

export type LiveConfig = ReturnType<typeof followConfig>;
