/**
 * Watches configuration files, also those that do not exist yet, lie in folders that do not exist yet, are replaced
 * by rename, or are reached through links. Reports only that something changed, once for each burst of events.
 * Watches single files and the folders on the way to them, never a tree.
 */
import type { Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ChokidarOptions, type FSWatcher, watch } from "chokidar";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { createBursts } from "./bursts.ts";

/** Milliseconds without an event until a burst is over. */
export const SETTLE_MS = 100;

/**
 * The files are looked at as well, so often: no event tells of a link behind a link, and now and then the events of a
 * folder that is removed and made again at once are lost.
 */
export const LOOK_MS = 5_000;

export interface ConfigWatcher {
  /** Folders and files that are really watched: the cost of watching. */
  watched(): string[];
  /** Settles when changes of every file are seen. The caller has to read earlier changes itself. */
  ready: Promise<void>;
  /** Watches these files from now on, and no others. */
  follow(files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

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

async function waysTo(file: string): Promise<Ways> {
  const isReadable = await stat(file).then(
    (stats) => stats.isFile(),
    (error: NodeJS.ErrnoException) => error.code !== "ELOOP",
  );
  const real = await realpath(file).catch(() => undefined);
  const links = real === file ? [] : await linkedFolders(file);
  if (!isReadable) return irregularWays(file, links);
  return { files: [file, ...(real === undefined || real === file ? [] : [real])], links, inPlace: [] };
}

/** What changes with each edit of the file. */
const stampOf = (file: string): Promise<string> =>
  stat(file).then(
    ({ ino, size, mtimeMs, mode }) => [ino, size, mtimeMs, mode].join(" "),
    (error: NodeJS.ErrnoException) => String(error.code),
  );

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
  // Not persistent, so that a process that has nothing else to do can end.
  const watcher = watch([], {
    ...options,
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
      if (dropped.length > 0) watcher.unwatch(dropped);
      if (added.length > 0) watcher.add(added);
    },
  };
}

/** `onError`: a line for the log; watching itself has a problem, and changes may go unseen. */
export function watchConfig(options: {
  files: readonly string[];
  onChange: () => void;
  /** The first sign of a burst: `onChange` follows when it has settled. */
  onFirstChange?: () => void;
  onError: (message: string) => void;
  settleMs?: number;
  lookMs?: number;
}): ConfigWatcher {
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
    const ways = await Promise.all(wanted.map(waysTo));
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

  const stamps = async (): Promise<string> => (await Promise.all(wanted.map(stampOf))).join("\n");

  const bursts = createBursts({
    stamps,
    onFirst: onFirstChange,
    onSettled: () => {
      void update();
      onChange();
    },
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
    watched: () =>
      sets.flatMap(({ watcher }) =>
        Object.entries(watcher.getWatched()).flatMap(([folder, names]) => [
          folder,
          ...names.map((name) => join(folder, name)),
        ]),
      ),
    ready,
    follow: async (next) => {
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
