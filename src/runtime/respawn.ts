/**
 * Keeps one worker alive: starts it, finds its end or its hanging, and starts another after a pause, but
 * not for ever. Knows nothing of what is said to it.
 */
import { ThreadsError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import type { RuntimeThread } from "./thread.ts";

export interface KeptWorker {
  /** The worker that runs, or the next one while it is being started. Rejects with `runtime_stopped`. */
  ready(signal: AbortSignal | undefined): Promise<Rpc>;
  /** Ends it for good; requests that are open fail. */
  stop(farewell: (rpc: Rpc) => Promise<void>): Promise<void>;
}

export interface Crash {
  /** For people: why the worker ended. */
  reason: string;
  /** No other worker is started: it crashed too often. */
  givenUp: boolean;
}

const MINUTE_MS = 60_000;

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when it fails.
  next.promise.catch(() => undefined);
  return next;
}

export function keepWorker(options: {
  start: () => Promise<RuntimeThread>;
  /** A worker runs: say what it must know. */
  onStart: (rpc: Rpc) => void;
  /** A worker is gone, asked or not: clean up behind it. */
  onGone: () => void;
  onCrash: (crash: Crash) => void;
}): KeptWorker {
  const crashes: number[] = [];
  let current: { thread: RuntimeThread; rpc: Rpc; heartbeat: Heartbeat } | undefined;
  let next = createNext();
  /** Whether `next` has been resolved. */
  let kept = false;
  let timer: NodeJS.Timeout | undefined;
  let stopping = false;

  const giveUp = (message: string): void => {
    next.reject(
      new ThreadsError("runtime_stopped", message, { remedy: "/reload starts the MCP servers again." }),
    );
  };

  const onExit = (reason: string): void => {
    current?.heartbeat.stop();
    current = undefined;
    options.onGone();
    if (stopping) return;
    // Whoever waits already goes on waiting for the next one; a promise that was kept is replaced.
    if (kept) next = createNext();
    kept = false;
    const now = performance.now();
    crashes.push(now);
    const recent = crashes.filter((at) => now - at < MINUTE_MS).length;
    const givenUp = recent > LIMITS.respawnsAMinute;
    options.onCrash({ reason, givenUp });
    if (givenUp) {
      giveUp(`The connection worker crashed ${recent} times within a minute (${reason}).`);
      return;
    }
    const delays = LIMITS.respawnMs;
    timer = setTimeout(() => void run(), delays[Math.min(recent, delays.length) - 1]);
  };

  const run = async (): Promise<void> => {
    try {
      const thread = await options.start();
      if (stopping) return void (await thread.terminate());
      const rpc = createRpc(thread);
      let hung = false;
      const heartbeat = startHeartbeat({
        timeoutMs: LIMITS.heartbeatMs,
        ask: () => rpc.request("ping", {}, { deadlineMs: MINUTE_MS, background: true }),
        onHang: () => {
          hung = true;
          void thread.terminate();
        },
      });
      current = { thread, rpc, heartbeat };
      void thread.exited.then(({ exitCode, reason }) =>
        onExit(hung ? "it did not answer for 5 s" : (reason ?? `exit code ${exitCode}`)),
      );
      options.onStart(rpc);
      kept = true;
      next.resolve(rpc);
    } catch (error) {
      onExit(error instanceof Error ? error.message : String(error));
    }
  };

  void run();
  return {
    ready: (signal) => {
      if (stopping)
        return Promise.reject(
          new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped."),
        );
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
      giveUp("The MCP servers of this session are stopped.");
      if (!current) return;
      const { thread, rpc } = current;
      await farewell(rpc);
      await thread.terminate();
      await thread.exited;
    },
  };
}
