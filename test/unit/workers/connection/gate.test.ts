/** Owns: how many tasks run at a time. */
import { describe, expect, it, test } from "vitest";
import { createGate } from "../../../../workers/connection/gate.ts";

/** Tasks that end when told, and how many of them ran at once. */
function track(): {
  task: (name: string) => () => Promise<string>;
  end: (name: string) => void;
  started: string[];
  most: () => number;
} {
  const ends = new Map<string, () => void>();
  const started: string[] = [];
  let running = 0;
  let most = 0;
  return {
    started,
    most: () => most,
    end: (name) => ends.get(name)?.(),
    task: (name) => async () => {
      started.push(name);
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      running--;
      return name;
    },
  };
}

const settleMicrotasks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("createGate", () => {
  it.each([1, 2, 3])("size %i -> so many tasks at a time, the others in order", async (size) => {
    const gate = createGate(size);
    const { task, end, started, most } = track();
    const names = ["a", "b", "c", "d", "e"];
    const results = names.map((name) => gate(task(name)));
    for (const [i, name] of names.entries()) {
      await settleMicrotasks();
      expect(started).toEqual(names.slice(0, i + size));
      end(name);
    }
    expect(await Promise.all(results)).toEqual(names);
    expect(most()).toBe(size);
  });

  test("a task that rejects -> its caller gets the error, the next one runs", async () => {
    const gate = createGate(1);
    const failed = gate(() => Promise.reject(new Error("no")));
    const next = gate(async () => "next");
    await expect(failed).rejects.toThrow("no");
    expect(await next).toBe("next");
  });

  test("a task that throws before it is asynchronous -> the next one runs", async () => {
    const gate = createGate(1);
    const failed = gate(() => {
      throw new Error("at once");
    });
    await expect(failed).rejects.toThrow("at once");
    expect(await gate(async () => "next")).toBe("next");
  });

  test("a task that comes just as one ends and another waits -> never more than the size", async () => {
    const gate = createGate(1);
    const { task, end, most } = track();
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = gate(() => promise);
    const waiting = gate(task("waiting"));
    // Runs right after the gate has seen the end of the first task, before the waiting one continues.
    const late = promise.then(() => gate(task("late")));
    resolve();
    await first;
    await settleMicrotasks();
    expect(most()).toBe(1);
    end("waiting");
    await settleMicrotasks();
    end("late");
    await settleMicrotasks();
    end("waiting");
    expect(await Promise.all([waiting, late])).toEqual(["waiting", "late"]);
  });
});
