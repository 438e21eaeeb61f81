/**
 * Follows the envFiles that a decision about servers was based on. If one changes, another decision is due. As long
 * as no server has an envFile, nothing is watched and the watcher is not loaded.
 */
import type { ConfigWatcher } from "./watch.ts";

export interface EnvWatch {
  /** Follows these files from now on, and no others. Never rejects. */
  follow(files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export function watchEnvFiles(options: {
  /** Called for each change, and once when watching begins, because an earlier change was not seen. */
  onChange: () => void;
  onError: (message: string) => void;
}): EnvWatch {
  const { onChange, onError } = options;
  let watcher: ConfigWatcher | undefined;
  let followed = "";
  let closed = false;
  let work: Promise<void> = Promise.resolve();

  const follow = async (files: readonly string[]): Promise<void> => {
    const wanted = [...files].sort().join("\0");
    if (closed || wanted === followed) return;
    followed = wanted;
    if (watcher) return watcher.follow(files);
    const { watchConfig } = await import("./watch.ts");
    watcher = watchConfig({ files, onChange, onError });
    watcher.ready.then(() => {
      if (!closed) onChange();
    }, onError);
  };

  return {
    follow: (files) => {
      work = work.then(() => follow(files)).catch((error: Error) => onError(error.message));
      return work;
    },
    close: async () => {
      closed = true;
      await work;
      await watcher?.close();
    },
  };
}
