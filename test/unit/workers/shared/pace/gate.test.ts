/** Background tasks: how many run at a time, and in which order. Urgent tasks never wait. */
import { describe, expect, it, test } from "vitest";
import { createGate } from "../../../../../workers/shared/pace/pace.ts";

const settleMicrotasks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = (): AbortSignal => new AbortController().signal;

/** Tasks behind a gate. Each runs from its admission until the test ends it. */
function track(size: number) {
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
    const { enter, end, started, inside } = track(size);
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
    const { enter, inside, started, end } = track(1);
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

  test("urgent from the start -> runs at once beside any others, and does not count", async () => {
    const { enter, end, inside } = track(1);
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
    const { enter, end, inside, started } = track(1);
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
    const { enter, end, inside } = track(1);
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
    const { enter, inside } = track(10);
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
