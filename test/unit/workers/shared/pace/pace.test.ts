/** What a server or background work would do without end is bounded in time and in number. */
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import {
  createGate,
  createLineBudget,
  createProgressPacer,
  createThrottle,
} from "../../../../../workers/shared/pace/pace.ts";

/** Milliseconds since this call. */
function stopwatch(): () => number {
  const startedAt = performance.now();
  return () => Math.round(performance.now() - startedAt);
}

const MINUTES = 60_000;

describe("by the clock", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A number lets so many milliseconds pass. */
  type Step = number | "request" | "stop" | { least: number };

  const flood = (ms: number, everyMs: number): Step[] =>
    Array.from({ length: ms / everyMs }, (): Step[] => ["request", everyMs]).flat();

  /** When the task ran. */
  function runsAfter(steps: readonly Step[], longestMs = 1_000): number[] {
    const now = stopwatch();
    const runs: number[] = [];
    const throttle = createThrottle({
      delayMs: 100,
      intervalMs: 1_000,
      longestMs,
      task: () => runs.push(now()),
    });
    for (const step of steps) {
      if (typeof step === "number") vi.advanceTimersByTime(step);
      else if (typeof step === "object") throttle.request(step.least);
      else throttle[step]();
    }
    return runs;
  }

  describe("createThrottle", () => {
    test.each<[string, Step[], number[]]>([
      ["one request, and less than the delay", ["request", 99], []],
      ["one request", ["request", 10_099], [100]],
      ["a burst", [...Array<Step>(1_000).fill("request"), 10_000], [100]],
      ["a flood of 5 s", [...flood(5_000, 10), 10_000], [100, 1_100, 2_100, 3_100, 4_100, 5_100]],
      ["a request right after a run", ["request", 101, "request", 10_000], [100, 1_100]],
      ["a request long after the last run", ["request", 5_000, "request", 5_000], [100, 5_100]],
      [
        "one that asks for 5 s, and others around it",
        ["request", 50, { least: 5_000 }, 90, "request", 10_000],
        [5_050],
      ],
      ["one that asks for less than the pause", ["request", 200, { least: 500 }, 10_000], [100, 1_100]],
      ["two that ask for a time", [{ least: 5_000 }, 1_000, { least: 2_000 }, 10_000], [5_000]],
      ["stopped, for waiting and for new requests", ["request", "stop", "request", 10_000], []],
    ])("%s -> runs at $2", (_name, steps, runs) => {
      expect(runsAfter(steps)).toEqual(runs);
      if (steps.at(-1) !== 99) expect(vi.getTimerCount()).toBe(0);
    });

    test("a request within the task -> one more run", () => {
      const runs: number[] = [];
      const throttle = createThrottle({
        delayMs: 100,
        intervalMs: 1_000,
        task: () => {
          runs.push(runs.length);
          if (runs.length < 3) throttle.request();
        },
      });
      throttle.request();
      vi.advanceTimersByTime(10_000);
      expect(runs).toEqual([0, 1, 2]);
    });

    test("a task that takes longer than the interval -> runs never overlap; the last request is not lost", async () => {
      const now = stopwatch();
      const runs: number[] = [];
      const ends: (() => void)[] = [];
      const throttle = createThrottle({
        delayMs: 100,
        intervalMs: 1_000,
        task: () => {
          runs.push(now());
          return new Promise<void>((resolve) => ends.push(resolve));
        },
      });
      throttle.request();
      await vi.advanceTimersByTimeAsync(200);
      throttle.request();
      await vi.advanceTimersByTimeAsync(20_000);
      expect(runs).toEqual([100]);
      ends[0]?.();
      await vi.advanceTimersByTimeAsync(20_000);
      expect(runs).toEqual([100, 20_300]);
      throttle.request();
      throttle.stop();
      ends[1]?.();
      await vi.advanceTimersByTimeAsync(20_000);
      expect(runs).toHaveLength(2);
    });
  });

  describe("createThrottle with an interval that grows to a minute", () => {
    const grown = (...steps: Step[]): number[] => runsAfter(steps, 60_000);

    test("a flood of ten minutes -> 1 s, 2, 4 ... up to 60 s between the runs", () => {
      const runs = grown(...flood(10 * MINUTES, 10));
      const pauses = runs.slice(1).map((at, i) => at - (runs[i] ?? 0));
      expect(pauses.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
      expect(runs.length).toBeLessThan(20);
    });

    test("a run that requests the next run each time -> the same", () => {
      let runs = 0;
      const throttle = createThrottle({
        delayMs: 100,
        intervalMs: 1_000,
        longestMs: 60_000,
        task: () => {
          runs++;
          throttle.request();
        },
      });
      throttle.request();
      vi.advanceTimersByTime(10 * MINUTES);
      expect(runs).toBeLessThan(20);
    });

    test("runs of twenty seconds, each of which requests the next at its end -> the intervals grow as well", async () => {
      let runs = 0;
      const throttle = createThrottle({
        delayMs: 100,
        intervalMs: 1_000,
        longestMs: 60_000,
        task: async () => {
          runs++;
          await new Promise((resolve) => setTimeout(resolve, 20_000));
          throttle.request();
        },
      });
      throttle.request();
      await vi.advanceTimersByTimeAsync(20 * MINUTES);
      expect(runs).toBeLessThan(30);
    });

    test("the end of a flood -> one run for the last request, within a minute", () => {
      const steps = flood(5 * MINUTES, 1_000);
      const before = grown(...steps).length;
      expect(grown(...steps, 60_000)).toHaveLength(before + 1);
      expect(grown(...steps, 11 * MINUTES)).toHaveLength(before + 1);
    });

    test("quiet for as long as the last interval -> the shortest again", () => {
      const steps = [...flood(5 * MINUTES, 1_000), 2 * MINUTES];
      const again: Step[] = ["request", 100, "request", 1_000, "request", 2_000];
      expect(grown(...steps, ...again)).toHaveLength(grown(...steps).length + 3);
    });

    test("a request every fifteen seconds -> each runs at once", () => {
      const runs = grown(...flood(10 * MINUTES, 15_000));
      expect(runs).toHaveLength(40);
      expect(runs.slice(0, 3)).toEqual([100, 15_100, 30_100]);
    });

    test("three requests in three seconds, as from a starting server -> each runs within three seconds", () => {
      expect(grown(...flood(3_000, 1_000), 10_000)).toEqual([100, 1_100, 3_100]);
    });
  });

  describe("createProgressPacer", () => {
    /** When which message was passed on. A number lets time pass, a text is pushed, null stops. */
    function passedAfter(steps: readonly (number | string | null)[]): [ms: number, message: string][] {
      const now = stopwatch();
      const passed: [ms: number, message: string][] = [];
      const pacer = createProgressPacer<string>(100, (message) => passed.push([now(), message]));
      for (const step of steps) {
        if (typeof step === "number") vi.advanceTimersByTime(step);
        else if (step === null) pacer.stop();
        else pacer.push(step);
      }
      return passed;
    }

    test.each<[string, (number | string | null)[], [number, string][]]>([
      ["one message", ["a"], [[0, "a"]]],
      [
        "several within an interval",
        ["a", "b", "c", 10_000],
        [
          [0, "a"],
          [100, "c"],
        ],
      ],
      [
        "a message after a pause",
        ["a", 5_000, "b"],
        [
          [0, "a"],
          [5_000, "b"],
        ],
      ],
      [
        "an empty message in between",
        ["a", "", 100],
        [
          [0, "a"],
          [100, ""],
        ],
      ],
      ["stopped while a message waits", ["a", "b", null, 10_000], [[0, "a"]]],
      ["a message after the stop, as servers may send", [null, "late", 10_000], []],
    ])("%s -> $2, and no timer stays", (_name, steps, passed) => {
      expect(passedAfter(steps)).toEqual(passed);
      vi.advanceTimersByTime(10_000);
      expect(vi.getTimerCount()).toBe(0);
    });

    test("a message every 10 ms for a second -> ten a second, each the newest, the last not lost", () => {
      const steps = Array.from({ length: 100 }, (_, i) => [`${i}`, 10]).flat();
      const passed = passedAfter([...steps, 10_000]);
      expect(passed.map(([ms]) => ms)).toEqual(Array.from({ length: 11 }, (_, i) => i * 100));
      expect(passed.at(-1)).toEqual([1_000, "99"]);
    });
  });

  describe("createLineBudget: three lines and twenty characters a second", () => {
    function budgeted() {
      const written: string[] = [];
      let composed = 0;
      const budget = createLineBudget({ lines: 3, chars: 20, windowMs: 1_000 }, (count) =>
        written.push(`${count} dropped`),
      );
      const write = (line: string): void =>
        budget.write(
          () => {
            composed++;
            return line;
          },
          (text) => written.push(text),
        );
      return { budget, write, written, composed: () => composed };
    }

    test("lines beyond the limit -> not composed, counted, reported when the window is over", () => {
      const { write, written, composed } = budgeted();
      for (let i = 0; i < 10; i++) write(`line ${i}`);
      expect([written, composed()]).toEqual([["line 0", "line 1", "line 2"], 3]);
      vi.advanceTimersByTime(999);
      expect(written).toHaveLength(3);
      vi.advanceTimersByTime(1);
      expect(written.at(-1)).toBe("7 dropped");
    });

    test("characters beyond the limit -> dropped with all further lines of the window", () => {
      const { write, written, composed } = budgeted();
      for (const line of ["x".repeat(20), "y", "z"]) write(line);
      expect([written, composed()]).toEqual([["x".repeat(20)], 2]);
    });

    test("the next window -> lines again, after the report of dropped lines", () => {
      const { write, written } = budgeted();
      for (let i = 0; i < 4; i++) write(String(i));
      vi.advanceTimersByTime(5_000);
      write("late");
      expect(written).toEqual(["0", "1", "2", "1 dropped", "late"]);
    });

    test("nothing dropped -> no report; close -> one report at once", () => {
      const { budget, write, written } = budgeted();
      write("a");
      budget.close();
      for (const line of ["b", "c", "d", "e"]) write(line);
      budget.close();
      vi.advanceTimersByTime(10_000);
      expect(written).toEqual(["a", "b", "c", "2 dropped"]);
    });
  });
});

const settleMicrotasks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = (): AbortSignal => new AbortController().signal;

/** Tasks behind a gate. Each runs from its admission until the test ends it. */
function gated(size: number) {
  const gate = createGate(size);
  const leaves = new Map<string, () => void>();
  const started: string[] = [];
  return {
    started,
    /** Names of the tasks that run. */
    inside: (): string[] => [...leaves.keys()],
    enter: async (name: string, urgent: AbortSignal = never()): Promise<void> => {
      const leave = await gate.enter(urgent);
      started.push(name);
      leaves.set(name, leave);
    },
    end: async (name: string): Promise<void> => {
      leaves.get(name)?.();
      leaves.delete(name);
      await settleMicrotasks();
    },
  };
}

describe("createGate", () => {
  it.each([1, 2, 3])("size %i -> that many tasks at a time, the others in order", async (size) => {
    const { enter, end, started, inside } = gated(size);
    const names = ["a", "b", "c", "d", "e"];
    const entered = names.map((name) => enter(name));
    for (const [i, name] of names.entries()) {
      await settleMicrotasks();
      expect(started).toEqual(names.slice(0, i + size));
      expect(inside()).toHaveLength(Math.min(size, names.length - i));
      await end(name);
    }
    await Promise.all(entered);
  });

  test("a task that comes just as one ends and another waits -> never more than the size", async () => {
    const { enter, inside, started, end } = gated(1);
    await enter("first");
    const waiting = enter("waiting");
    const ended = end("first");
    const late = enter("late");
    await ended;
    expect(inside()).toEqual(["waiting"]);
    await end("waiting");
    await end("late");
    await Promise.all([waiting, late]);
    expect(started).toEqual(["first", "waiting", "late"]);
  });

  test("nobody waits, or the task is the one that is waited for -> it does not stand aside", () => {
    const gate = createGate(1);
    expect(gate.aside(never())).toBeUndefined();
    gate.use();
    expect(gate.aside(AbortSignal.abort())).toBeUndefined();
  });

  test("somebody waits -> a background task stands aside until the last use ends, or the task is waited for", async () => {
    const gate = createGate(1);
    const ends = [gate.use(), gate.use()];
    const wanted = new AbortController();
    const went: string[] = [];
    const all = [
      gate.aside(never())?.then(() => went.push("background")),
      gate.aside(wanted.signal)?.then(() => went.push("wanted")),
    ];
    ends[0]?.();
    await settleMicrotasks();
    expect(went).toEqual([]);
    wanted.abort();
    await settleMicrotasks();
    expect(went).toEqual(["wanted"]);
    ends[1]?.();
    await Promise.all(all);
    expect(went).toEqual(["wanted", "background"]);
    expect(gate.aside(never())).toBeUndefined();
  });

  test("a use without an end -> a background task goes on all the same", async () => {
    const gate = createGate(1);
    gate.use();
    await gate.aside(never());
  });

  test("urgent from the start -> runs at once beside any others, and does not count", async () => {
    const { enter, end, inside } = gated(1);
    await enter("a");
    await enter("urgent", AbortSignal.abort());
    expect(inside()).toEqual(["a", "urgent"]);
    const b = enter("b");
    await end("urgent");
    expect(inside()).toEqual(["a"]);
    await end("a");
    expect(inside()).toEqual(["b"]);
    await b;
  });

  test("urgent while it waits -> skips the queue; the others keep their order, and the size holds", async () => {
    const { enter, end, inside, started } = gated(1);
    const urgent = new AbortController();
    await enter("a");
    const others = [enter("b"), enter("c", urgent.signal), enter("d")];
    await settleMicrotasks();
    urgent.abort();
    await settleMicrotasks();
    expect(inside()).toEqual(["a", "c"]);
    await end("c");
    expect(inside()).toEqual(["a"]);
    await end("a");
    expect(inside()).toEqual(["b"]);
    await end("b");
    await Promise.all(others);
    expect(started).toEqual(["a", "c", "b", "d"]);
  });

  test("urgent once it runs -> counts once until it ends", async () => {
    const { enter, end, inside } = gated(1);
    const urgent = new AbortController();
    await enter("a", urgent.signal);
    urgent.abort();
    const b = enter("b");
    await settleMicrotasks();
    expect(inside()).toEqual(["a"]);
    await end("a");
    expect(inside()).toEqual(["b"]);
    await b;
  });

  test("ten tasks hang -> an urgent eleventh still runs", async () => {
    const { enter, inside } = gated(10);
    await Promise.all(Array.from({ length: 10 }, (_, i) => enter(`hangs ${i}`)));
    const urgent = new AbortController();
    const healthy = enter("healthy", urgent.signal);
    await settleMicrotasks();
    expect(inside()).toHaveLength(10);
    urgent.abort();
    await healthy;
    expect(inside()).toContain("healthy");
  });
});
