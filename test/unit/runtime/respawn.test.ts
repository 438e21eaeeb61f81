/** Owns: when a worker is started again, how soon, and when no more; over threads in memory. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ThreadsError } from "../../../src/protocol/errors.ts";
import { type Crash, keepWorker } from "../../../src/runtime/respawn.ts";
import type { RuntimeThread } from "../../../src/runtime/thread.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface FakeThread {
  thread: RuntimeThread;
  crash: (reason: string) => void;
}

function createFakeThread(): FakeThread {
  const { promise, resolve } = Promise.withResolvers<{ exitCode: number; reason: string | undefined }>();
  const answer = async () => ({ ok: true, value: undefined });
  return {
    crash: (reason) => resolve({ exitCode: 1, reason }),
    thread: {
      api: { cancel: answer, ping: answer, status: answer } as unknown as RuntimeThread["api"],
      exited: promise,
      hold: () => undefined,
      release: () => undefined,
      terminate: async () => resolve({ exitCode: 1, reason: undefined }),
    },
  };
}

/** `startable`: which starts, from 0, do not throw. */
function keep(startable: (start: number) => boolean = () => true) {
  const startedAt = performance.now();
  const starts: number[] = [];
  const threads: FakeThread[] = [];
  const crashes: Crash[] = [];
  let gone = 0;
  const worker = keepWorker({
    start: async () => {
      starts.push(Math.round(performance.now() - startedAt));
      if (!startable(starts.length - 1)) throw new Error("no temp folder");
      const made = createFakeThread();
      threads.push(made);
      return made.thread;
    },
    onStart: () => undefined,
    onGone: () => gone++,
    onCrash: (crash) => crashes.push(crash),
  });
  return {
    worker,
    starts,
    crashes,
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

describe("keepWorker", () => {
  test("crashes -> started again after 0.1, 1 and 5 s; what is left is cleaned up each time", async () => {
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

  test("the sixth crash within a minute -> given up, said once; requests fail with a remedy", async () => {
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

  test("crashes more than a minute apart -> never given up, each time soon again", async () => {
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

  test("asked between a crash and the next start -> waits for it", async () => {
    const { worker, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    const waiting = codeOf(worker.ready(undefined));
    await vi.advanceTimersByTimeAsync(100);
    expect(await waiting).toBe("ready");
    await worker.stop(async () => undefined);
  });

  test("asked before a start that fails -> gets the worker of the next start", async () => {
    const { worker, starts } = keep((start) => start > 0);
    let settled: string | undefined;
    void codeOf(worker.ready(undefined)).then((code) => {
      settled = code;
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(starts).toHaveLength(2);
    expect(settled).toBe("ready");
    await worker.stop(async () => undefined);
  });

  test("asked before starts that all fail -> told so in the end", async () => {
    const { worker } = keep(() => false);
    let settled: string | undefined;
    void codeOf(worker.ready(undefined)).then((code) => {
      settled = code;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(settled).toBe("runtime_stopped");
  });

  test("cancelled while it waits -> cancelled", async () => {
    const { worker, crash } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await crash();
    const controller = new AbortController();
    const waiting = codeOf(worker.ready(controller.signal));
    controller.abort();
    expect(await waiting).toBe("cancelled");
    await worker.stop(async () => undefined);
  });

  test("a signal that was aborted before -> cancelled, not left waiting", async () => {
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

  test("stopped during the pause after a crash -> no other start, waiting requests are told", async () => {
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

  test("stopped -> its own end is no crash", async () => {
    const { worker, crashes, gone } = keep();
    await vi.advanceTimersByTimeAsync(0);
    await worker.stop(async () => undefined);
    await vi.advanceTimersByTimeAsync(0);
    expect(crashes).toEqual([]);
    expect(gone()).toBe(1);
  });

  test("stopped while the first start is under way -> what came up is ended", async () => {
    const { worker, starts } = keep();
    await worker.stop(async () => undefined);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(starts).toHaveLength(1);
    expect(await codeOf(worker.ready(undefined))).toBe("runtime_stopped");
  });
});
