/** Owns: how many long messages come in at a time, which readers wait, and which reader loses its slot. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLongMessages, type LongReader } from "../../../../../workers/connection/messages/receive.ts";

const MEBIBYTE = 1024 * 1024;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function places(count: number) {
  const long = createLongMessages(count);
  const givenUp: string[] = [];
  return {
    givenUp,
    open: (name: string): LongReader => long.open((error) => givenUp.push(`${name}: ${error.message}`)),
  };
}

/** Whether the reader may go on at once, and by now. */
function watch(turn: Promise<void> | undefined): { waits: boolean; goesOn: () => boolean } {
  let goesOn = turn === undefined;
  void turn?.then(() => {
    goesOn = true;
  });
  return { waits: turn !== undefined, goesOn: () => goesOn };
}

describe("createLongMessages", () => {
  test("many short messages -> none waits", () => {
    const { open } = places(1);
    for (let i = 0; i < 100; i++) expect(open(`r${i}`).hold(MEBIBYTE - 1)).toBeUndefined();
  });

  test("more long messages than slots -> each waits until an earlier one is complete, in order", async () => {
    const { open } = places(2);
    const [a, b, c, d] = ["a", "b", "c", "d"].map(open);
    expect(watch(a?.hold(MEBIBYTE)).waits).toBe(false);
    expect(watch(b?.hold(MEBIBYTE)).waits).toBe(false);
    const third = watch(c?.hold(MEBIBYTE));
    const fourth = watch(d?.hold(2 * MEBIBYTE));
    expect([third.waits, fourth.waits]).toEqual([true, true]);
    expect(a?.hold(60 * MEBIBYTE)).toBeUndefined();
    b?.hold(0);
    await vi.advanceTimersByTimeAsync(0);
    expect([third.goesOn(), fourth.goesOn()]).toEqual([true, false]);
    a?.end();
    await vi.advanceTimersByTimeAsync(0);
    expect(fourth.goesOn()).toBe(true);
  });

  test("a reader that ends while it waits -> goes on at once and takes no slot", async () => {
    const { open } = places(1);
    const [a, b, c] = ["a", "b", "c"].map(open);
    a?.hold(MEBIBYTE);
    const second = watch(b?.hold(MEBIBYTE));
    const third = watch(c?.hold(MEBIBYTE));
    b?.end();
    await vi.advanceTimersByTimeAsync(0);
    expect([second.goesOn(), third.goesOn()]).toEqual([true, false]);
    a?.end();
    await vi.advanceTimersByTimeAsync(0);
    expect(third.goesOn()).toBe(true);
  });

  test("a message that makes no progress while another one waits -> given up after some seconds", async () => {
    const { open, givenUp } = places(1);
    const stuck = open("stuck");
    stuck.hold(3 * MEBIBYTE);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(givenUp).toEqual([]);
    const waiting = watch(open("waiting").hold(MEBIBYTE));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(givenUp).toEqual([
      "stuck: 3 MiB of a message and then hardly more, while long messages of other servers wait",
    ]);
    expect(waiting.goesOn()).toBe(true);
    expect(stuck.hold(5 * MEBIBYTE)).toBeUndefined();
  });

  test("a message that comes slowly but steadily -> keeps its slot", async () => {
    const { open, givenUp } = places(1);
    const steady = open("steady");
    steady.hold(MEBIBYTE);
    const waiting = watch(open("waiting").hold(MEBIBYTE));
    for (let second = 1; second <= 60; second++) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(steady.hold(MEBIBYTE + (second * MEBIBYTE) / 2)).toBeUndefined();
    }
    expect(givenUp).toEqual([]);
    expect(waiting.goesOn()).toBe(false);
    steady.hold(0);
    await vi.advanceTimersByTimeAsync(0);
    expect(waiting.goesOn()).toBe(true);
  });
});
