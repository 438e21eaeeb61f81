/**
 * Watches configuration files: also those that do not exist yet, in folders that do not exist yet,
 * replaced by rename, or reached through links. Tells only that something changed, once per burst.
 * Watches single files and the folders on the way to them, never a tree.
 */
import { lstat, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type FSWatcher, watch } from "chokidar";

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

/** Where a file really lies, and the links among its folders: each can be pointed elsewhere. */
async function behind(file: string): Promise<{ real: string[]; links: string[] }> {
  const real = await realpath(file).catch(() => undefined);
  if (real === file) return { real: [], links: [] };
  const folders = withParents(dirname(file));
  const isLink = (folder: string): Promise<boolean> =>
    lstat(folder).then(
      (stats) => stats.isSymbolicLink(),
      () => false,
    );
  const linked = await Promise.all(folders.map(isLink));
  return { real: real === undefined ? [] : [real], links: folders.filter((_, i) => linked[i]) };
}

interface PathSet {
  readonly watcher: FSWatcher;
  update(paths: readonly string[]): void;
}

/** Some paths, watched. `followSymlinks`: what a link leads to, or the link itself. */
function createPathSet(followSymlinks: boolean): PathSet {
  let watched = new Set<string>();
  let onTheWay = new Set<string>();
  // Not persistent: a process that has nothing else to do may end.
  const watcher = watch([], {
    persistent: false,
    // A path added later is told when it is watched: whoever read it before reads it again.
    ignoreInitial: false,
    followSymlinks,
    // Its own smoothing would hide a file that is replaced by rename for a moment; ours covers it.
    atomic: false,
    // A folder on the way is watched when it comes, but nothing else in it.
    ignored: (path) => !onTheWay.has(path),
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
  onStir?: () => void;
  onError: (message: string) => void;
  settleMs?: number;
}): ConfigWatcher {
  const { onChange, onStir, onError, settleMs = SETTLE_MS } = options;
  let wanted = [...options.files];
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let started = false;
  const files = createPathSet(true);
  const links = createPathSet(false);

  const update = async (): Promise<boolean> => {
    const found = await Promise.all(wanted.map(behind));
    if (closed) return false;
    files.update([...wanted, ...found.flatMap(({ real }) => real)]);
    const linked = found.flatMap((file) => file.links);
    links.update(linked);
    return linked.length > 0;
  };

  const settle = (): void => {
    if (!started) return;
    if (timer === undefined) onStir?.();
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void update();
      onChange();
    }, settleMs);
    timer.unref();
  };

  const failed = (error: unknown): void => onError(error instanceof Error ? error.message : String(error));
  const readyOf = ({ watcher }: PathSet): Promise<void> =>
    new Promise((resolve) => {
      watcher.once("ready", resolve);
    });
  const filesReady = readyOf(files);
  const linksReady = readyOf(links);
  files.watcher.on("all", settle).on("error", failed);
  links.watcher.on("all", settle).on("error", failed);
  const ready = update().then(async (hasLinks) => {
    await filesReady;
    if (hasLinks) await linksReady;
    started = true;
  });

  return {
    watched: () =>
      [files, links].flatMap(({ watcher }) =>
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
      await Promise.all([files.watcher.close(), links.watcher.close()]);
    },
  };
}
