/** Owns: how a server's log is followed while it is shown. The session is a fake. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LogLines } from "../../../../src/shared/protocol/panel.ts";
import { createLogReading } from "../../../../src/ui/panel/log-reading.ts";
import type { PanelHost } from "../../../../src/ui/panel/panel.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setup() {
  const asked: {
    seen: number | undefined;
    signal: AbortSignal | undefined;
    answer: PromiseWithResolvers<LogLines>;
  }[] = [];
  const ask = ((_method: string, { seen }: { seen?: number }, signal?: AbortSignal) => {
    const answer = Promise.withResolvers<LogLines>();
    asked.push({ seen, signal, answer });
    return answer.promise;
  }) as PanelHost["ask"];
  const shown: string[] = [];
  const reading = createLogReading({ ask }, (server, lines) => shown.push(`${server}: ${lines.join(", ")}`));
  return { reading, shown, asked, turn: () => vi.advanceTimersByTimeAsync(0) };
}

test("new lines -> they are shown, and the next request waits behind them", async () => {
  const { reading, shown, asked, turn } = setup();
  reading.follow("git");
  reading.follow("git");
  expect(asked.map(({ seen }) => seen)).toEqual([undefined]);
  asked[0]?.answer.resolve({ lines: ["a"], size: 2 });
  await turn();
  expect(shown).toEqual(["git: a"]);
  expect(asked.map(({ seen }) => seen)).toEqual([undefined, 2]);
  asked[1]?.answer.resolve({ lines: ["a"], size: 2 });
  await turn();
  expect(shown).toEqual(["git: a"]);
  reading.follow(undefined);
});

test("the worker ends -> its error is shown; after two seconds the log is read from its start", async () => {
  const { reading, shown, asked, turn } = setup();
  reading.follow("git");
  asked[0]?.answer.resolve({ lines: ["a"], size: 2 });
  await turn();
  asked[1]?.answer.reject(new Error("the worker ended"));
  await turn();
  expect(shown.at(-1)).toBe("git: the worker ended");
  await vi.advanceTimersByTimeAsync(1_999);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked.map(({ seen }) => seen)).toEqual([undefined, 2, undefined]);
  reading.follow(undefined);
});

test("another log, or none -> the open request is given up, and its late answer is dropped", async () => {
  const { reading, shown, asked, turn } = setup();
  reading.follow("git");
  reading.follow("fs");
  expect(asked.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
  asked[0]?.answer.resolve({ lines: ["late"], size: 4 });
  await turn();
  reading.follow(undefined);
  asked[1]?.answer.reject(new Error("given up"));
  await turn();
  expect([shown, asked.length]).toEqual([[], 2]);
});
