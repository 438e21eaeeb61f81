/** Owns: what the client tells a server of itself, how it answers the server's requests, and when it gives a call up. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import type { AskPauses, ServerAsks } from "../../../../../workers/connection/asks/asks.ts";
import { Wire } from "../../../../../workers/connection/mcp/both-eras.ts";
import { toConnection } from "../../../../../workers/connection/mcp/client.ts";
import type { Connection } from "../../../../../workers/connection/mcp/connection.ts";
import { initialize } from "../../../../../workers/connection/mcp/legacy-peer.ts";
import type { JSONRPCMessage, Transport } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { connectOptions } from "./support.ts";

afterEach(() => {
  vi.useRealTimers();
});

interface FakeServer {
  transport: Transport;
  sent: JSONRPCMessage[];
  /** Sends a request of the server. */
  asks(id: number, method: string, params?: object): void;
  /** Answers the call that is open. */
  answers(answer: object): void;
}

/** A server that answers `initialize`, and keeps what it was sent. */
function fakeServer(): FakeServer {
  const sent: JSONRPCMessage[] = [];
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async (message) => {
      sent.push(message);
      if (!("method" in message) || message.method !== "initialize" || !("id" in message)) return;
      const serverInfo = { name: "fake", version: "1" };
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo };
      transport.onmessage?.({ jsonrpc: "2.0", id: message.id, result });
    },
  };
  const receive = (message: object): void =>
    transport.onmessage?.({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  return {
    transport,
    sent,
    asks: (id, method, params) => receive({ id, method, ...(params ? { params } : {}) }),
    answers: (answer) => {
      const call = sent.findLast((message) => "method" in message && message.method === "tools/call");
      receive({ id: call && "id" in call ? call.id : undefined, ...answer });
    },
  };
}

const turn = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

async function connected(
  asks?: ServerAsks,
): Promise<FakeServer & { connection: Connection; notes: string[] }> {
  const server = fakeServer();
  const notes: string[] = [];
  const options = connectOptions({ onNote: (note) => notes.push(note), ...(asks && { asks }) });
  const client = await initialize(new Wire(server.transport), options);
  const connection = toConnection(client, {
    definition: options.definition,
    onNote: options.onNote,
    redact: options.redact,
    asks,
    transport: "stdio",
    pid: undefined,
    close: async () => undefined,
    whyClosed: () => "s ended.",
  });
  return { ...server, connection, notes };
}

/** Questions that the test answers. `open` says whether one is open. */
function fakeAsks() {
  const listeners = new Set<() => void>();
  const state = { open: false };
  const created: unknown[] = [];
  const ends: string[] = [];
  const pauses: AskPauses = {
    get isOpen() {
      return state.open;
    },
    watch: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const asks: ServerAsks = Object.assign(pauses, {
    create: async (params: unknown) => {
      created.push(params);
      return { action: "accept" as const, content: { name: "Ann" } };
    },
    required: async (data: unknown) => {
      created.push(data);
      return "accept" as const;
    },
    callBegins: () => (how: string) => void ends.push(how),
  });
  const set = (open: boolean): void => {
    state.open = open;
    for (const listener of listeners) listener();
  };
  return { asks, created, ends, set };
}

const call = (connection: Connection, signal = new AbortController().signal) =>
  connection.callTool({ tool: "t", args: {}, timeoutMs: 1_000, signal, onProgress: () => undefined }).then(
    (result) => JSON.stringify(result),
    (error: unknown) => error as ThreadsError,
  );

test.each([
  ["nobody can answer", undefined, {}],
  ["the user can be asked", fakeAsks().asks, { elicitation: { form: {}, url: {} } }],
])(
  "initialize, %s -> the name and the version of the package, and what it can do",
  async (_when, asks, capabilities) => {
    const root = join(import.meta.dirname, "..", "..", "..", "..", "..");
    const { name, version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    const { sent } = await connected(asks);
    expect(sent[0]).toMatchObject({ method: "initialize", params: { clientInfo: { name, version } } });
    expect((sent[0] as { params?: { capabilities?: unknown } }).params?.capabilities).toEqual(capabilities);
  },
);

test("a question, although nobody can answer -> cancelled at once, with a note", async () => {
  const { asks, sent, notes } = await connected();
  asks(1, "elicitation/create", { message: "m" });
  await turn();
  expect(sent.at(-1)).toEqual({ jsonrpc: "2.0", id: 1, result: { action: "cancel" } });
  expect(notes).toEqual(["asks the user something although it was not told that it may; that is cancelled"]);
});

test("a question -> the user's answer; params of any shape are handed on", async () => {
  const { asks, created } = fakeAsks();
  const server = await connected(asks);
  server.asks(1, "elicitation/create", { message: 5, requestedSchema: [] });
  await turn();
  expect(created).toEqual([{ message: 5, requestedSchema: [] }]);
  expect(server.sent.at(-1)).toMatchObject({ id: 1, result: { action: "accept", content: { name: "Ann" } } });
});

test.each(["roots/list", "sampling/createMessage", "x"])("%s -> the method is unknown", async (method) => {
  const { asks, sent } = await connected(fakeAsks().asks);
  asks(1, method);
  await turn();
  expect(sent.at(-1)).toEqual({
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32601, message: "Method not found" },
  });
});

test("a call without an answer -> call_timeout, and the server is told", async () => {
  const { asks, ends } = fakeAsks();
  const server = await connected(asks);
  vi.useFakeTimers();
  const failed = call(server.connection);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await failed).toMatchObject({ code: "call_timeout", message: "s/t gave no answer within 1 s." });
  expect(server.sent.at(-1)).toMatchObject({ method: "notifications/cancelled" });
  expect(ends).toEqual(["given-up"]);
});

test("a call whose server waits for the user -> its clock stands still", async () => {
  const { asks, ends, set } = fakeAsks();
  const server = await connected(asks);
  vi.useFakeTimers();
  const answer = call(server.connection);
  await vi.advanceTimersByTimeAsync(500);
  set(true);
  await vi.advanceTimersByTimeAsync(600_000);
  set(false);
  await vi.advanceTimersByTimeAsync(499);
  server.answers({ result: { content: [] } });
  expect(await answer).toBe('{"content":[]}');
  expect(ends).toEqual(["done"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a call that is cancelled -> its questions are given up", async () => {
  const { asks, ends } = fakeAsks();
  const server = await connected(asks);
  const cancel = new AbortController();
  const failed = call(server.connection, cancel.signal);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  expect(ends).toEqual(["given-up"]);
});

const REQUIRED = {
  code: -32042,
  message: "m",
  data: { elicitations: [{ mode: "url", url: "https://e.com/s3cr3t" }] },
};

test("the call needs a page of the user -> the user is asked; the model reads no address", async () => {
  const { asks, created } = fakeAsks();
  const server = await connected(asks);
  const failed = call(server.connection);
  server.answers({ error: REQUIRED });
  const error = await failed;
  if (!(error instanceof ThreadsError)) throw new Error("the call did not fail");
  expect(created).toEqual([REQUIRED.data]);
  expect(error).toMatchObject({
    code: "call_rejected",
    message: "s needs the user to open a page before t works. The user has been sent to that page.",
    remedy: "Call the tool again after the user has said that the page is done.",
  });
  expect(JSON.stringify(error.data)).not.toContain("s3cr3t");
});

test("the call needs a page, and nobody can be asked -> the model is told", async () => {
  const server = await connected();
  const failed = call(server.connection);
  server.answers({ error: REQUIRED });
  expect(await failed).toMatchObject({
    message: "s needs the user to open a page before t works. Nobody could be asked to open it.",
  });
});
