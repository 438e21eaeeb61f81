/**
 * Owns: requests to a worker thread. Each request settles in every case, and no request keeps a process alive for
 * ever.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it, test } from "vitest";
import { createRpc, type Rpc } from "../../src/runtime/keep-worker.ts";
import { type RuntimeThread, startThread } from "../../src/runtime/thread.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { fixtures } from "./support.ts";

/** This deadline ends hangs only; no test waits for it. */
const deadlineMs = 60_000;

interface Started {
  rpc: Rpc;
  thread: RuntimeThread;
  nextEvent: () => Promise<WorkerEvent>;
}

const threads: RuntimeThread[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) {
    await thread.terminate();
    await thread.exited;
  }
});

function start(worker: string, events: WorkerEvent[] = []): Started {
  const waiting: ((event: WorkerEvent) => void)[] = [];
  const thread = startThread({
    logFile: "",
    url: new URL(`file://${join(fixtures, "workers", worker)}`),
    onEvent: (event) => {
      const next = waiting.shift();
      if (next) next(event);
      else events.push(event);
    },
  });
  threads.push(thread);
  const nextEvent = (): Promise<WorkerEvent> => {
    const event = events.shift();
    return event ? Promise.resolve(event) : new Promise((resolve) => waiting.push(resolve));
  };
  return { rpc: createRpc(thread), thread, nextEvent };
}

const failure = async (request: Promise<unknown>): Promise<ThreadsError> => {
  try {
    await request;
  } catch (error) {
    if (error instanceof ThreadsError) return error;
    throw error;
  }
  throw new Error("the request was answered");
};

describe("rpc.request", () => {
  test("a worker that answers -> the value, no open request is left", async () => {
    const { rpc } = start("answers.mjs");
    expect(await rpc.request("status", {}, { deadlineMs })).toBe(1);
    expect(rpc.open).toBe(0);
  });

  test("a hundred requests at once -> each gets its own answer", async () => {
    const { rpc } = start("answers.mjs");
    const requests = Array.from({ length: 100 }, () => rpc.request("status", {}, { deadlineMs }));
    expect(rpc.open).toBe(100);
    expect(await Promise.all(requests)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(rpc.open).toBe(0);
  });

  test("an error answer -> ThreadsError with code, message, remedy and data", async () => {
    const { rpc } = start("rejects.mjs");
    expect(await failure(rpc.request("status", {}, { deadlineMs }))).toMatchObject({
      code: "unknown_tool",
      message: "No such tool.",
      remedy: "Search.",
      data: { known: ["a", "b"] },
    });
  });

  test("an exception in the worker -> internal", async () => {
    const { rpc } = start("rejects.mjs");
    const error = await failure(rpc.request("log", { level: "info", message: "" }, { deadlineMs }));
    expect(error).toMatchObject({ code: "internal", message: "thrown across" });
  });

  test("parameters that cannot be cloned -> internal, later requests work", async () => {
    const { rpc } = start("answers.mjs");
    const params = { bad: () => undefined } as unknown as Record<string, never>;
    expect(await failure(rpc.request("status", params, { deadlineMs }))).toMatchObject({ code: "internal" });
    expect(await rpc.request("status", {}, { deadlineMs })).toBe(2);
    expect(rpc.open).toBe(0);
  });

  test("a worker that exits -> every open request rejects with runtime_restarted and the exit code", async () => {
    const { rpc } = start("exits-in-call.mjs");
    const requests = [1, 2, 3].map(() => failure(rpc.request("status", {}, { deadlineMs })));
    for (const error of await Promise.all(requests)) {
      expect(error).toMatchObject({ code: "runtime_restarted", data: { exitCode: 9 } });
      expect(error.remedy).toMatch(/./);
    }
    expect(rpc.open).toBe(0);
  });

  test("a request after the exit -> fails at once with runtime_restarted", async () => {
    const { rpc, thread } = start("exits-in-call.mjs");
    await failure(rpc.request("status", {}, { deadlineMs }));
    expect(await thread.exited).toMatchObject({ exitCode: 9, reason: undefined });
    expect(await failure(rpc.request("status", {}, { deadlineMs }))).toMatchObject({
      code: "runtime_restarted",
    });
  });

  test("a worker that throws outside a request -> runtime_restarted with the reason", async () => {
    const { rpc, thread } = start("throws-in-timer.mjs");
    const error = await failure(rpc.request("status", {}, { deadlineMs }));
    expect(error).toMatchObject({ code: "runtime_restarted", data: { exitCode: 1 } });
    expect(error.message).toContain("bug in a callback");
    expect(await thread.exited).toEqual({ exitCode: 1, reason: "bug in a callback" });
  });

  it.each([
    ["throws at its start", "throws-at-start.mjs", /cannot start/],
    ["does not exist", "no-such-file.mjs", /no-such-file/],
  ])("a worker that %s -> runtime_restarted with the reason", async (_name, worker, reason) => {
    const { rpc, thread } = start(worker);
    const error = await failure(rpc.request("status", {}, { deadlineMs }));
    expect(error.code).toBe("runtime_restarted");
    expect(error.message).toMatch(reason);
    expect((await thread.exited).reason).toMatch(reason);
  });

  test("a thread that is terminated -> runtime_restarted", async () => {
    const { rpc, thread } = start("never-answers.mjs");
    const request = failure(rpc.request("status", {}, { deadlineMs }));
    await thread.terminate();
    expect(await request).toMatchObject({ code: "runtime_restarted" });
  });

  test("a worker that never answers -> deadline with its length, and the worker gets a cancel", async () => {
    const { rpc, nextEvent } = start("never-answers.mjs");
    const error = await failure(rpc.request("status", {}, { deadlineMs: 20 }));
    expect(error).toMatchObject({ code: "deadline", data: { deadlineMs: 20 } });
    expect(error.message).toContain("status");
    expect(await nextEvent()).toEqual({ type: "progress", callId: "1", message: "cancel" });
    expect(rpc.open).toBe(0);
  });

  test("a signal is aborted -> cancelled, and the worker gets a cancel for this request only", async () => {
    const { rpc, nextEvent } = start("never-answers.mjs");
    const controller = new AbortController();
    const other = failure(rpc.request("status", {}, { deadlineMs }));
    const request = failure(rpc.request("status", {}, { deadlineMs, signal: controller.signal }));
    controller.abort();
    expect(await request).toMatchObject({ code: "cancelled" });
    expect(await nextEvent()).toEqual({ type: "progress", callId: "2", message: "cancel" });
    expect(rpc.open).toBe(1);
    await threads[0]?.terminate();
    expect(await other).toMatchObject({ code: "runtime_restarted" });
  });

  test("a signal was aborted before the request -> cancelled, nothing is sent", async () => {
    const { rpc } = start("answers.mjs");
    const error = await failure(rpc.request("status", {}, { deadlineMs, signal: AbortSignal.abort() }));
    expect(error.code).toBe("cancelled");
    expect(await rpc.request("status", {}, { deadlineMs })).toBe(1);
  });

  test("an abort after the answer -> nothing happens", async () => {
    const { rpc } = start("answers.mjs");
    const controller = new AbortController();
    expect(await rpc.request("status", {}, { deadlineMs, signal: controller.signal })).toBe(1);
    controller.abort();
    expect(await rpc.request("status", {}, { deadlineMs })).toBe(2);
  });

  test("an answer after the deadline -> ignored, no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on("unhandledRejection", note);
    const { rpc, nextEvent } = start("answers-late.mjs");
    expect(await failure(rpc.request("status", {}, { deadlineMs: 20 }))).toMatchObject({ code: "deadline" });
    expect(await nextEvent()).toMatchObject({ message: "answered" });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});

describe("startThread", () => {
  test("a worker sends 1,000 events and ends -> all events arrive before its end is reported", async () => {
    const events: WorkerEvent[] = [];
    const { rpc, thread } = start("says-and-ends.mjs", events);
    await rpc.request("ping", {}, { deadlineMs });
    const failed = failure(rpc.request("status", {}, { deadlineMs }));
    // Main is blocked meanwhile, so that all messages and the end of the thread are waiting at the same time.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    await failed;
    await thread.exited;
    expect(events).toHaveLength(1_000);
  });

  test("a thread is terminated 30 times -> no listener is left behind", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const { thread } = start("silent.mjs");
    await Promise.all(Array.from({ length: 30 }, () => thread.terminate()));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("startThread in a separate process", () => {
  const run = (script: string, worker: string): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(process.execPath, [join(fixtures, script), worker], { timeout: 20_000 });

  test("a thread without a request -> the process ends", async () => {
    expect(await run("thread-idle.mjs", "never-answers.mjs")).toEqual({ stdout: "started\n", stderr: "" });
  });

  test("an open request -> the process waits for the answer, then ends", async () => {
    expect(await run("thread-asks.mjs", "answers.mjs")).toEqual({ stdout: "answer 1\n", stderr: "" });
  });

  test("a worker that prints to every output -> nothing reaches the terminal", async () => {
    expect(await run("thread-asks.mjs", "prints.mjs")).toEqual({ stdout: "answer 1\n", stderr: "" });
  });

  test("a worker that throws at its start, without a request -> the process ends without an error", async () => {
    expect(await run("thread-idle.mjs", "throws-at-start.mjs")).toEqual({ stdout: "started\n", stderr: "" });
  });
});
