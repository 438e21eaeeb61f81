/**
 * Owns: what a client of the stateless era sends, when it asks a server what it is, and what it takes of its answers. The
 * server is a function of this test.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { Wire } from "../../../../../workers/connection/mcp/both-eras.ts";
import { OtherEra } from "../../../../../workers/connection/mcp/failures.ts";
import { EVERY_LIST } from "../../../../../workers/connection/mcp/modern/server.ts";
import { speakModern } from "../../../../../workers/connection/mcp/modern-peer.ts";
import {
  type JSONRPCMessage,
  MODERN_VERSION,
  MustNegotiate,
  type Transport,
} from "../../../../../workers/connection/mcp/wire/wire.ts";
import type { StoredProtocol } from "../../../../../workers/shared/tasks.ts";
import { definitionOf, settle } from "../servers/support.ts";
import { connectOptions } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const META = "io.modelcontextprotocol/";
const REFUSED = { code: -32022, message: "unsupported version", data: { supported: [MODERN_VERSION] } };

interface Sent {
  method: string;
  params: Record<string, unknown> & { _meta: Record<string, unknown> };
}

type Answer = { result: object } | { error: object } | undefined;

/** A server that answers by `answer`; undefined: it says nothing. What `answer` throws is how the transport fails. */
function setup(
  answer: (request: Sent, count: number) => Answer,
  entry: object = {},
  remembered?: StoredProtocol,
) {
  const sent: Sent[] = [];
  const notes: string[] = [];
  let changes = 0;
  let ends = 0;
  const receive = (message: object): void =>
    transport.onmessage?.({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async (message) => {
      if (!("method" in message) || !("id" in message)) return;
      sent.push(message as unknown as Sent);
      const given = answer(message as unknown as Sent, sent.length);
      if (given) receive({ id: message.id, ...given });
    },
  };
  const options = connectOptions({
    definition: definitionOf("s", entry),
    onNote: (note) => notes.push(note),
    onLogMessage: (params) => notes.push(JSON.stringify(params)),
    onClosed: () => ends++,
    onListChanged: () => changes++,
  });
  const speaking = speakModern(new Wire(transport), options, remembered ? { remembered } : {});
  return { speaking, sent, notes, receive, transport, changes: () => changes, ends: () => ends };
}

const discovered = (more: object = {}): Answer => ({
  result: { resultType: "complete", supportedVersions: [MODERN_VERSION], ...more },
});
const ask = { signal: new AbortController().signal, timeout: 1_000 };

test("a server of which nothing is known -> it is asked what it is, with the version and the client in the request", async () => {
  const { speaking, sent } = setup(() => discovered({ capabilities: { tools: {} }, instructions: "Hi." }));
  const peer = await speaking;
  expect(sent.map(({ method }) => method)).toEqual(["server/discover"]);
  expect(sent[0]?.params._meta).toMatchObject({
    [`${META}protocolVersion`]: MODERN_VERSION,
    [`${META}clientInfo`]: { name: expect.any(String), version: expect.any(String) },
  });
  expect(sent[0]?.params._meta).not.toHaveProperty(`${META}logLevel`);
  expect([peer.capabilities, peer.instructions, peer.isFromMemory]).toEqual([{ tools: {} }, "Hi.", false]);
});

test.each([
  ["as usual", {}, { [`${META}skills`]: {}, [`${META}tasks`]: {} }],
  ["that wants no skills", { skills: false }, { [`${META}tasks`]: {} }],
])("an entry %s -> each request declares its extensions", async (_, entry, extensions) => {
  const { speaking, sent } = setup(() => discovered(), entry);
  await (await speaking).ping(1_000);
  const declared = sent.map(({ params }) => params._meta[`${META}clientCapabilities`]);
  expect(declared).toEqual([{ extensions }, { extensions }]);
});

test("a server that says nothing of what it can do -> it is asked for every list", async () => {
  const peer = await setup(() => discovered()).speaking;
  expect(peer.capabilities).toEqual(EVERY_LIST);
});

test.each([
  [{}, "info"],
  [{ debug: true }, "debug"],
])("a server that can log, and the entry %j -> later requests say the level %s", async (entry, level) => {
  const { speaking, sent } = setup(() => discovered({ capabilities: { logging: {} } }), entry);
  const peer = await speaking;
  await peer.ping(1_000);
  expect(sent[1]?.params._meta[`${META}logLevel`]).toBe(level);
});

test("the server refuses the version and then names it -> it is asked once more", async () => {
  const { speaking, sent } = setup((_request, count) => (count === 1 ? { error: REFUSED } : discovered()));
  await speaking;
  expect(sent).toHaveLength(2);
});

test("the server speaks only later revisions -> connect_failed", async () => {
  const error = { ...REFUSED, data: { supported: ["2099-01-01"] } };
  await expect(setup(() => ({ error })).speaking).rejects.toMatchObject({ code: "connect_failed" });
});

test("an answer of another era -> OtherEra", async () => {
  await expect(setup(() => ({ result: { tools: [] } })).speaking).rejects.toBeInstanceOf(OtherEra);
});

const REMEMBERED: StoredProtocol = { version: MODERN_VERSION, offers: ["tools"], freshUntil: 0 };

test("a remembered server -> nothing is asked before the first request; its answer ends the memory", async () => {
  const result = { tools: [], ttlMs: 60_000, cacheScope: "public" };
  const { speaking, sent } = setup(() => ({ result }), {}, REMEMBERED);
  const peer = await speaking;
  expect([sent.length, peer.isFromMemory, peer.isStale?.()]).toEqual([0, true, true]);
  await peer.send({ method: "tools/list" }, ask);
  expect([peer.isFromMemory, peer.isStale?.()]).toEqual([false, false]);
  expect(peer.memory?.()).toEqual({ ...REMEMBERED, freshUntil: Date.now() + 60_000 });
});

test.each([
  ["public", ["public", "public"], 60_000],
  ["private", ["private"], 0],
  ["public and then private", ["public", "private"], 0],
  ["private and then public", ["private", "public"], 0],
  ["of no scope", [undefined], 0],
])(
  "a list that is %s -> the next session, which may have other credentials, counts on it or not",
  async (_, scopes, freshMs) => {
    const { speaking } = setup(
      (_request, count) => ({ result: { tools: [], ttlMs: 60_000, cacheScope: scopes[count - 1] } }),
      {},
      REMEMBERED,
    );
    const peer = await speaking;
    for (const [page] of scopes.entries())
      await peer.send({ method: "tools/list", ...(page > 0 && { params: { cursor: "2" } }) }, ask);
    expect(peer.memory?.().freshUntil).toBe(freshMs && Date.now() + freshMs);
    expect(peer.isStale?.()).toBe(false);
  },
);

test("a remembered server refuses the version -> MustNegotiate, since nothing has run", async () => {
  const peer = await setup(() => ({ error: REFUSED }), {}, REMEMBERED).speaking;
  await expect(peer.send({ method: "tools/list" }, ask)).rejects.toBeInstanceOf(MustNegotiate);
});

test.each(["task", "input_required", "new"])(
  "a list of the result type %s -> the fault is told",
  async (resultType) => {
    const { speaking } = setup(({ method }) =>
      method === "tools/list" ? { result: { resultType } } : discovered(),
    );
    const peer = await speaking;
    await expect(peer.send({ method: "tools/list" }, ask)).rejects.toThrow(
      `s: tools/list got a result of the type "${resultType}", which it cannot have.`,
    );
  },
);

const needsAuth = new ThreadsError("needs_auth", "s: it needs a sign-in.", {
  remedy: "Run /mcp auth s in Pi.",
  data: { server: "s", reason: "not-signed-in" },
});
const begun = {
  code: "call_rejected",
  message: needsAuth.message,
  remedy: `The server has begun with the call, which may still run there. ${needsAuth.remedy}`,
  data: needsAuth.data,
};

test.each<[string, results: object[], expected: object]>([
  ["the call itself", [], { code: "needs_auth", remedy: needsAuth.remedy }],
  ["a look at its task", [{ resultType: "task", taskId: "1", status: "working" }], begun],
  ["its second round", [{ resultType: "input_required", requestState: "x" }], begun],
])(
  "the sign-in is refused for %s -> only what has not begun may be sent again",
  async (_what, results, expected) => {
    const { speaking } = setup(({ method }) => {
      if (method === "server/discover") return discovered({ capabilities: { tools: {} } });
      const result = results.shift();
      if (!result) throw needsAuth;
      return { result };
    });
    const peer = await speaking;
    const { signal } = ask;
    const request = { method: "tools/call", params: { name: "t", arguments: {} } };
    const failed = peer.call({ request, subject: "s/t", signal, onProgress: () => undefined });
    const error = failed.catch((thrown: unknown) => thrown);
    expect(await error).toMatchObject(expected);
  },
);

test("a server that is kept up and tells of changes -> one stream; when the server cancels it, it is opened again", async () => {
  const capabilities = { tools: { listChanged: true } };
  const { speaking, sent, notes, receive, transport, changes } = setup(
    ({ method }) => (method === "server/discover" ? discovered({ capabilities }) : undefined),
    { lifecycle: "keep-alive" },
  );
  await speaking;
  const streams = () => sent.filter(({ method }) => method === "subscriptions/listen");
  await settle();
  expect(streams().map(({ params }) => params.notifications)).toEqual([{ toolsListChanged: true }]);
  receive({ method: "notifications/tools/list_changed" });
  await settle();
  expect(changes()).toBe(1);
  receive({
    method: "notifications/subscriptions/acknowledged",
    params: { _meta: { [`${META}subscriptionId`]: 1 } },
  });
  receive({ method: "notifications/cancelled", params: { requestId: 1 } });
  await settle();
  expect(notes).toEqual(["ended the stream that tells of changed lists; it is opened again"]);
  transport.onclose?.();
});

test("a lazy server that tells of changes -> no stream is opened", async () => {
  const capabilities = { tools: { listChanged: true } };
  const { speaking, sent } = setup(() => discovered({ capabilities }));
  await speaking;
  await settle();
  expect(sent.map(({ method }) => method)).toEqual(["server/discover"]);
});

test.each<[string, object, Answer, object, boolean]>([
  ["a lazy server that tells of changes", { listChanged: true }, undefined, {}, true],
  ["a lazy server that tells of none", {}, undefined, {}, false],
  ["a server that is heard", { listChanged: true }, undefined, { lifecycle: "keep-alive" }, false],
  [
    "a server that refuses the stream",
    { listChanged: true },
    { error: { code: -32601, message: "no" } },
    { lifecycle: "keep-alive" },
    true,
  ],
])("%s, and whose list has no time -> stale after a minute: $4", async (_, tools, stream, entry, isStale) => {
  const { speaking, transport } = setup(({ method }) => {
    if (method === "server/discover") return discovered({ capabilities: { tools } });
    return method === "tools/list" ? { result: { tools: [], ttlMs: 0 } } : stream;
  }, entry);
  const peer = await speaking;
  await peer.send({ method: "tools/list" }, ask);
  await settle();
  const stale = (ms: number): boolean | undefined => {
    vi.setSystemTime(Date.now() + ms);
    return peer.isStale?.();
  };
  expect([stale(0), stale(59_000), stale(2_000)]).toEqual([false, false, isStale]);
  transport.onclose?.();
});

test("the server sends requests -> they get no answer, with one note; its log messages are handed on", async () => {
  const { speaking, notes, receive } = setup(() => discovered());
  await speaking;
  receive({ id: 1, method: "roots/list" });
  receive({ id: 2, method: "roots/list" });
  receive({ method: "notifications/message", params: { level: "info", data: "x" } });
  await settle();
  expect(notes).toEqual([
    "sends requests, which its revision of MCP does not have; they get no answer",
    '{"level":"info","data":"x"}',
  ]);
});

test("the connection ends -> the peer is closed, and its owner hears it once", async () => {
  const { speaking, transport, ends } = setup(() => discovered());
  const peer = await speaking;
  transport.onclose?.();
  transport.onclose?.();
  expect([peer.isOpen, ends()]).toEqual([false, 1]);
});
