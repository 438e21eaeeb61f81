/** Owns: when a worker is started again, how soon, and when no longer. The threads are fakes in memory. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Crash } from "../../../src/runtime/contract.ts";
import {
  afterCrash,
  type KeepOptions,
  keepWorker,
  type PastCrash,
} from "../../../src/runtime/keep-worker.ts";
import type { RuntimeThread, ThreadEnd } from "../../../src/runtime/thread.ts";
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface FakeThread {
  thread: RuntimeThread;
  crash: (reason: string) => void;
  /** How often `terminate` was called. */
  terminations: () => number;
}

/** `isStuck`: the thread is in native code, which cannot be interrupted. */
function createFakeThread(isStuck: boolean): FakeThread {
  const { promise, resolve } = Promise.withResolvers<ThreadEnd>();
  const answer = () => (isStuck ? new Promise(() => undefined) : Promise.resolve({ ok: true }));
  let terminations = 0;
  return {
    crash: (reason) => resolve({ exitCode: 1, reason }),
    terminations: () => terminations,
    thread: {
      api: { cancel: answer, request: answer } as unknown as RuntimeThread["api"],
      exited: promise,
      hold: () => undefined,
      release: () => undefined,
      dismiss: () => undefined,
      terminate: async () => {
        terminations++;
        if (!isStuck) resolve({ exitCode: 1, reason: undefined });
        await promise;
      },
    },
  };
}

interface Keep extends Partial<KeepOptions> {
  /** Whether the start with this number, from 0, succeeds. */
  startable?: (start: number) => boolean;
  isStuck?: boolean;
}

function keep({ startable = () => true, isStuck = false, ...more }: Keep = {}) {
  const startedAt = performance.now();
  const starts: number[] = [];
  const threads: FakeThread[] = [];
  const crashes: Crash[] = [];
  let gone = 0;
  const worker = keepWorker({
    start: async () => {
      starts.push(Math.round(performance.now() - startedAt));
      if (!startable(starts.length - 1)) throw new Error("no temp folder");
      const made = createFakeThread(isStuck);
      threads.push(made);
      return made.thread;
    },
    onStart: () => undefined,
    onGone: () => gone++,
    onCrash: (crash) => crashes.push(crash),
    ...more,
  });
  return {
    worker,
    starts,
    crashes,
    threads,
    gone: () => gone,
    crash: async (reason = "boom") => {
      threads.at(-1)?.crash(reason);
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

const codeOf = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => "ready",
    (error: ThreadsError) => error.code,
  );

describe("afterCrash", () => {
  const NOW = 1_000_000;
  /** Crashes that many milliseconds ago; a server is to blame for the negative ones. */
  const crashes = (...ago: number[]): PastCrash[] =>
    ago.map((ms) => ({ at: NOW - Math.abs(ms), isCounted: !(ms < 0) }));
  const restart = (delayMs: number) => ({ action: "restart", delayMs });

  test.each<[string, PastCrash[], object]>([
    ["the first", crashes(0), restart(100)],
    ["the second within a minute", crashes(59_999, 0), restart(1_000)],
    ["the third", crashes(2_000, 1_000, 0), restart(5_000)],
    ["the fifth", crashes(4, 3, 2, 1, 0), restart(5_000)],
    ["the sixth", crashes(5, 4, 3, 2, 1, 0), { action: "give-up", count: 6 }],
    ["the sixth, a minute after the first", crashes(60_000, 4, 3, 2, 1, 0), restart(5_000)],
    ["the first after a minute", crashes(60_000, 0), restart(100)],
    ["the sixth, of which a server caused one", crashes(5, -4, 3, 2, 1, 0), restart(5_000)],
    ["eight that servers caused", crashes(-8, -7, -6, -5, -4, -3, -2, -1), restart(5_000)],
    [
      "the seventh, of which a server caused one",
      crashes(6, -5, 4, 3, 2, 1, 0),
      { action: "give-up", count: 6 },
    ],
  ])("%s -> %o", (_name, past, expected) => {
    expect(afterCrash(past, NOW)).toMatchObject(expected);
  });

  test("only the crashes of the last minute are remembered", () => {
    expect(afterCrash(crashes(90_000, 60_000, 59_999, 0), NOW).recent).toEqual(crashes(59_999, 0));
  });

  test("another policy -> its delays and its count", () => {
    const policy = { respawnMs: [7], respawnsAMinute: 1 };
    expect(afterCrash(crashes(0), NOW, policy)).toMatchObject(restart(7));
    expect(afterCrash(crashes(1, 0), NOW, policy)).toMatchObject({ action: "give-up", count: 2 });
  });
});

describe("keepWorker", () => {
  test("crashes -> started again after 0.1, 1 and 5 s, with a clean-up each time", async () => {
    const { worker, starts, crash, crashes, gone } = keep();
    for (const delay of [100, 1_000, 5_000, 5_000]) {
      await vi.advanceTimersByTimeAsync(0);
      await crash();
      await vi.advanceTimersByTimeAsync(delay);
    }
    expect(starts).toEqual([0, 100, 1_100, 6_100, 11_100]);
    expect(gone()).toBe(4);
    expect(crashes).toEqual(Array.from({ length: 4 }, () => ({ reason: "boom", givenUp: false })));
    await worker.stop(async () => undefined);
  });

  test("the sixth crash within a minute -> given up, reported once; requests fail with a remedy", async () => {
    const { worker, starts, crash, crashes } = keep();
    for (let i = 0; i < 6; i++) {
      await vi.advanceTimersByTimeAsync(5_000);
      await crash();
    }
    await vi.advanceTimersByTimeAsync(600_000);
    expect(starts).toHaveLength(6);
    expect(crashes.map(({ givenUp }) => givenUp)).toEqual([false, false, false, false, false, true]);
    const error = await worker.ready(undefined).catch((failure: ThreadsError) => failure);
    expect(error).toMatchObject({ code: "runtime_stopped", remedy: expect.stringContaining("/reload") });
    expect((error as ThreadsError).message).toContain("boom");
  });

  test("crashes more than a minute apart -> never given up, started again soon each time", async () => {
    const { worker, starts, crash, crashes } = keep();
    for (let i = 0; i < 10; i++) {
      await vi.advanceTimersByTimeAsync(61_000);
      await crash();
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(starts).toHaveLength(11);
    expect(crashes.some(({ givenUp }) => givenUp)).toBe(false);
    await worker.stop(async () => undefined);
  });

  test("asked between a crash and the next start -> waits for that start", async () => {
    const { worker, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    const waiting = codeOf(worker.ready(undefined));
    await vi.advanceTimersByTimeAsync(100);
    expect(await waiting).toBe("ready");
    await worker.stop(async () => undefined);
  });

  test("asked before a start that fails -> answered with the worker of the next start", async () => {
    const { worker, starts } = keep({ startable: (start) => start > 0 });
    let settled: string | undefined;
    void codeOf(worker.ready(undefined)).then((code) => {
      settled = code;
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(starts).toHaveLength(2);
    expect(settled).toBe("ready");
    await worker.stop(async () => undefined);
  });

  test("asked before starts that all fail -> rejected in the end", async () => {
    const { worker } = keep({ startable: () => false });
    let settled: string | undefined;
    void codeOf(worker.ready(undefined)).then((code) => {
      settled = code;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(settled).toBe("runtime_stopped");
  });

  test("cancelled during the wait -> rejected with `cancelled`", async () => {
    const { worker, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    const controller = new AbortController();
    const waiting = codeOf(worker.ready(controller.signal));
    controller.abort();
    expect(await waiting).toBe("cancelled");
    await worker.stop(async () => undefined);
  });

  test("a signal that was aborted before -> rejected at once with `cancelled`", async () => {
    const { worker, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    let settled: string | undefined;
    void codeOf(worker.ready(AbortSignal.abort())).then((code) => {
      settled = code;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(settled).toBe("cancelled");
    await worker.stop(async () => undefined);
  });

  test("stopped during the pause after a crash -> no other start, and waiting requests are rejected", async () => {
    const { worker, starts, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    const waiting = codeOf(worker.ready(undefined));
    await worker.stop(async () => undefined);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(starts).toHaveLength(1);
    expect(await waiting).toBe("runtime_stopped");
    expect(await codeOf(worker.ready(undefined))).toBe("runtime_stopped");
  });

  test("stopped -> the worker's end does not count as a crash", async () => {
    const { worker, crashes, gone } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await worker.stop(async () => undefined);
    await vi.advanceTimersByTimeAsync(0);
    expect(crashes).toEqual([]);
    expect(gone()).toBe(1);
  });

  test("stopped during the first start -> the new thread is ended", async () => {
    const { worker, starts } = keep();
    await worker.stop(async () => undefined);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(starts).toHaveLength(1);
    expect(await codeOf(worker.ready(undefined))).toBe("runtime_stopped");
  });

  test("a worker that hangs and cannot be ended -> ended once, and no other worker is started beside it", async () => {
    const { worker, starts, threads, crashes, crash } = keep({ isStuck: true });
    await vi.advanceTimersByTimeAsync(120_000);
    expect(threads.map(({ terminations }) => terminations())).toEqual([1]);
    expect([starts.length, crashes]).toEqual([1, []]);
    await crash("");
    expect(crashes).toEqual([{ reason: "it did not answer for 5 s", givenUp: false }]);
    await worker.stop(async () => undefined);
  });

  test("stopped while the thread cannot be ended -> settles within a moment, and open requests fail", async () => {
    const { worker } = keep({ isStuck: true });
    await vi.advanceTimersByTimeAsync(0);
    const rpc = await worker.ready(undefined);
    const open = codeOf(rpc.request("status", {}, { deadlineMs: 3_600_000 }));
    let isStopped = false;
    void worker
      .stop(() => Promise.reject(new Error("no answer")))
      .then(() => {
        isStopped = true;
      });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isStopped).toBe(true);
    expect(await open).toBe("runtime_stopped");
    expect(await codeOf(rpc.request("status", {}, { deadlineMs: 3_600_000 }))).toBe("runtime_stopped");
  });

  test("a worker that cannot be told the facts -> ended before the next one starts; one crash each", async () => {
    let failing = 1;
    const { worker, starts, threads, crashes } = keep({
      onStart: () => {
        if (failing-- > 0) throw new Error("the session is stale");
      },
    });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(threads.map(({ terminations }) => terminations())).toEqual([1, 0]);
    expect(starts).toEqual([0, 100]);
    expect(crashes).toEqual([{ reason: "the session is stale", givenUp: false }]);
    expect(await codeOf(worker.ready(undefined))).toBe("ready");
    await worker.stop(async () => undefined);
  });

  test("the clean-up fails -> the next worker is started all the same", async () => {
    const { worker, starts, crash } = keep({
      onGone: () => {
        throw new Error("EINVAL");
      },
    });
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    await vi.advanceTimersByTimeAsync(100);
    expect(starts).toEqual([0, 100]);
    await worker.stop(async () => undefined);
  });

  test("ends that a server has caused -> never given up, and the server is named; the pauses grow all the same", async () => {
    const { worker, starts, crash, crashes } = keep({
      blame: ({ reason }) => (reason === "boom" ? ["bad"] : []),
    });
    for (let i = 0; i < 8; i++) {
      await vi.advanceTimersByTimeAsync(5_000);
      await crash();
    }
    expect(crashes).toEqual(
      Array.from({ length: 8 }, () => ({ reason: "boom", givenUp: false, heldBack: ["bad"] })),
    );
    expect(starts).toHaveLength(8);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(starts).toHaveLength(8);
    await vi.advanceTimersByTimeAsync(1);
    await crash("another reason");
    expect(crashes.at(-1)).toEqual({ reason: "another reason", givenUp: false });
    await worker.stop(async () => undefined);
  });
});
