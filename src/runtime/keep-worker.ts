/**
 * Keeps one worker alive: starts it, notices that it has ended or hangs, and starts another one after a pause, a limited
 * number of times. Owns the requests to it, too: each settles here, by reply, deadline, abort or the worker's exit,
 * whichever comes first, and every rejection is a `ThreadsError`. Knows nothing about the content of messages.
 */

import type { ConnectionApi, ConnectionMethod, ConnectionMethods } from "../shared/protocol/contract.ts";
import { fromWireError, messageOf, type Reply, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { type Crash, type CrashPolicy, type KeepLimits, STOPPED } from "./contract.ts";
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

/** By name: the build puts the numbers there, and main loads no table of limits. */
const PATIENCE: CrashPolicy = {
  respawnMs: LIMITS.respawnMs,
  respawnsAMinute: LIMITS.respawnsAMinute,
};

/** `crashes`: all that are remembered, the newest last. */
export function afterCrash(
  crashes: readonly PastCrash[],
  now: number,
  { respawnMs, respawnsAMinute }: CrashPolicy = PATIENCE,
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

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when the promise rejects.
  next.promise.catch(() => undefined);
  return next;
}

function createNextWorker() {
  let next = createNext();
  let isResolved = false;
  return {
    /** A worker runs. */
    resolve: (rpc: Rpc): void => {
      isResolved = true;
      next.resolve(rpc);
    },
    /** No worker will run any more. */
    reject: (error: ThreadsError): void => next.reject(error),
    /** The worker has ended. Callers that wait already keep waiting for the worker that follows. */
    renew: (): void => {
      if (isResolved) next = createNext();
      isResolved = false;
    },
    /** Rejects with `cancelled` when the signal aborts. */
    wait: (signal: AbortSignal | undefined) =>
      new Promise<Rpc>((resolve, reject) => {
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

class Keeper {
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

  /** The running worker, or the next one while it is being started. Rejects with `runtime_stopped` or `cancelled`. */
  ready(signal: AbortSignal | undefined): Promise<Rpc> {
    if (this.#isStopping) return Promise.reject(new ThreadsError("runtime_stopped", STOPPED));
    return this.#current ? Promise.resolve(this.#current.rpc) : this.#next.wait(signal);
  }

  /**
   * Ends the worker for good, and open requests fail. Settles soon after the farewell, even if the thread does not end: a
   * thread in native code cannot be interrupted. Does not reject.
   */
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
    const policy = { ...PATIENCE, ...this.#options.limits };
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

export const keepWorker = (options: KeepOptions) => new Keeper(options);

export interface RequestOptions {
  /** Milliseconds until the request fails with `deadline`. */
  deadlineMs: number;
  signal?: AbortSignal | undefined;
  /** The request does not keep the process alive. */
  background?: boolean;
}

export interface Rpc {
  request<M extends ConnectionMethod>(
    method: M,
    params: ConnectionMethods[M]["params"],
    options: RequestOptions,
  ): Promise<ConnectionMethods[M]["value"]>;
  /** Number of requests that have not settled. */
  readonly open: number;
  /** Fails every open and every later request: the worker does not answer any more. */
  end(error: ThreadsError): void;
}

export function createRpc(thread: RuntimeThread): Rpc {
  let lastId = 0;
  const open = new Map<number, (error: ThreadsError) => void>();
  let gone: ThreadsError | undefined;

  const end = (error: ThreadsError): void => {
    gone ??= error;
    for (const fail of open.values()) fail(gone);
  };
  void thread.exited.then(({ exitCode, reason }) => {
    const error = new ThreadsError(
      "runtime_restarted",
      `The connection worker ended with code ${exitCode}${reason === undefined ? "" : `: ${reason}`}.`,
      {
        remedy: "A new one is started. The call may have run: repeat it only if that does no harm.",
        data: { exitCode },
      },
    );
    end(error);
  });

  // comlink makes a proxy, which the collector must finalize, each time that a method is named.
  const send = thread.api.request as unknown as ConnectionApi["request"];

  const request = async (
    method: ConnectionMethod,
    params: unknown,
    options: RequestOptions,
  ): Promise<unknown> => {
    if (gone) throw gone;
    if (options.signal?.aborted) throw cancelled(method);
    const id = ++lastId;
    const { signal } = options;
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    if (!options.background) thread.hold();
    try {
      const reply = await new Promise<Reply<unknown>>((resolve, reject) => {
        // The worker is told once. A worker that has ended or hangs need not confirm.
        const abandon = (error: ThreadsError): void => {
          thread.api.cancel(id).catch(() => undefined);
          reject(error);
        };
        open.set(id, reject);
        timer = setTimeout(() => abandon(late(method, options.deadlineMs)), options.deadlineMs);
        onAbort = () => abandon(cancelled(method));
        signal?.addEventListener("abort", onAbort);
        // comlink rejects only if the arguments cannot be cloned; the worker answers every failure as a reply.
        send(id, method, params).then(resolve, (error) =>
          reject(new ThreadsError("internal", messageOf(error))),
        );
      });
      if (reply.ok) return reply.value;
      throw fromWireError(reply.error);
    } finally {
      clearTimeout(timer);
      if (onAbort) signal?.removeEventListener("abort", onAbort);
      open.delete(id);
      if (!options.background) thread.release();
    }
  };

  return {
    request: request as Rpc["request"],
    get open() {
      return open.size;
    },
    end,
  };
}

const cancelled = (method: string): ThreadsError => new ThreadsError("cancelled", `${method} was cancelled.`);

const late = (method: string, deadlineMs: number): ThreadsError =>
  new ThreadsError(
    "deadline",
    `The connection worker did not answer ${method} within ${Math.round(deadlineMs / 1_000)} s.`,
    {
      remedy: "If this keeps happening, /reload starts it again; mcp-threads.log may say why.",
      data: { deadlineMs },
    },
  );
