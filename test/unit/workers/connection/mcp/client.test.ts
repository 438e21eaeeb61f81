/** Owns: what the client tells a server of itself, how it answers the server's requests, and when it gives a call up. */

import { getEventListeners } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { CallProgress } from "../../../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { Sharing } from "../../../../../src/shared/protocol/session.ts";
import type { AskPauses, ServerAsks } from "../../../../../workers/connection/asks/asks.ts";
import { NoReply } from "../../../../../workers/connection/asks/prompt.ts";
import { type Peer, Wire } from "../../../../../workers/connection/mcp/both-eras.ts";
import { CallClock, readProgress, toConnection } from "../../../../../workers/connection/mcp/client.ts";
import type { Connection } from "../../../../../workers/connection/mcp/connection.ts";
import { isUnanswered, taskFailure } from "../../../../../workers/connection/mcp/failures.ts";
import { initialize } from "../../../../../workers/connection/mcp/legacy-peer.ts";
import { KeptList } from "../../../../../workers/connection/mcp/lists.ts";
import {
  type JSONRPCMessage,
  MustNegotiate,
  type Transport,
} from "../../../../../workers/connection/mcp/wire/wire.ts";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";
import { createProgressPacer } from "../../../../../workers/shared/pace/pace.ts";
import { definitionOf } from "../servers/support.ts";
import { connectOptions } from "./support.ts";

afterEach(() => {
  vi.useRealTimers();
});

interface FakeServer {
  transport: Transport;
  sent: JSONRPCMessage[];
  /** Sends a request of the server. */
  asks(id: number, method: string, params?: object): void;
  /** Takes a request of the server back. */
  cancels(id: number): void;
  /** Answers the call that is open, or the last request of that method. */
  answers(answer: object, method?: string): void;
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
    cancels: (requestId) => receive({ method: "notifications/cancelled", params: { requestId } }),
    answers: (answer, method = "tools/call") => {
      const call = sent.findLast((message) => "method" in message && message.method === method);
      receive({ id: call && "id" in call ? call.id : undefined, ...answer });
    },
  };
}

const turn = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

async function connected(
  asks?: ServerAsks,
  sharing?: Sharing,
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
    sharing: () => sharing,
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
    may: { ask: true, sample: false },
    sample: async () => ({}),
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

test.each<[string, object, "alive" | number]>([
  ["a result", { result: {} }, "alive"],
  ["the error that it has no such method", { error: { code: -32601, message: "Method not found" } }, "alive"],
  ["another error", { error: { code: -32603, message: "out of memory" } }, -32603],
])("a ping that is answered by %s -> $2", async (_name, answer, outcome) => {
  const { connection, answers } = await connected();
  const pinged = connection.ping(1_000).then(
    () => "alive",
    ({ code }: McpError) => code,
  );
  await turn();
  answers(answer, "ping");
  expect(await pinged).toBe(outcome);
});

const SKILLS = { extensions: { "io.modelcontextprotocol/skills": {} } };

test.each([
  ["nobody can answer", undefined, SKILLS],
  ["the user can be asked", fakeAsks().asks, { ...SKILLS, elicitation: { form: {}, url: {} } }],
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

test("an entry that wants no skills -> they are not declared", async () => {
  const { sent, transport } = fakeServer();
  await initialize(new Wire(transport), connectOptions({ definition: definitionOf("s", { skills: false }) }));
  expect(sent[0]).toMatchObject({ method: "initialize", params: { capabilities: {} } });
  expect(sent[0]).not.toHaveProperty("params.capabilities.extensions");
});

test("initialize is given up -> it is not cancelled, which the protocol forbids", async () => {
  const { sent, transport } = fakeServer();
  transport.send = async (message) => void sent.push(message);
  const given = new AbortController();
  const failed = initialize(new Wire(transport), connectOptions({ signal: given.signal }));
  failed.catch(() => undefined);
  await turn();
  given.abort(new Error("enough"));
  await expect(failed).rejects.toThrow();
  expect(sent.map((message) => "method" in message && message.method)).toEqual(["initialize"]);
});

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

test("the server takes its questions back, also the first one, with the id 0 -> nobody waits for them, and none is answered", async () => {
  const signals: AbortSignal[] = [];
  const create: ServerAsks["create"] = (_params, signal) => {
    signals.push(signal);
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve({ action: "cancel" }));
    });
  };
  const server = await connected({ ...fakeAsks().asks, create });
  const sent = server.sent.length;
  for (const id of [0, 1]) server.asks(id, "elicitation/create", { message: "m" });
  await turn();
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  server.cancels(0);
  await turn();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  server.cancels(1);
  await turn();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(server.sent).toHaveLength(sent);
});

test("another client spoke before on the same wire -> its late answer is none of this client's", async () => {
  const server = fakeServer();
  const { send } = server.transport;
  const wire = new Wire(server.transport);
  const first = wire.view();
  await first.start();
  await first.send({ jsonrpc: "2.0", id: 0, method: "server/discover" });
  await first.close();
  server.transport.send = async (message) => {
    const isInitialize = "method" in message && message.method === "initialize";
    if (isInitialize) server.answers({ result: { supportedVersions: ["2026-07-28"] } }, "server/discover");
    await send(message);
  };
  const peer = await initialize(wire, connectOptions());
  expect(peer.protocol).toEqual({ era: "legacy", version: "2025-11-25" });
});

describe("tools/list", () => {
  const NEVER = new AbortController().signal;
  const listed = async (
    era: "legacy" | "modern",
    capabilities: Record<string, unknown>,
    answer: (params: Record<string, unknown> | undefined) => Record<string, unknown>,
  ) => {
    const asked: unknown[] = [];
    const notes: string[] = [];
    const peer = {
      protocol: { era, version: "" },
      capabilities,
      isOpen: true,
      send: async ({ params }: { params?: Record<string, unknown> }) => {
        asked.push(params);
        return answer(params);
      },
    } as unknown as Peer;
    const { definition, redact } = connectOptions();
    const connection = toConnection(peer, {
      definition,
      redact,
      onNote: (note) => notes.push(note),
      transport: "stdio",
      pid: undefined,
      close: async () => undefined,
      whyClosed: () => "",
    });
    const tools = await connection.listTools(NEVER);
    return { names: tools.map(({ name }) => name), tools, asked, notes };
  };

  test.each<["legacy" | "modern", string[]]>([
    ["legacy", ["a"]],
    ["modern", ["a", "b"]],
  ])("%s, an empty cursor behind the first page -> %j", async (era, names) => {
    const found = await listed(era, { tools: {} }, (params) =>
      params ? { tools: [{ name: "b" }], nextCursor: "" } : { tools: [{ name: "a" }], nextCursor: "" },
    );
    expect(found.names).toEqual(names);
  });

  const TASKS = { requests: { tools: { call: {} } } };
  const ways = {
    tools: [
      { name: "a", execution: { taskSupport: "required" } },
      { name: "b", execution: { taskSupport: "optional" } },
      { name: "c", execution: null },
    ],
  };
  test.each<[string, "legacy" | "modern", object, string[]]>([
    ["of a server with tasks", "legacy", { tasks: TASKS }, ["b", "c"]],
    ["of a server without", "legacy", {}, ["a", "b", "c"]],
    ["of a server with odd ones", "legacy", { tasks: { requests: [] } }, ["a", "b", "c"]],
    ["in an era without them", "modern", { tasks: TASKS }, ["a", "b", "c"]],
  ])("a tool that runs only as a task, %s -> %s %j: %j", async (_, era, more, names) => {
    const found = await listed(era, { tools: {}, ...more }, () => ways);
    expect(found.names).toEqual(names);
    expect(found.tools.some((tool) => "execution" in tool)).toBe(false);
    expect(found.notes).toEqual(
      names.includes("a") ? [] : ["tools left out, which run only as tasks of MCP 2025-11-25: a"],
    );
  });

  test("tools without end that run only as tasks -> no more of them are asked for than a server may have", async () => {
    const page = 1_000;
    let count = 0;
    const { names, asked } = await listed("legacy", { tools: {}, tasks: TASKS }, () => ({
      tools: Array.from({ length: page }, () => ({
        name: `t${++count}`,
        execution: { taskSupport: "required" },
      })),
      nextCursor: `${count}`,
    }));
    expect(names).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(Math.ceil(LIMITS.toolsPerServer / page));
  });

  test("a server that declares nothing at all -> it may have forgotten to; a refusal means none, with a note", async () => {
    expect((await listed("legacy", {}, () => ({ tools: [{ name: "a" }] }))).names).toEqual(["a"]);
    const refused = await listed("legacy", {}, () => {
      throw new McpError(-32601, "Method not found");
    });
    expect(refused.names).toEqual([]);
    expect(refused.notes).toEqual([
      expect.stringMatching(/^declares no tools, and lists none: .*Method not found/),
    ]);
    const unknown = await listed("legacy", {}, () => {
      throw new ThreadsError("connect_failed", "answered status 404", { data: { status: 404 } });
    });
    expect(unknown.names).toEqual([]);
    for (const other of [{ resources: {} }, { prompts: {} }])
      expect((await listed("legacy", other, () => ({}))).asked).toEqual([]);
  });

  test.each([
    new ThreadsError("connect_failed", "answered status 502", { data: { status: 502 } }),
    new ThreadsError("connect_failed", "could not be reached"),
    new MustNegotiate("s"),
  ])(
    "a server that declares nothing at all, and $message -> an error, so the tools that are known stay",
    async (error) => {
      const failing = listed("legacy", {}, () => {
        throw error;
      });
      await expect(failing).rejects.toBe(error);
    },
  );

  test("a server that declares tools and refuses to list them, or one that wants a sign-in -> an error", async () => {
    const refusing = () => {
      throw new McpError(-32601, "Method not found");
    };
    await expect(listed("legacy", { tools: {} }, refusing)).rejects.toThrow("did not list its tools");
    const needsAuth = () => {
      throw new ThreadsError("needs_auth", "no");
    };
    await expect(listed("legacy", {}, needsAuth)).rejects.toMatchObject({ code: "needs_auth" });
  });
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

test.each<[string, () => Promise<Record<string, unknown>>, object]>([
  ["an answer", async () => ({ role: "assistant" }), { result: { role: "assistant" } }],
  [
    "a no",
    async () => {
      throw new NoReply(-1, "User rejected sampling request");
    },
    { error: { code: -1, message: "User rejected sampling request" } },
  ],
])("a prompt for the model -> %s", async (_what, sample, answer) => {
  const { asks } = fakeAsks();
  const server = await connected({ ...asks, may: { ask: false, sample: true }, sample });
  expect((server.sent[0] as { params?: { capabilities?: unknown } }).params?.capabilities).toEqual({
    ...SKILLS,
    sampling: {},
  });
  server.asks(1, "sampling/createMessage", { messages: [] });
  await turn();
  expect(server.sent.at(-1)).toEqual({ jsonrpc: "2.0", id: 1, ...answer });
});

test("a call without an answer -> call_timeout, and the server is told", async () => {
  const { asks, ends } = fakeAsks();
  const server = await connected(asks);
  vi.useFakeTimers();
  const failed = call(server.connection);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await failed).toMatchObject({ code: "call_timeout", message: "s/t did not answer within 1 s." });
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

describe("a call that the hub of shared servers holds back", () => {
  const limit = 1_000;
  async function held(isShared = true) {
    const server = await connected(undefined, isShared ? { sessions: 2, since: 0 } : undefined);
    vi.useFakeTimers();
    const seen: string[] = [];
    const cancel = new AbortController();
    const answer = server.connection
      .callTool({
        tool: "t",
        args: {},
        timeoutMs: limit,
        signal: cancel.signal,
        onProgress: ({ message }) => seen.push(message),
      })
      .then(
        () => "answered",
        (error: unknown) => error as ThreadsError,
      );
    await vi.advanceTimersByTimeAsync(0);
    const tells = async (waits: boolean, message = "waits") => {
      const call = server.sent.findLast((one) => "method" in one && one.method === "tools/call");
      const progressToken = call && "id" in call ? call.id : undefined;
      const params = { progressToken, progress: 0, message, _meta: { "pi-mcp-threads/waits": waits } };
      server.transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/progress", params });
      await vi.advanceTimersByTimeAsync(0);
    };
    await tells(true);
    return { ...server, answer, tells, seen, cancel };
  }

  test("for longer than its limit -> it goes on, and its limit begins when it is sent", async () => {
    const { answer, tells, seen, answers } = await held();
    await vi.advanceTimersByTimeAsync(100 * limit);
    await tells(false, "sent");
    await vi.advanceTimersByTimeAsync(limit - 1);
    answers({ result: { content: [] } });
    expect([await answer, seen]).toEqual(["answered", ["waits", "sent"]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("for the cap of a call -> it fails, and says that it was not sent", async () => {
    const { answer } = await held();
    await vi.advanceTimersByTimeAsync(LIMITS.requestCapMs);
    expect(await answer).toMatchObject({
      code: "call_timeout",
      message: "s/t waited 3600 s behind a call of another session and was not sent.",
      remedy: "The call may be repeated.",
    });
  });

  test("it is sent, and not answered -> it may still run there", async () => {
    const { answer, tells } = await held();
    await tells(false);
    await vi.advanceTimersByTimeAsync(limit);
    expect(await answer).toMatchObject({
      code: "call_timeout",
      message: "s/t did not answer within 1 s.",
      remedy: expect.stringMatching(/^It may still be running there\./),
    });
  });

  test("it is cancelled -> it says that it was not sent", async () => {
    const { answer, cancel } = await held();
    cancel.abort();
    expect(await answer).toMatchObject({
      code: "cancelled",
      message: "s/t was cancelled. It waited behind a call of another session and was not sent.",
    });
  });

  test("its connection ends -> it says that it was not sent", async () => {
    const { answer, transport } = await held();
    transport.onclose?.();
    expect(await answer).toMatchObject({
      code: "server_died",
      remedy: "It waited behind a call of another session and was not sent. The next call connects again.",
    });
  });

  test("a server that nobody shares says so -> its clock runs", async () => {
    const { answer } = await held(false);
    await vi.advanceTimersByTimeAsync(limit);
    expect(await answer).toMatchObject({ message: "s/t did not answer within 1 s." });
  });
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

const listOf = (limit: number, items: readonly { name: string; text?: string }[]) => {
  const list = new KeptList("tools", limit);
  for (const item of items) list.add(item);
  return list;
};
const names = (count: number): { name: string }[] =>
  Array.from({ length: count }, (_, i) => ({ name: `t${i}` }));

describe("KeptList", () => {
  test("as many as allowed -> all, no note", () => {
    const list = listOf(3, names(3));
    expect([list.items.length, list.isFull, list.note()]).toEqual([3, false, undefined]);
  });

  test("more -> the first ones; some of the others are named", () => {
    const list = listOf(3, names(30));
    list.hasMorePages = true;
    expect(list.items).toEqual(names(3));
    expect(list.isFull).toBe(true);
    expect(list.note()).toMatch(
      /^lists more than 3 tools, and these are left out: t3, t4, .*t22 and 7 more; further pages were not asked for$/,
    );
  });

  test("more bytes than allowed -> the items that fit, in order; the rest is named", () => {
    const text = "x".repeat(LIMITS.listBytes / 2);
    const list = listOf(10, [{ name: "a", text }, { name: "b", text }, { name: "c" }]);
    expect(list.items.map(({ name }) => name)).toEqual(["a"]);
    expect(list.note()).toBe("lists more than 32 MiB of tools, and these are left out: b, c");
  });
});

describe("the clock of a call", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function pausable(isOpen = false) {
    const listeners = new Set<() => void>();
    const state = { isOpen };
    const pauses: AskPauses = {
      get isOpen() {
        return state.isOpen;
      },
      watch: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    };
    const set = (open: boolean): void => {
      state.isOpen = open;
      for (const listener of listeners) listener();
    };
    return { pauses, set, listeners };
  }

  const start = (pauses?: AskPauses, caller = new AbortController().signal): CallClock =>
    new CallClock({ caller, limitMs: 1_000, capMs: 2_500, pauses, reason: () => "late" });

  test("the caller gives up, before or meanwhile -> it aborts with the caller's reason", () => {
    const caller = new AbortController();
    const clock = start(undefined, caller.signal);
    expect(clock.signal.aborted).toBe(false);
    caller.abort("mine");
    vi.advanceTimersByTime(5_000);
    expect([clock.signal.reason, start(undefined, caller.signal).signal.reason]).toEqual(["mine", "mine"]);
  });

  test("stopped -> the caller's signal is left alone, and does nothing to it", () => {
    const caller = new AbortController();
    const clock = start(undefined, caller.signal);
    expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);
    clock.stop();
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
    caller.abort("mine");
    expect(clock.signal.aborted).toBe(false);
  });

  test("without an answer -> it expires with the reason", () => {
    const clock = start();
    vi.advanceTimersByTime(999);
    expect(clock.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(clock.signal.reason).toBe("late");
  });

  test("progress renews the limit, but not the cap", () => {
    const clock = start();
    for (const _ of [1, 2, 3]) {
      vi.advanceTimersByTime(800);
      clock.renew();
    }
    vi.advanceTimersByTime(99);
    expect(clock.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(clock.signal.aborted).toBe(true);
  });

  test("a question is open -> the limit and the cap stand still, however long it takes", () => {
    const { pauses, set } = pausable();
    const clock = start(pauses);
    vi.advanceTimersByTime(600);
    set(true);
    set(true);
    vi.advanceTimersByTime(600_000);
    clock.renew();
    vi.advanceTimersByTime(600_000);
    set(false);
    set(false);
    vi.advanceTimersByTime(999);
    expect(clock.signal.aborted).toBe(false);
    clock.renew();
    vi.advanceTimersByTime(900);
    expect(clock.signal.aborted).toBe(false);
    // The cap: 600 ms before the question, 1,900 ms after it.
    vi.advanceTimersByTime(1);
    expect(clock.signal.aborted).toBe(true);
  });

  test("a call that begins while a question is open -> it waits, too", () => {
    const { pauses, set } = pausable(true);
    const clock = start(pauses);
    vi.advanceTimersByTime(5_000);
    expect(clock.signal.aborted).toBe(false);
    set(false);
    vi.advanceTimersByTime(1_000);
    expect(clock.signal.aborted).toBe(true);
  });

  test("stopped -> it never expires, and leaves no timer and no listener", () => {
    const { pauses, listeners } = pausable();
    const clock = start(pauses);
    clock.stop();
    clock.stop();
    vi.advanceTimersByTime(10_000);
    expect([clock.signal.aborted, vi.getTimerCount(), listeners.size]).toEqual([false, 0, 0]);
  });
});

test.each<[Parameters<typeof readProgress>[0], CallProgress]>([
  [{ progress: 3 }, { message: "3", progress: 3 }],
  [
    { progress: 3, total: 9 },
    { message: "3 of 9", progress: 3, total: 9 },
  ],
  [
    { progress: 3, total: 0 },
    { message: "3", progress: 3 },
  ],
  [
    { progress: 3, total: 9, message: "reading" },
    { message: "reading", progress: 3, total: 9 },
  ],
  [{ progress: "x", message: "" }, { message: "?" }],
  [
    { progress: 1, message: `with s3cr3t-token, ${"x".repeat(600)}` },
    { message: `with [redacted], ${"x".repeat(483)}`, progress: 1 },
  ],
  [
    { progress: 1, message: `${"x".repeat(495)}s3cr3t-token` },
    { message: `${"x".repeat(495)}[reda`, progress: 1 },
  ],
])("%j -> %j", (params, expected) => {
  expect(readProgress(params, createRedactor({ values: ["s3cr3t-token"], named: [] }))).toEqual(expected);
});

test("the first at once, then the latest of each interval, and nothing after the end", async () => {
  const sent: string[] = [];
  const gate = createProgressPacer<CallProgress>(20, ({ message }) => sent.push(message));
  for (const message of ["a", "b", "c"]) gate.push({ message });
  expect(sent).toEqual(["a"]);
  await expect.poll(() => sent).toEqual(["a", "c"]);
  gate.push({ message: "d" });
  gate.stop();
  await sleep(60);
  // The clock decides whether the interval was over at "d". Nothing that was held back is passed on after the end.
  expect(sent.filter((message) => message !== "d")).toEqual(["a", "c"]);
});

const PARTY = { server: "s", subject: "s/t" };

describe("isUnanswered", () => {
  test.each<[string, unknown, boolean]>([
    ["the process ended", new ThreadsError("server_died", "s ended."), true],
    ["no connection", new ThreadsError("connect_failed", "s is away."), true],
    ["another error of ours", new ThreadsError("call_rejected", "no"), false],
    ["the SDK's own timeout", new McpError(ErrorCode.RequestTimeout, "late", { timeout: 5 }), true],
    ["the server's error of the same code", new McpError(ErrorCode.RequestTimeout, "late"), false],
    ["a refusal", new McpError(ErrorCode.InvalidParams, "no"), false],
    ["the connection was closed", new McpError(ErrorCode.ConnectionClosed, "closed"), false],
    ["a broken network", new TypeError("fetch failed"), true],
  ])("%s -> %#", (_what, error, expected) => {
    expect(isUnanswered(error)).toBe(expected);
  });
});

describe("taskFailure", () => {
  test.each<[string, unknown, string]>([
    ["a JSON-RPC error", { code: -32602, message: "wrong", data: 1 }, "MCP error -32602: wrong"],
    ["an error without a code", { message: "wrong" }, "MCP error 0: wrong"],
    ["a code that is no number", { code: "x", message: "wrong" }, "MCP error 0: wrong"],
    ["nothing", undefined, "s/t failed as a task without a reason."],
    ["a text", "wrong", "s/t failed as a task without a reason."],
    ["a message that is no text", { code: 1, message: {} }, "s/t failed as a task without a reason."],
  ])("%s -> %s", (_what, error, message) => {
    expect(taskFailure(error, PARTY).message).toBe(message);
  });
});
