/** Owns: which cancellations end the stream of changes, and which errors end it for good. */
import { expect, test } from "vitest";
import { ChangeStream } from "../../../../../workers/connection/mcp/modern/changes.ts";
import { settle } from "../servers/support.ts";

/** A stream whose requests the test ends; nothing waits for a time. */
function setup() {
  const stream = new ChangeStream();
  const requests: { signal: AbortSignal; fail: (error: unknown) => void; end: () => void }[] = [];
  const notes: string[] = [];
  const lifetime = new AbortController();
  let changes = 0;
  const ended = stream.follow({
    signal: lifetime.signal,
    onNote: (note) => notes.push(note),
    onChanged: () => changes++,
    wait: async () => undefined,
    isRefusal: (error) => error !== "broken",
    request: (signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      requests.push({ signal, fail: reject, end: resolve });
      return promise;
    },
  });
  const close = async (): Promise<void> => {
    lifetime.abort();
    await ended;
  };
  return { stream, requests, notes, ended, close, changes: () => changes };
}

test("the server cancels the stream by its id -> the stream is opened again, and the lists are asked for", async () => {
  const { stream, requests, close, changes } = setup();
  stream.acknowledged("7");
  stream.cancelled("7");
  await settle();
  expect([requests.length, requests[0]?.signal.aborted, changes()]).toEqual([2, true, 1]);
  await close();
});

test.each<[string, unknown, unknown]>([
  ["another request", "7", "8"],
  ["a stream that it has not acknowledged", undefined, undefined],
  ["a request before it has acknowledged the stream", undefined, "7"],
  ["the same id as another type", 7, "7"],
])("the server cancels %s -> the stream stays open", async (_what, acknowledged, cancelled) => {
  const { stream, requests, close } = setup();
  if (acknowledged !== undefined) stream.acknowledged(acknowledged);
  stream.cancelled(cancelled);
  await settle();
  expect([requests.length, requests[0]?.signal.aborted]).toEqual([1, false]);
  await close();
});

test("the second stream -> the id of the first one counts no more", async () => {
  const { stream, requests, close } = setup();
  stream.acknowledged("7");
  requests[0]?.end();
  await settle();
  stream.cancelled("7");
  expect(requests[1]?.signal.aborted).toBe(false);
  await close();
});

test("the server refuses the stream -> it is not opened again; any other error opens it again", async () => {
  const { requests, notes, ended } = setup();
  requests[0]?.fail("broken");
  await settle();
  requests[1]?.fail("refused");
  await ended;
  expect(requests).toHaveLength(2);
  expect(notes.at(-1)).toMatch(/^does not tell when its lists change/);
});

test("the server acknowledges and cancels although no stream is open -> nothing happens", () => {
  const stream = new ChangeStream();
  stream.acknowledged("7");
  expect(() => stream.cancelled("7")).not.toThrow();
});
