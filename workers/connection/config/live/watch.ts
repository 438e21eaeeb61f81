/**
 * Watches configuration files: also those that do not exist yet, in folders that do not exist yet,
 * replaced by rename, or reached through links. Tells only that something changed, once per burst.
 * Watches single files and the folders on the way to them, never a tree.
 */
import type { Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ChokidarOptions, type FSWatcher, watch } from "chokidar";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";

/** Until a burst of events is over. */
export const SETTLE_MS = 100;

export interface ConfigWatcher {
  /** Folders and files that are really watched, for whoever wants to know what it costs. */
  watched(): string[];
  /** Settles when events of every file are seen. What changed before is for the caller to read then. */
  ready: Promise<void>;
  /** Another set of files. */
  follow(files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** A path and every folder above it. */
function withParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...withParents(parent)];
}

/** What is watched for one file. */
interface Ways {
  /** Files: the one that is wanted, and where it really lies. */
  files: string[];
  /** Links, each of which can be pointed elsewhere. */
  links: string[];
  /** Folders that stand in the place of a file. */
  inPlace: string[];
}

/** Links among the folders on the way to a file. */
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
 * A link that leads to a device, a folder or itself is watched as a link: what it leads to is never read, and can be
 * a tree of any size, or a device that changes with each key. A named pipe is watched through its folder.
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

interface PathSet {
  readonly watcher: FSWatcher;
  update(paths: readonly string[]): void;
}

/**
 * Some paths, watched. `followSymlinks`: what a link leads to, or the link itself. `isWanted`: more than the paths and
 * the folders on the way to them.
 */
function createPathSet(
  options: Pick<ChokidarOptions, "followSymlinks" | "depth">,
  isWanted: (path: string, stats: Stats | undefined) => boolean = () => false,
): PathSet {
  let watched = new Set<string>();
  let onTheWay = new Set<string>();
  // Not persistent: a process that has nothing else to do may end.
  const watcher = watch([], {
    ...options,
    persistent: false,
    // A path added later is told when it is watched: whoever read it before reads it again.
    ignoreInitial: false,
    // Its own smoothing would hide a file that is replaced by rename for a moment; ours covers it.
    atomic: false,
    // A folder on the way is watched when it comes, but nothing else in it.
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

/** `onError`: watching itself has a problem, for the log; changes may go unseen. */
export function watchConfig(options: {
  files: readonly string[];
  onChange: () => void;
  /** The first sign of a burst: `onChange` follows when it has settled. */
  onFirstChange?: () => void;
  onError: (message: string) => void;
  settleMs?: number;
}): ConfigWatcher {
  const { onChange, onFirstChange, onError, settleMs = SETTLE_MS } = options;
  let wanted = [...options.files];
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let started = false;
  /** Folders that stand in the place of files. */
  let inPlace = new Set<string>();
  const files = createPathSet({ followSymlinks: true });
  const links = createPathSet({ followSymlinks: false });
  // The folder around one tells when a file takes its place. It itself may hold anything.
  const around = createPathSet(
    { followSymlinks: true, depth: 0 },
    (path, stats) => inPlace.has(path) && stats?.isDirectory() !== true,
  );
  const sets = [files, links, around];

  /** Answers which of the sets watch anything. */
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

  const settle = (): void => {
    if (!started) return;
    if (timer === undefined) onFirstChange?.();
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void update();
      onChange();
    }, settleMs);
    timer.unref();
  };

  const failed = (error: unknown): void => {
    // A link that leads back to itself has come: a change like any other.
    if ((error as NodeJS.ErrnoException | undefined)?.code === "ELOOP") settle();
    else onError(messageOf(error));
  };
  const readiness = new Map(
    sets.map((set) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      set.watcher.once("ready", resolve).on("all", settle).on("error", failed);
      return [set, promise];
    }),
  );
  const ready = update().then(async (used) => {
    await Promise.all(used.map((set) => readiness.get(set)));
    started = true;
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
      await update();
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await Promise.all(sets.map(({ watcher }) => watcher.close()));
    },
  };
}
