/** Owns: how long the first plan leaves the processor to Pi's first request. The clock is a fake. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  createFirstRequest,
  endingTheWait,
  type FirstRequest,
} from "../../../../../workers/connection/session/first-request.ts";
import { never, openWith } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Milliseconds until the plan goes on, to the millisecond; undefined if it waits for ever. */
async function waitedMs(first: FirstRequest): Promise<number | undefined> {
  let isGone = false;
  void first.gone().then(() => {
    isGone = true;
  });
  for (let ms = 0; ms <= 1_000; ms++) {
    await vi.advanceTimersByTimeAsync(ms === 0 ? 0 : 1);
    if (isGone) return ms;
  }
  return undefined;
}

test.each<[string, (first: FirstRequest, session: AbortController) => void, number]>([
  ["no request is being prepared", () => undefined, 0],
  ["it is prepared, and nobody tells that it left", (first) => first.note("prepared"), LIMITS.firstRequestMs],
  [
    "it leaves 20 ms later",
    (first) => {
      first.note("prepared");
      setTimeout(() => first.note("sent"), 20);
    },
    50,
  ],
  [
    "main asks for something 20 ms later",
    (first) => {
      first.note("prepared");
      setTimeout(() => first.end(), 20);
    },
    20,
  ],
  [
    "main has asked for something before",
    (first) => {
      first.note("prepared");
      first.end();
    },
    0,
  ],
  [
    "the session ends 20 ms later",
    (first, session) => {
      first.note("prepared");
      setTimeout(() => session.abort(), 20);
    },
    20,
  ],
])("%s -> the plan waits this long", async (_, act, expected) => {
  const session = new AbortController();
  const first = createFirstRequest(session.signal);
  act(first, session);
  expect(await waitedMs(first)).toBe(expected);
  session.abort();
});

test("each request of main but the note itself -> ends the wait, and is answered as before", async () => {
  const said: unknown[] = [];
  const first = { note: (state: string) => said.push(state), end: () => said.push("end") };
  const status = async (): Promise<never> => "the status" as never;
  const requests = endingTheWait({ status } as never, first);
  await requests.firstRequest({ state: "prepared" }, never());
  await requests.firstRequest({ state: "sent" }, never());
  expect(await requests.status({}, never())).toBe("the status");
  expect(said).toEqual(["prepared", "sent", "end"]);
});

test("a prompt is under way at the start -> the plan is told at once, its servers start when the request has left", async () => {
  vi.useRealTimers();
  const at = await openWith({ a: {} });
  await at.session.requests.firstRequest({ state: "prepared" }, never());
  await at.event("planned");
  expect(at.openings).toEqual([]);
  await at.session.requests.firstRequest({ state: "sent" }, never());
  (await at.opening("a")).open();
  const settled = await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
  expect(settled).toEqual([]);
});
