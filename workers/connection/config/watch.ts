/**
 * Watches configuration files: also those that do not exist yet, in folders that do not exist yet,
 * replaced by rename, or reached through links. Tells only that something changed, once per burst.
 * Watches single files and the folders on the way to them, never a tree.
 */
import { realpath } from "node:fs/promises";
import { watch } from "chokidar";

/** Until a burst of events is over. */
export const SETTLE_MS = 100;

export interface ConfigWatcher {
  /** Settles when events of every file are seen. */
  ready: Promise<void>;
  /** Another set of files. */
  follow(files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Where a path really lies, if that is elsewhere: a link higher up may be pointed at another folder. */
async function linked(file: string): Promise<string[]> {
  try {
    const real = await realpath(file);
    return real === file ? [] : [real];
  } catch {
    // Nothing there yet.
    return [];
  }
}

/** `onError`: watching itself has a problem, for the log; changes may go unseen. */
export function watchConfig(options: {
  files: readonly string[];
  onChange: () => void;
  onError: (message: string) => void;
  settleMs?: number;
}): ConfigWatcher {
  const { onChange, onError, settleMs = SETTLE_MS } = options;
  let wanted = [...options.files];
  let watched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  // Not persistent: a process that has nothing else to do may end.
  const watcher = watch([], {
    persistent: false,
    ignoreInitial: true,
    // Its own smoothing would hide a file that is replaced by rename for a moment; ours covers it.
    atomic: false,
    depth: 0,
  });

  const update = async (): Promise<void> => {
    const real = await Promise.all(wanted.map(linked));
    if (closed) return;
    const next = new Set([...wanted, ...real.flat()]);
    const added = [...next].filter((file) => !watched.has(file));
    const dropped = [...watched].filter((file) => !next.has(file));
    watched = next;
    if (dropped.length > 0) watcher.unwatch(dropped);
    if (added.length > 0) watcher.add(added);
  };

  const settle = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // A link may point elsewhere now.
      void update();
      onChange();
    }, settleMs);
    timer.unref();
  };

  const ready = new Promise<void>((resolve) => {
    watcher.once("ready", resolve);
  });
  watcher.on("all", settle);
  watcher.on("error", (error) => onError(error instanceof Error ? error.message : String(error)));
  const first = update();

  return {
    ready: first.then(() => ready),
    follow: async (files) => {
      wanted = [...files];
      await update();
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
