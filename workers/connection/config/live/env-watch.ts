/**
 * Follows the envFiles that a decision about servers was made with: where one changes, another decision is due.
 * Watches nothing, and loads no watcher, as long as no server has one.
 */
import type { ConfigWatcher } from "./watch.ts";

export interface EnvWatch {
  /** These from now on. Never rejects. */
  follow(files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export function watchEnvFiles(options: {
  /** Also once when the watching begins: what changed before was not seen. */
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
