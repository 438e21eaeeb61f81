/**
 * Keeps one worker alive: starts it, notices that it has ended or hangs, and starts another one after a pause, a limited
 * number of times. Knows nothing about the content of messages.
 */

import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { type Crash, type CrashPolicy, type KeepLimits, STOPPED } from "./contract.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import type { RuntimeThread } from "./thread.ts";

/** The end of one worker. */
export interface PastCrash {
  /** Milliseconds of the same clock as `now`. */
  at: number;
  /** Whether the crash counts towards giving up: no server is to blame for it. */
  isCounted: boolean;
}

type AfterCrash =
  /** `recent`: the crashes of the last minute. */
  | { action: "restart"; delayMs: number; recent: readonly PastCrash[] }
  /** `count`: the counted crashes of the last minute. */
  | { action: "give-up"; count: number; recent: readonly PastCrash[] };

/** `crashes`: all that are remembered, the newest last. */
export function afterCrash(
  crashes: readonly PastCrash[],
  now: number,
  { respawnMs, respawnsAMinute }: CrashPolicy = LIMITS,
): AfterCrash {
  const recent = crashes.filter(({ at }) => now - at < MINUTE_MS);
  const count = recent.filter(({ isCounted }) => isCounted).length;
  if (count > respawnsAMinute) return { action: "give-up", count, recent };
  return {
    action: "restart",
    delayMs: respawnMs[Math.min(recent.length, respawnMs.length) - 1] ?? 0,
    recent,
  };
}

/**
 * Finds a worker that hangs: asks the worker at intervals and reports, once, a question that stays unanswered. A pause of
 * this process itself (a suspended machine, a stalled main thread) does not count.
 */
export interface Heartbeat {
  stop(): void;
}

export function startHeartbeat(options: {
  /** The longest time that a question may stay unanswered. The interval of questions is half of it. */
  timeoutMs: number;
  ask: () => Promise<unknown>;
  onHang: () => void;
}): Heartbeat {
  const intervalMs = options.timeoutMs / 2;
  let askedAt: number | undefined;
  let lastTickAt = performance.now();
  let stopped = false;

  const ask = (now: number): void => {
    askedAt = now;
    const answered = (): void => {
      askedAt = undefined;
    };
    // A rejection means that the worker has ended, which keep-worker.ts handles.
    options.ask().then(answered, answered);
  };
  const tick = (): void => {
    const now = performance.now();
    const late = now - lastTickAt > 2 * intervalMs;
    lastTickAt = now;
    if (askedAt === undefined) {
      ask(now);
      return;
    }
    if (late) askedAt = now;
    if (now - askedAt < options.timeoutMs) return;
    // The answer may be in the queue behind this timer: it is read first.
    setImmediate(() =>
      setImmediate(() => {
        if (askedAt === undefined || stopped) return;
        stop();
        options.onHang();
      }),
    );
  };
  const timer = setInterval(tick, intervalMs);
  timer.unref();
  const stop = (): void => {
    stopped = true;
    clearInterval(timer);
  };
  return { stop };
}

interface NextWorker {
  /** A worker runs. */
  resolve(rpc: Rpc): void;
  /** No worker will run any more. */
  reject(error: ThreadsError): void;
  /** The worker has ended. Callers that wait already keep waiting for the worker that follows. */
  renew(): void;
  /** Rejects with `cancelled` when the signal aborts. */
  wait(signal: AbortSignal | undefined): Promise<Rpc>;
}

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when the promise rejects.
  next.promise.catch(() => undefined);
  return next;
}

function createNextWorker(): NextWorker {
  let next = createNext();
  let isResolved = false;
  return {
    resolve: (rpc) => {
      isResolved = true;
      next.resolve(rpc);
    },
    reject: (error) => next.reject(error),
    renew: () => {
      if (isResolved) next = createNext();
      isResolved = false;
    },
    wait: (signal) =>
      new Promise((resolve, reject) => {
        const cancel = (): void => reject(new ThreadsError("cancelled", "The call was cancelled."));
        if (signal?.aborted) {
          cancel();
          return;
        }
        signal?.addEventListener("abort", cancel, { once: true });
        next.promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", cancel));
      }),
  };
}

interface KeptWorker {
  /** The running worker, or the next one while it is being started. Rejects with `runtime_stopped` or `cancelled`. */
  ready(signal: AbortSignal | undefined): Promise<Rpc>;
  /**
   * Ends the worker for good, and open requests fail. Settles soon after the farewell, even if the thread does not end: a
   * thread in native code cannot be interrupted. Does not reject.
   */
  stop(farewell: (rpc: Rpc) => Promise<void>): Promise<void>;
}

/** How a worker ended. */
export interface WorkerEnd {
  /** Why the worker ended, in words for people. */
  reason: string;
  outOfMemory: boolean;
}

export interface KeepOptions {
  start: () => Promise<RuntimeThread>;
  /** Called when a worker runs, to tell it what it must know. */
  onStart: (rpc: Rpc) => void;
  /** Called when a worker has ended, asked or unasked, to clean up behind it. */
  onGone: () => void;
  /**
   * Answers the servers that caused the end. The next worker does not connect them unasked, so this end does not count
   * towards giving up.
   */
  blame?: (end: WorkerEnd) => string[];
  onCrash: (crash: Crash) => void;
  limits?: KeepLimits;
}

const MINUTE_MS = 60_000;
/** A thread that runs JavaScript ends within some milliseconds. */
const TERMINATE_MS = 200;

const stoppedError = (message: string): ThreadsError =>
  new ThreadsError("runtime_stopped", message, { remedy: "/reload starts the MCP servers again." });

/** Settles with the promise, also if that rejects, or after `ms` milliseconds. */
async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise.catch(() => undefined), late]);
  clearTimeout(timer);
}

interface Watched {
  thread: RuntimeThread;
  rpc: Rpc;
  heartbeat: Heartbeat;
}

class Keeper implements KeptWorker {
  readonly #options: KeepOptions;
  readonly #next = createNextWorker();
  #crashes: readonly PastCrash[] = [];
  #current: Watched | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(options: KeepOptions) {
    this.#options = options;
    this.#startQuietly();
  }

  async #start(): Promise<void> {
    try {
      const thread = await this.#options.start();
      if (this.#isStopping) thread.terminate().catch(() => undefined);
      else this.#watch(thread);
    } catch (error) {
      this.#onEnd({ reason: messageOf(error), outOfMemory: false });
    }
  }

  ready(signal: AbortSignal | undefined): Promise<Rpc> {
    if (this.#isStopping) return Promise.reject(new ThreadsError("runtime_stopped", STOPPED));
    return this.#current ? Promise.resolve(this.#current.rpc) : this.#next.wait(signal);
  }

  async stop(farewell: (rpc: Rpc) => Promise<void>): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    this.#next.reject(stoppedError(STOPPED));
    if (!this.#current) return;
    const { thread, rpc, heartbeat } = this.#current;
    heartbeat.stop();
    thread.dismiss();
    await farewell(rpc).catch(() => undefined);
    await settledWithin(
      thread.terminate().then(() => thread.exited),
      TERMINATE_MS,
    );
    rpc.end(new ThreadsError("runtime_stopped", STOPPED));
  }

  /** Watches a thread until its end, and reports that end once. */
  #watch(thread: RuntimeThread): void {
    const rpc = createRpc(thread);
    let known: string | undefined;
    const end = (reason: string): void => {
      known ??= reason;
      thread.terminate().catch(() => undefined);
    };
    this.#current = { thread, rpc, heartbeat: this.#startHeartbeat(rpc, end) };
    thread.exited
      .then(({ exitCode, reason, outOfMemory = false }) =>
        this.#onEnd({ reason: known ?? reason ?? `exit code ${exitCode}`, outOfMemory }),
      )
      // A callback that throws must not end Pi.
      .catch(() => undefined);
    try {
      this.#options.onStart(rpc);
    } catch (error) {
      // A worker without the session's facts must end before the next one starts.
      end(messageOf(error));
      return;
    }
    this.#next.resolve(rpc);
  }

  #startHeartbeat(rpc: Rpc, end: (reason: string) => void): Heartbeat {
    const timeoutMs = this.#options.limits?.heartbeatMs ?? LIMITS.heartbeatMs;
    return startHeartbeat({
      timeoutMs,
      ask: () => rpc.request("ping", {}, { deadlineMs: MINUTE_MS, background: true }),
      onHang: () => end(`it did not answer for ${timeoutMs / 1_000} s`),
    });
  }

  #onEnd(end: WorkerEnd): void {
    this.#current?.heartbeat.stop();
    this.#current = undefined;
    try {
      this.#options.onGone();
    } catch {
      // A failed clean-up must not keep the next worker from starting.
    }
    if (this.#isStopping) return;
    this.#next.renew();
    const heldBack = this.#options.blame?.(end) ?? [];
    const givenUp = this.#startOrGiveUp(end, heldBack.length === 0);
    this.#options.onCrash({ reason: end.reason, givenUp, ...(heldBack.length === 0 ? {} : { heldBack }) });
  }

  /** Answers whether no other worker is started. */
  #startOrGiveUp({ reason }: WorkerEnd, isCounted: boolean): boolean {
    const now = performance.now();
    const policy = { ...LIMITS, ...this.#options.limits };
    const decided = afterCrash([...this.#crashes, { at: now, isCounted }], now, policy);
    this.#crashes = decided.recent;
    if (decided.action === "give-up") {
      const times = `The connection worker crashed ${decided.count} times within a minute`;
      this.#next.reject(stoppedError(`${times} (${reason}).`));
      return true;
    }
    this.#timer = setTimeout(() => this.#startQuietly(), decided.delayMs);
    return false;
  }

  #startQuietly(): void {
    // `onCrash` reports why a start failed; a callback that throws must not end Pi.
    this.#start().catch(() => undefined);
  }
}

export const keepWorker = (options: KeepOptions): KeptWorker => new Keeper(options);
