/**
 * Keeps the configuration current while a session is open: reads again when a file changes, waits for
 * a half-written or just vanished file, and tells each new result once. Loads never overlap.
 */
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { canonical } from "../../../shared/json/canonical.ts";
import type { ConfigFacts } from "../files/files.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";
import { watchConfig } from "./watch.ts";

export { type EnvWatch, watchEnvFiles } from "./env-watch.ts";
export { asApplied, asKept, textsToKeep } from "./frozen-files.ts";

/**
 * A file that is broken or gone is read again after this long before that is believed: an editor may be replacing
 * it. So a file that was deleted takes its servers along after this and the watcher's settling (100 ms) together.
 */
const BELIEVE_MS = 250;

export interface LiveConfig {
  readonly current: LoadedConfig;
  /** Settles when changes of files are seen. */
  ready: Promise<void>;
  /** Reads now, for example with other servers registered by extensions. Settles when it is applied. */
  reload(changed?: Partial<ConfigFacts>): Promise<void>;
  close(): Promise<void>;
}

export interface LiveOptions {
  facts: ConfigFacts;
  first: LoadedConfig;
  /** A result that differs from the one before, in servers, settings or problems. */
  onConfig: (config: LoadedConfig, before: LoadedConfig) => void | Promise<void>;
  /** Some file is being written: a result may follow in a moment. */
  onStir?: () => void;
  /** One line for the log: watching or applying failed. */
  onError: (message: string) => void;
  settleMs?: number;
  believeMs?: number;
}

const fingerprint = ({ servers, settings, problems, files }: LoadedConfig): string =>
  canonical({ servers, settings, problems, files });

/** Files that the load before could use and this one cannot: perhaps in the middle of a write. */
const suspects = (now: LoadedConfig, before: LoadedConfig): boolean =>
  now.broken.some((file) => !before.broken.includes(file)) ||
  [...before.texts.keys()].some((file) => now.files.includes(file) && !now.texts.has(file));

export function followConfig(options: LiveOptions): LiveConfig {
  const { onConfig, onError, believeMs = BELIEVE_MS } = options;
  let { facts, first: current } = options;
  let closed = false;
  let work: Promise<void> = Promise.resolve();
  let doubt: NodeJS.Timeout | undefined;

  const apply = async (next: LoadedConfig): Promise<void> => {
    const before = current;
    current = next;
    if (fingerprint(next) === fingerprint(before)) return;
    await watcher.follow(next.files);
    await onConfig(next, before);
  };

  const read = async (believe: boolean): Promise<void> => {
    clearTimeout(doubt);
    const next = await loadConfig(facts, current);
    if (closed) return;
    if (believe || !suspects(next, current)) return apply(next);
    doubt = setTimeout(() => enqueue(true), believeMs);
    doubt.unref();
  };

  const enqueue = (believe: boolean): Promise<void> => {
    work = work
      .then(() => (closed ? undefined : read(believe)))
      .catch((error) => onError(`configuration could not be applied: ${messageOf(error)}`));
    return work;
  };

  const watcher = watchConfig({
    files: current.files,
    onChange: () => void enqueue(false),
    ...(options.onStir ? { onStir: options.onStir } : {}),
    onError: (message) => onError(`configuration files cannot be watched: ${message}`),
    ...(options.settleMs === undefined ? {} : { settleMs: options.settleMs }),
  });

  return {
    get current() {
      return current;
    },
    // What changed between the first load and now was not seen.
    ready: watcher.ready.then(() => enqueue(false)),
    reload: (changed = {}) => {
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
