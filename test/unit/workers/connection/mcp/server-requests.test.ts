/** Owns: how much a server may ask of us before its connection is ended. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { BoundedTransport } from "../../../../../workers/connection/messages/server-requests.ts";

/** A transport in memory: `take` lets it take so many of the messages that wait, `asks` is the server's message. */
function bounded(options: { answersAtATime?: number } = {}) {
  const ended: string[] = [];
  const notes: string[] = [];
  const received: JSONRPCMessage[] = [];
  const waiting: (() => void)[] = [];
  let nowMs = 0;
  const inner: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: () => new Promise((resolve) => waiting.push(resolve)),
  };
  const transport = new BoundedTransport(inner, {
    server: "s",
    end: ({ message }) => ended.push(message),
    onNote: (note) => notes.push(note),
    now: () => nowMs,
    ...options,
  });
  void transport.start();
  transport.onmessage = (message) => received.push(message);
  return {
    transport,
    ended,
    notes,
    received,
    waiting,
    asks: (id: string | number) => inner.onmessage?.({ jsonrpc: "2.0", id, method: "ping" }),
    says: (message: unknown) => inner.onmessage?.(message as JSONRPCMessage),
    answer: (id: string | number) => transport.send({ jsonrpc: "2.0", id, result: {} }),
    take: async (count: number) => {
      for (const taken of waiting.splice(0, count)) taken();
      await new Promise((resolve) => setImmediate(resolve));
    },
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

const { serverRequestsOpen, serverRequestsInWindow, serverRequestsWindowMs, unsentReplyBytes } = LIMITS;

describe("BoundedTransport", () => {
  test("as many requests as may wait -> all are handed on; one more ends the connection, once", () => {
    const { asks, ended, received } = bounded();
    for (let id = 0; id < serverRequestsOpen; id++) asks(id);
    expect([ended, received.length]).toEqual([[], serverRequestsOpen]);
    for (let id = 0; id < 10; id++) asks(`more ${id}`);
    expect(ended).toEqual([
      "s sent more than 1,000 requests that wait for an answer; the connection was closed.",
    ]);
    expect(received).toHaveLength(serverRequestsOpen);
  });

  test("requests that are answered and taken, or cancelled -> do not count any more", async () => {
    const { asks, says, answer, take, ended } = bounded();
    for (let round = 0; round < 4; round++) {
      const ids = Array.from({ length: serverRequestsOpen }, (_, i) => (i % 2 === 0 ? i : `same`));
      for (const id of ids) asks(id);
      if (round % 2 === 0) for (const id of ids) void answer(id);
      else
        for (const requestId of new Set(ids))
          says({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
      await take(serverRequestsOpen);
    }
    expect(ended).toEqual([]);
  });

  test("answers that the server does not take -> ended when they are too long together", () => {
    const { asks, answer, ended, waiting } = bounded();
    const id = "x".repeat(unsentReplyBytes / 8);
    for (let i = 0; i < 10; i++) {
      asks(`${i}${id}`);
      void answer(`${i}${id}`);
    }
    expect(ended).toEqual([
      "s does not take the answers to its requests: more than 8 MiB of them wait; the connection was closed.",
    ]);
    expect(waiting).toHaveLength(7);
  });

  test("a flood of requests that are all answered -> ended by their number in a time", async () => {
    const flood = async (pauseMs: number): Promise<string[]> => {
      const { asks, answer, take, wait, ended } = bounded();
      for (let id = 0; id < 1.2 * serverRequestsInWindow; id++) {
        asks(id);
        void answer(id).catch(() => undefined);
        if (id % 500 === 0) await take(1_000);
        wait(pauseMs);
      }
      return ended;
    };
    expect(await flood(serverRequestsWindowMs / serverRequestsInWindow)).toEqual([]);
    expect(await flood(0)).toEqual([
      "s sent more than 10,000 requests within 10 s; the connection was closed.",
    ]);
  });

  test("answers at a time -> the others wait for their turn; our own requests do not", async () => {
    const { transport, asks, answer, take, waiting } = bounded({ answersAtATime: 2 });
    for (let id = 0; id < 5; id++) {
      asks(id);
      void answer(id);
    }
    void transport.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    await take(0);
    expect(waiting).toHaveLength(3);
    await take(3);
    expect(waiting).toHaveLength(2);
  });

  test("the server has forgotten its session -> its requests are taken back, and of their answers none is sent any more", async () => {
    const { transport, asks, answer, take, waiting, received } = bounded({ answersAtATime: 1 });
    for (const id of [0, "b", 2]) asks(id);
    void answer(0);
    void answer("b");
    transport.sessionLost();
    expect(received.slice(3)).toMatchObject(
      [0, "b", 2].map((requestId) => ({ method: "notifications/cancelled", params: { requestId } })),
    );
    // The next session uses the ids again.
    asks("b");
    await take(1);
    expect(waiting).toHaveLength(0);
    void answer("b");
    await take(0);
    expect(waiting).toHaveLength(1);
    transport.sessionLost();
    expect(received.at(-1)).toMatchObject({ params: { requestId: "b" } });
  });

  it.each<[string, unknown]>([
    ["an answer", { jsonrpc: "2.0", id: 1, result: {} }],
    ["a notification", { jsonrpc: "2.0", method: "notifications/progress" }],
    ["anything else", { jsonrpc: "2.0" }],
  ])("%s -> handed on unchanged, however many", (_name, message) => {
    const { says, received, ended } = bounded();
    for (let i = 0; i < 2 * serverRequestsInWindow; i++) says(message);
    expect(received[0]).toBe(message);
    expect([received.length, ended]).toEqual([2 * serverRequestsInWindow, []]);
  });

  test("a message at which the client throws -> a note, and the next one is handed on", () => {
    const { transport, says, notes, received } = bounded();
    transport.onmessage = (message) => {
      received.push(message);
      throw new RangeError("Maximum call stack size exceeded");
    };
    says({ jsonrpc: "2.0", odd: 1 });
    says({ jsonrpc: "2.0", odd: 2 });
    expect(received).toHaveLength(2);
    expect(notes[0]).toBe("sent a message that cannot be handled: Maximum call stack size exceeded");
  });
});
