/**
 * Owns: the current configuration while a session is open. Reads the files again when one of them changes, waits
 * for a file that is half-written or has just vanished, and hands each new result on once. Loads never overlap.
 */
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { canonical } from "../../../shared/json/canonical.ts";
import type { ConfigFacts } from "../files/sources.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";
import { watchConfig } from "./watch.ts";

/**
 * A file that is broken or gone is read a second time after this many milliseconds, because an editor may be
 * replacing it. The servers of a deleted file therefore go after this time and the watcher's 100 ms together.
 */
const BELIEVE_MS = 250;

export interface LiveConfig {
  readonly current: LoadedConfig;
  /** Settles when every change of a file is seen from then on. */
  ready: Promise<void>;
  /** Reads now, for example because extensions registered other servers. Settles when the result is applied. */
  reload(changed?: Partial<ConfigFacts>): Promise<void>;
  close(): Promise<void>;
}

export interface LiveOptions {
  facts: ConfigFacts;
  first: LoadedConfig;
  /** Gets each result that differs from the one before in servers, settings, problems or files. */
  onConfig: (config: LoadedConfig, before: LoadedConfig) => void | Promise<void>;
  /** A file is being written: a result may follow in a moment. */
  onFirstChange?: () => void;
  /** Gets one line for the log if watching or applying failed. */
  onError: (message: string) => void;
  settleMs?: number;
  believeMs?: number;
}

const fingerprint = ({ servers, settings, problems, watched }: LoadedConfig): string =>
  canonical({ servers, settings, problems, watched });

/** Whether the load before could use a file that this load cannot use: perhaps somebody is writing the file. */
const isSuspect = (now: LoadedConfig, before: LoadedConfig): boolean =>
  now.broken.some((file) => !before.broken.includes(file)) ||
  [...before.texts.keys()].some((file) => now.files.includes(file) && !now.texts.has(file));

export function followConfig(options: LiveOptions): LiveConfig {
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
      .catch((error) => onError(`configuration could not be applied: ${messageOf(error)}`));
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
    get current() {
      return current;
    },
    // The watcher did not see what changed between the first load and now.
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
