/** Owns: a time limit while this process stands still, as after Ctrl-Z or with a closed lid: its loop is stopped for real. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { CallClock } from "../../../../../workers/connection/mcp/client.ts";
import { startAwakeTimer } from "../../../../../workers/shared/pace/awake.ts";
import { onCleanup } from "../../../../support/cleanup.ts";

/** This thread does nothing, and reads nothing. */
const standStill = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

test("the process stands still beyond the limit of a call, and its answer comes meanwhile -> it is read, and the call has not expired", async () => {
  const server = spawn(process.execPath, [
    "-e",
    "console.log('up'); setTimeout(() => console.log('answer'), 200)",
  ]);
  onCleanup(() => void server.kill());
  await once(server.stdout, "data");
  const caller = new AbortController().signal;
  const clock = new CallClock({
    caller,
    limitMs: 500,
    capMs: 1_000,
    pauses: undefined,
    reason: () => "late",
  });
  standStill(3_000);
  const [answer] = (await once(server.stdout, "data")) as [Buffer];
  expect([String(answer), clock.signal.aborted]).toEqual(["answer\n", false]);
  clock.stop();
});

function fakeClock() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  return {
    run: (ms: number): void => {
      now += ms;
      vi.advanceTimersByTime(ms);
    },
    standStill: (ms: number): void => {
      now += ms;
    },
  };
}

test("time before and after a standstill counts, and that of the standstill does not", () => {
  const { run, standStill: sleep } = fakeClock();
  const onOver = vi.fn();
  const timer = startAwakeTimer(12_000, onOver);
  run(5_000);
  sleep(600_000);
  run(5_000);
  run(1_999);
  expect(onOver).not.toHaveBeenCalled();
  run(1);
  expect(onOver).toHaveBeenCalledOnce();
  expect(timer.stop()).toBe(12_000);
});

test("a standstill in the last step -> five seconds are left for what has come meanwhile, also if the time is stopped and goes on", () => {
  const { run, standStill: sleep } = fakeClock();
  const onOver = vi.fn();
  const timer = startAwakeTimer(2_000, onOver);
  sleep(600_000);
  run(2_000);
  run(1_000);
  expect(timer.stop()).toBe(2_000 - 4_000);
  expect(onOver).not.toHaveBeenCalled();
});

test("a machine that is so busy that each step is late -> the time ends all the same", () => {
  const { run, standStill: sleep } = fakeClock();
  const onOver = vi.fn();
  startAwakeTimer(12_000, onOver);
  for (let step = 0; step < 4; step++) {
    sleep(3_000);
    run(5_000);
  }
  expect(onOver).toHaveBeenCalledOnce();
});

test("a limit that this process lives through -> over after that time, in however many steps; stopped before -> never", async () => {
  const over = Promise.withResolvers<void>();
  const timer = startAwakeTimer(50, over.resolve);
  await over.promise;
  expect(timer.stop()).toBeGreaterThanOrEqual(49);
  let isOver = false;
  const stopped = startAwakeTimer(20, () => {
    isOver = true;
  });
  expect(stopped.stop()).toBeLessThan(1_000);
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(isOver).toBe(false);
});
