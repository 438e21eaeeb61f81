/** Owns: who is read when, and for how long, on a clock that only the work and the pauses move. */
import { PassThrough, Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createReader,
  type Reader,
  readInTurn,
  SLICE_MS,
  Turns,
} from "../../../../../workers/shared/pace/turns.ts";

function clocked() {
  let now = 0;
  /** Milliseconds of work in this turn of the event loop, the most of one turn, and of all pauses. */
  let [stretch, longest, paused] = [0, 0, 0];
  const turns = new Turns({
    now: () => now,
    nextTurn: () => nextTurn(),
    sleep: async (ms) => {
      now += ms;
      paused += ms;
    },
  });
  const next = (): void => {
    stretch = 0;
    if (ticking) setImmediate(next);
  };
  let ticking = true;
  setImmediate(next);
  onTestFinished(() => {
    ticking = false;
  });
  const spend = (ms: number): void => {
    now += ms;
    stretch += ms;
    longest = Math.max(longest, stretch);
  };
  return { turns, spend, now: () => now, longest: () => longest, paused: () => paused };
}

/** Work of one millisecond a step; answers the milliseconds that it got by `until`. */
async function flood({ turns, spend, now }: ReturnType<typeof clocked>, reader: Reader, until: number) {
  let got = 0;
  const steps = function* (): Generator<undefined> {
    while (now() < until) {
      spend(1);
      got++;
      yield undefined;
    }
  };
  await turns.enter(reader, 1);
  await turns.work(reader, steps());
  return got;
}

describe("Turns", () => {
  test.each([1, 3, 10])(
    "%i floods -> equal shares of half of the time, in stretches of a slice",
    async (count) => {
      const clock = clocked();
      const notes: number[] = [];
      const floods = Array.from({ length: count }, (_, i) =>
        flood(clock, createReader({ onNote: () => notes.push(i) }), 10_000),
      );
      const got = await Promise.all(floods);
      expect(clock.longest()).toBeLessThanOrEqual(SLICE_MS + count);
      expect(clock.paused()).toBeGreaterThan(4_000);
      expect(Math.max(...got) - Math.min(...got)).toBeLessThanOrEqual(30);
      // Each is named once.
      expect(notes.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
    },
  );

  test("a reader that used little, beside ten floods -> waits for a slice and a pause at most, and is not named", async () => {
    const clock = clocked();
    const floods = Array.from({ length: 10 }, () => flood(clock, createReader(), 10_000));
    const notes: string[] = [];
    const light = createReader({ onNote: (note) => notes.push(note) });
    const waits: number[] = [];
    while (clock.now() < 9_000) {
      const [before, wakeAt] = [clock.now(), clock.now() + 100];
      await clock.turns.enter(light, 1);
      waits.push(clock.now() - before);
      clock.spend(1);
      await clock.turns.work(light, [undefined]);
      while (clock.now() < wakeAt) await nextTurn();
    }
    expect(waits.length).toBeGreaterThan(50);
    expect(Math.max(...waits)).toBeLessThanOrEqual(SLICE_MS + 25);
    expect(notes).toEqual([]);
    await Promise.all(floods);
  });

  test("a step that another thread does -> waited for in order, and not counted", async () => {
    const clock = clocked();
    const reader = createReader();
    const order: string[] = [];
    const steps = function* (): Generator<undefined | Promise<unknown>> {
      yield nextTurn()
        .then(nextTurn)
        .then(() => {
          clock.spend(200);
          order.push("first");
        });
      order.push("second");
    };
    await clock.turns.enter(reader, 1);
    await clock.turns.work(reader, steps());
    expect(order).toEqual(["first", "second"]);
    expect(reader.used).toBe(0);
  });
});

describe("readInTurn", () => {
  test("each piece -> told before its work, and its work done before the next piece", async () => {
    const seen: string[] = [];
    const reader = createReader({ onBytes: (bytes) => seen.push(`${bytes}`) });
    await readInTurn(Readable.from([Buffer.from("ab"), Buffer.from("c")]), reader, (piece) => [
      nextTurn().then(() => seen.push(`${piece}`)),
    ]);
    expect(seen).toEqual(["2", "ab", "1", "c"]);
  });

  test("a step that fails -> rejects with its error and ends the stream", async () => {
    const source = new PassThrough();
    source.write("x");
    const failed = new Error("refused");
    await expect(readInTurn(source, createReader(), () => [Promise.reject(failed)])).rejects.toBe(failed);
    expect(source.destroyed).toBe(true);
  });
});
