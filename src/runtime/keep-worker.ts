/**
 * Keeps one worker alive: starts it, notices that it has ended or hangs, and starts another one after a pause, a limited
 * number of times. Knows nothing about the content of messages.
 */

import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { afterCrash, type PastCrash } from "./after-crash.ts";
import type { Crash, KeepLimits } from "./contract.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { createNextWorker } from "./next-worker.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import { STOPPED } from "./stopped.ts";
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
