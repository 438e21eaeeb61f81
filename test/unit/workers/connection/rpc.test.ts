/** Owns: which requests the worker answers itself, that each other one goes to the open session, and when it collects garbage. */
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { collectGarbage, createAnswer, createCollector } from "../../../../workers/connection/rpc.ts";
import { recordingLog } from "../recording-log.ts";
import { never } from "./session/support.ts";

describe("createAnswer", () => {
  const open = () => {
    const { log, lines } = recordingLog();
    return {
      lines,
      answer: createAnswer({
        askUser: async () => undefined,
        emit: () => undefined,
        log,
        talkers: { of: () => () => undefined },
      }),
    };
  };

  test.each(["status", "callTool", "firstRequest"] as const)(
    "%s without a session -> runtime_stopped",
    async (method) => {
      const { answer } = open();
      await expect(answer(method, {} as never, never())).rejects.toMatchObject({ code: "runtime_stopped" });
    },
  );

  test("ping, log and shutdown without a session -> answered", async () => {
    const { answer, lines } = open();
    expect(await answer("ping", {}, never())).toBeUndefined();
    await answer("log", { level: "warn", message: "from main" }, never());
    await answer("shutdown", {}, never());
    expect(lines).toEqual(["warn from main", "info stopped"]);
  });
});

const MIB = 1024 * 1024;

describe("createCollector", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function started() {
    const state = { read: 0, collections: 0 };
    const collector = createCollector(
      () => state.read,
      () => state.collections++,
    );
    /** A request during which so many bytes are read. */
    const request = (bytes: number): void => {
      collector.busy();
      state.read += bytes;
      collector.idle();
    };
    return { state, collector, request };
  }

  test("tens of megabytes, then a second without a request -> one collection", () => {
    const { state, request } = started();
    for (let i = 0; i < 4; i++) request(5 * MIB);
    vi.advanceTimersByTime(900);
    expect(state.collections).toBe(0);
    vi.advanceTimersByTime(100);
    expect(state.collections).toBe(1);
    vi.advanceTimersByTime(60_000);
    request(5 * MIB);
    vi.advanceTimersByTime(60_000);
    expect(state.collections).toBe(1);
  });

  test("requests one after the other -> none in between", () => {
    const { state, request } = started();
    request(60 * MIB);
    for (let i = 0; i < 10; i++) {
      vi.advanceTimersByTime(900);
      request(1_000);
    }
    expect(state.collections).toBe(0);
    vi.advanceTimersByTime(1_000);
    expect(state.collections).toBe(1);
  });

  test("a request that takes long -> none while it is open", () => {
    const { state, collector, request } = started();
    request(60 * MIB);
    collector.busy();
    vi.advanceTimersByTime(60_000);
    expect(state.collections).toBe(0);
    collector.idle();
    vi.advanceTimersByTime(1_000);
    expect(state.collections).toBe(1);
  });

  test("bytes that came while no request was open -> counted at the next request, for example a ping", () => {
    const { state, request } = started();
    state.read = 20 * MIB;
    vi.advanceTimersByTime(60_000);
    expect(state.collections).toBe(0);
    request(0);
    vi.advanceTimersByTime(1_000);
    expect(state.collections).toBe(1);
  });
});

test("collectGarbage -> what nobody holds is gone, and no context that is made later has `gc`", async () => {
  const gone = new WeakRef({});
  // An object that a WeakRef has shown lives until the end of the job.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(gone.deref()).toBeUndefined();
  expect(runInNewContext("typeof gc")).toBe("undefined");
});
