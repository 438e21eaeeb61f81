/**
 * Keeps one worker alive: starts it, notices that it has ended or hangs, and starts another one after a pause, a limited
 * number of times. Knows nothing about the content of messages.
 */

import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { Crash, CrashPolicy, KeepLimits } from "./contract.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import type { RuntimeThread } from "./thread.ts";

export interface KeptWorker {
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

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when the promise rejects.
  next.promise.catch(() => undefined);
  return next;
}

const stoppedError = (message: string): ThreadsError =>
  new ThreadsError("runtime_stopped", message, { remedy: "/reload starts the MCP servers again." });

const STOPPED = "The MCP servers of this session are stopped.";

/** Settles with the promise, also if that rejects, or after `ms` milliseconds. */
async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise.catch(() => undefined), late]);
  clearTimeout(timer);
}

/** The end of one worker. */
export interface PastCrash {
  /** Milliseconds of the same clock as `now`. */
  at: number;
  /** Whether the crash counts towards giving up: no server is to blame for it. */
  isCounted: boolean;
}

export type AfterCrash =
  /** `recent`: the crashes of the last minute. */
  | { action: "restart"; delayMs: number; recent: readonly PastCrash[] }
  /** `count`: the counted crashes of the last minute. */
  | { action: "give-up"; count: number; recent: readonly PastCrash[] };

/** Decides what follows a crash. `crashes`: all that are remembered, the newest last. Pure. */
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

export function keepWorker(options: KeepOptions): KeptWorker {
  const heartbeatMs = options.limits?.heartbeatMs ?? LIMITS.heartbeatMs;
  let crashes: readonly PastCrash[] = [];
  let current: { thread: RuntimeThread; rpc: Rpc; heartbeat: Heartbeat } | undefined;
  let next = createNext();
  /** Whether `next` has been resolved. */
  let kept = false;
  let timer: NodeJS.Timeout | undefined;
  let stopping = false;

  const onEnd = (end: WorkerEnd): void => {
    current?.heartbeat.stop();
    current = undefined;
    try {
      options.onGone();
    } catch {
      // A failed clean-up must not keep the next worker from starting.
    }
    if (stopping) return;
    // Callers that wait keep waiting for the next worker. A promise that is resolved already is replaced.
    if (kept) next = createNext();
    kept = false;
    const heldBack = options.blame?.(end) ?? [];
    const now = performance.now();
    const decided = afterCrash([...crashes, { at: now, isCounted: heldBack.length === 0 }], now, {
      ...LIMITS,
      ...options.limits,
    });
    crashes = decided.recent;
    const { reason } = end;
    const givenUp = decided.action === "give-up";
    if (givenUp) {
      const message = `The connection worker crashed ${decided.count} times within a minute (${reason}).`;
      next.reject(stoppedError(message));
    } else timer = setTimeout(start, decided.delayMs);
    options.onCrash({ reason, givenUp, ...(heldBack.length === 0 ? {} : { heldBack }) });
  };

  /** Watches a thread until its end, and reports that end once. */
  const watch = (thread: RuntimeThread): void => {
    const rpc = createRpc(thread);
    let known: string | undefined;
    const end = (reason: string): void => {
      known ??= reason;
      thread.terminate().catch(() => undefined);
    };
    const heartbeat = startHeartbeat({
      timeoutMs: heartbeatMs,
      ask: () => rpc.request("ping", {}, { deadlineMs: MINUTE_MS, background: true }),
      onHang: () => end(`it did not answer for ${heartbeatMs / 1_000} s`),
    });
    current = { thread, rpc, heartbeat };
    thread.exited
      .then(({ exitCode, reason, outOfMemory = false }) =>
        onEnd({ reason: known ?? reason ?? `exit code ${exitCode}`, outOfMemory }),
      )
      // A callback that throws must not end Pi.
      .catch(() => undefined);
    try {
      options.onStart(rpc);
    } catch (error) {
      // A worker without the session's facts must end before the next one starts.
      end(messageOf(error));
      return;
    }
    kept = true;
    next.resolve(rpc);
  };

  const run = async (): Promise<void> => {
    try {
      const thread = await options.start();
      if (stopping) thread.terminate().catch(() => undefined);
      else watch(thread);
    } catch (error) {
      onEnd({ reason: messageOf(error), outOfMemory: false });
    }
  };
  const start = (): void => {
    run().catch(() => undefined);
  };

  start();
  return {
    ready: (signal) => {
      if (stopping) return Promise.reject(new ThreadsError("runtime_stopped", STOPPED));
      if (current) return Promise.resolve(current.rpc);
      return new Promise((resolve, reject) => {
        const cancel = (): void => reject(new ThreadsError("cancelled", "The call was cancelled."));
        if (signal?.aborted) {
          cancel();
          return;
        }
        signal?.addEventListener("abort", cancel, { once: true });
        next.promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", cancel));
      });
    },
    stop: async (farewell) => {
      stopping = true;
      clearTimeout(timer);
      next.reject(stoppedError(STOPPED));
      if (!current) return;
      const { thread, rpc, heartbeat } = current;
      heartbeat.stop();
      await farewell(rpc).catch(() => undefined);
      await settledWithin(
        thread.terminate().then(() => thread.exited),
        TERMINATE_MS,
      );
      rpc.end(new ThreadsError("runtime_stopped", STOPPED));
    },
  };
}
