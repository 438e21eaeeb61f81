/** Owns: when a change of watched files is reported, by a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBursts } from "../../../../../../workers/connection/config/live/follow.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setup() {
  const told: string[] = [];
  const files = { stamp: "a" };
  const bursts = createBursts({
    stamps: async () => files.stamp,
    onFirst: () => told.push("first"),
    onSettled: () => told.push("settled"),
    settleMs: 100,
    lookMs: 5_000,
  });
  return { bursts, told, files, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

test("events before the first look -> nothing is reported", async () => {
  const { bursts, told, pass } = setup();
  bursts.saw();
  await pass(1_000);
  expect(told).toEqual([]);
  bursts.stop();
});

test("a burst of events -> its begin and its end are reported once each, after the last event", async () => {
  const { bursts, told, pass } = setup();
  await bursts.begin();
  for (let event = 0; event < 5; event++) {
    bursts.saw();
    await pass(99);
  }
  expect(told).toEqual(["first"]);
  await pass(1);
  expect(told).toEqual(["first", "settled"]);
  bursts.saw();
  await pass(100);
  expect(told).toEqual(["first", "settled", "first", "settled"]);
  bursts.stop();
});

test("a change that no event tells of -> the next look finds it, once", async () => {
  const { bursts, told, files, pass } = setup();
  await bursts.begin();
  await pass(5_000);
  expect(told).toEqual([]);
  files.stamp = "b";
  await pass(5_100);
  expect(told).toEqual(["first", "settled"]);
  await pass(20_000);
  expect(told).toEqual(["first", "settled"]);
  bursts.stop();
});

test("other files are watched -> the next look counts as a change, once: one of them may have changed before", async () => {
  const { bursts, told, files, pass } = setup();
  await bursts.begin();
  files.stamp = "of other files";
  bursts.forget();
  await pass(5_100);
  expect(told).toEqual(["first", "settled"]);
  await pass(20_000);
  expect(told).toEqual(["first", "settled"]);
  files.stamp = "changed";
  await pass(5_100);
  expect(told).toEqual(["first", "settled", "first", "settled"]);
  bursts.stop();
});

test("it is stopped within a burst -> nothing is reported any more, and no clock runs", async () => {
  const { bursts, told, files, pass } = setup();
  await bursts.begin();
  bursts.saw();
  bursts.stop();
  files.stamp = "b";
  await pass(20_000);
  expect(told).toEqual(["first"]);
  expect(vi.getTimerCount()).toBe(0);
});
