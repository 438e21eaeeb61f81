/**
 * Owns: MCP 2026-07-28 over HTTP with real servers on loopback: which era is spoken and how many requests that costs, the
 * headers, cancelling, questions in results, tasks, and what a failed request means.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import type { ServerAsks } from "../../workers/connection/asks/asks.ts";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import type { Connection, ConnectOptions } from "../../workers/connection/mcp/connection.ts";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "../../workers/connection/mcp/modern/limits.ts";
import { MustNegotiate } from "../../workers/connection/mcp/wire/wire.ts";
import { connectHttp } from "../../workers/connection/transports/http/http.ts";
import { faultOf, modernServer, refuse, sendJson, TOOL, VERSION } from "../fixtures/modern-raw/http.ts";
import {
  answerWell,
  connectOptions,
  type Handler,
  serve,
  startEvents,
  type TestServer,
} from "../support/http-server.ts";

const NEVER = new AbortController().signal;

async function connect(
  url: string,
  entry: object = {},
  more: Partial<ConnectOptions> = {},
): Promise<Connection & { notes: string[] }> {
  const options = connectOptions({ url, ...entry }, { retryMs: [], ...more });
  const connection = await connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  onTestFinished(() => connection.close({ termMs: 1, killMs: 1 }));
  return Object.assign(connection, { notes: options.notes });
}

const refusal = (url: string, entry: object = {}): Promise<ThreadsError> =>
  connect(url, entry).then(
    () => expect.unreachable("connected"),
    (error: ThreadsError) => error,
  );

const call = (connection: Connection, args: Record<string, unknown> = {}, more: object = {}) =>
  connection.callTool({
    tool: "echo",
    args,
    timeoutMs: 10_000,
    signal: NEVER,
    onProgress: () => undefined,
    ...more,
  });

const failedCall = (connection: Connection, more: object = {}): Promise<ThreadsError> =>
  call(connection, {}, more).then(
    () => expect.unreachable("the call did not fail"),
    (error: ThreadsError) => error,
  );

/** Answers `initialize`, the first request, with a version that the old era does not have. */
const agree = (response: Parameters<Handler>[1], protocolVersion: string): void => {
  const result = { protocolVersion, capabilities: {}, serverInfo: { name: "s", version: "1" } };
  sendJson(response, 200, { jsonrpc: "2.0", id: 0, result });
};

const MODERN = { protocol: VERSION };
const textOf = (result: unknown) => JSON.stringify((result as { content: unknown }).content);

test("auto, a server of the old era -> not one request more than without the new one", async () => {
  const server = await serve(answerWell);
  const connection = await connect(server.url);
  await connection.listTools(NEVER);
  await call(connection);
  expect(connection.protocol).toEqual({ era: "legacy", version: "2025-11-25" });
  expect(server.log.filter((line) => line !== "GET")).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
  ]);
  expect(connection.memory()).toBeUndefined();
});

test("auto, a server of the new era only -> one refused handshake, then strict requests", async () => {
  const server = await serve(modernServer());
  const connection = await connect(server.url);
  expect(await connection.listTools(NEVER)).toHaveLength(1);
  expect(textOf(await call(connection, { a: 1 }))).toContain('a\\\\\\":1'.replaceAll("\\\\", ""));
  expect(connection.protocol).toEqual({ era: "modern", version: VERSION });
  expect(connection.instructions).toBe("be kind");
  expect(server.log).toEqual([
    "POST initialize",
    "POST server/discover",
    "POST tools/list",
    "POST tools/call",
  ]);
  expect(server.asked.slice(1).map(faultOf)).toEqual([undefined, undefined, undefined]);
  expect(connection.notes).toEqual([`refuses the handshake of older revisions, trying MCP ${VERSION}`]);
});

test.each<[string, (response: Parameters<Handler>[1]) => void, string]>([
  ["400 with -32020", (to) => refuse(to, 400, { code: -32020, message: "Missing header" }), "modern"],
  [
    "400 with -32602 that names it",
    (to) => refuse(to, 400, { code: -32602, message: `use ${VERSION}` }),
    "modern",
  ],
  ["404 with -32601", (to) => refuse(to, 404, { code: -32601, message: "Method not found" }), "modern"],
  ["200 with -32601", (to) => refuse(to, 200, { code: -32601, message: "Method not found" }, 0), "modern"],
  ["a handshake to the newer version", (to) => agree(to, VERSION), "modern"],
  ["a handshake to a later version", (to) => agree(to, "2027-01-01"), "modern"],
  ["a handshake to no version", (to) => agree(to, "1.0"), "not supported: 1.0"],
  ["400 with text", (to) => to.writeHead(400, { "content-type": "text/plain" }).end("no"), "status 400: no"],
  ["400 with -32000", (to) => refuse(to, 400, { code: -32000, message: "bad" }), "bad"],
  ["401", (to) => to.writeHead(401).end(), "answered 401"],
  ["403", (to) => to.writeHead(403).end(), "status 403"],
  ["407", (to) => to.writeHead(407).end(), "407"],
  ["429", (to) => to.writeHead(429).end(), "status 429"],
  ["503 with a modern error", (to) => refuse(to, 503, { code: -32022, message: "later" }), "status 503"],
  ["200, empty", (to) => to.writeHead(200).end(), "no content type"],
  [
    "200, a web page",
    (to) => to.writeHead(200, { "content-type": "text/html" }).end("<title>Hi</title>"),
    "HTML",
  ],
])("auto, initialize answered by %s -> modern only if the answer says so", async (_, answer, outcome) => {
  const modern = modernServer();
  const server = await serve((asked, response, nth) =>
    asked.message.method === "initialize" ? answer(response) : modern(asked, response, nth),
  );
  if (outcome === "modern") expect((await connect(server.url)).protocol.era).toBe("modern");
  else {
    expect((await refusal(server.url)).message).toContain(outcome);
    expect(server.log).not.toContain("POST server/discover");
  }
});

test("legacy, a server of the new era only -> the error names the key", async () => {
  const server = await serve(modernServer());
  const error = await refusal(server.url, { protocol: "legacy" });
  expect(error.message).toContain('"protocol": "legacy" forbids');
  expect(error.remedy).toContain('"auto"');
  expect(server.log).toEqual(["POST initialize"]);
});

test("2026-07-28, a server of the old era -> the error names the key, and no handshake is tried", async () => {
  const server = await serve((asked, response, nth) =>
    asked.message.method === "server/discover"
      ? refuse(response, 400, { code: -32000, message: "Bad Request: Server not initialized" })
      : answerWell(asked, response, { nth }),
  );
  expect((await refusal(server.url, MODERN)).message).toContain(`does not speak MCP ${VERSION}`);
  expect(server.log).toEqual(["POST server/discover"]);
});

test("2026-07-28: a server that refuses the version and names it -> asked once more", async () => {
  const modern = modernServer();
  const server = await serve((asked, response, nth) =>
    nth === 0
      ? refuse(response, 400, { code: -32022, message: "", data: { supported: [VERSION] } }, asked.message.id)
      : modern(asked, response, nth),
  );
  await connect(server.url, MODERN);
  expect(server.log).toEqual(["POST server/discover", "POST server/discover"]);
});

test("2026-07-28: a server of a later revision only -> the error names its revision", async () => {
  const server = await serve((asked, response) =>
    refuse(
      response,
      400,
      { code: -32022, message: "", data: { supported: ["2027-07-28"] } },
      asked.message.id,
    ),
  );
  expect((await refusal(server.url, MODERN)).message).toContain('web speaks MCP "2027-07-28"');
});

const remembered = (isTrusted = true): Partial<ConnectOptions> => ({
  remembered: {
    protocol: { version: VERSION, offers: ["tools"], freshUntil: Date.now() + 60_000 },
    tools: [TOOL],
    instructions: "be kind",
    isTrusted,
  },
});

test("a remembered server -> the call is the only request", async () => {
  const server = await serve(modernServer());
  const connection = await connect(server.url, {}, remembered());
  expect(connection.isFromMemory()).toBe(true);
  await call(connection);
  expect(server.log).toEqual(["POST tools/call"]);
  expect(connection.isFromMemory()).toBe(false);
  expect(connection.isStale()).toBe(false);
});

test.each<[string, Handler]>([
  ["a status", (_, to) => to.writeHead(404).end()],
  ["400 without a session", (_, to) => refuse(to, 400, { code: -32000, message: "No valid session ID" })],
  ["-32022", ({ message }, to) => refuse(to, 400, { code: -32022, message: "" }, message.id)],
])(
  "a remembered server that is of another era by %s -> nothing has run, and the era must be found out",
  async (_, handler) => {
    const server = await serve(handler);
    expect(await failedCall(await connect(server.url, {}, remembered()))).toBeInstanceOf(MustNegotiate);
    expect(server.log).toEqual(["POST tools/call"]);
  },
);

test("a remembered server that is down -> nothing has run, and it is connected anew", async () => {
  const server = await serve(modernServer());
  await server.close();
  expect(await failedCall(await connect(server.url, {}, remembered()))).toBeInstanceOf(MustNegotiate);
});

test.each([401, 403, 429, 500])(
  "a remembered server that answers %i -> no verdict on its era",
  async (status) => {
    const server = await serve((_, response) => response.writeHead(status).end());
    const error = await failedCall(await connect(server.url, {}, remembered()));
    expect(error).not.toBeInstanceOf(MustNegotiate);
    expect(error.message).toContain(String(status));
  },
);

test("a remembered server that is not trusted and of the old era now -> the handshake", async () => {
  const server = await serve((asked, response) =>
    asked.message.method === "server/discover" ? response.writeHead(400).end() : answerWell(asked, response),
  );
  const connection = await connect(server.url, {}, remembered(false));
  expect(connection.protocol.era).toBe("legacy");
  expect(server.log.slice(0, 2)).toEqual(["POST server/discover", "POST initialize"]);
});

test("a tool with x-mcp-header -> its parameters are in the headers; a wrong annotation costs the tool", async () => {
  const inputSchema = {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
  };
  const wrong = { name: "wrong", inputSchema: { type: "object", properties: { a: { "x-mcp-header": "" } } } };
  const server = await serve(
    modernServer({ "tools/list": () => ({ tools: [{ ...TOOL, inputSchema }, wrong] }) }),
  );
  const connection = await connect(server.url, MODERN);
  expect((await connection.listTools(NEVER)).map(({ name }) => name)).toEqual(["echo"]);
  expect(connection.notes).toEqual(["its tool wrong is left out: its x-mcp-header is not a header's name"]);
  await call(connection, { region: "Zürich\n" });
  expect(server.asked.at(-1)?.headers).toMatchObject({
    "mcp-name": "echo",
    "mcp-param-region": "=?base64?WsO8cmljaAo=?=",
  });
});

test("a remembered server that is asked first and too busy to list its tools -> the headers of those that are known", async () => {
  const inputSchema = { type: "object", properties: { a: { type: "string", "x-mcp-header": "A" } } };
  const modern = modernServer();
  const server = await serve((asked, response, nth) =>
    asked.message.method === "tools/list"
      ? response.writeHead(503, { "retry-after": "60" }).end()
      : modern(asked, response, nth),
  );
  const known = remembered(false).remembered;
  if (!known) throw new Error("nothing is remembered");
  const connection = await connect(
    server.url,
    {},
    { remembered: { ...known, tools: [{ ...TOOL, inputSchema }] } },
  );
  await expect(connection.listTools(NEVER)).rejects.toMatchObject({ data: { reason: "busy" } });
  await call(connection, { a: "x" });
  expect(server.asked.at(-1)?.headers).toMatchObject({ "mcp-param-a": "x" });
});

test("-32020 to a call -> the tools are listed again and the call is sent once more, not twice", async () => {
  const inputSchema = { type: "object", properties: { a: { type: "string", "x-mcp-header": "A" } } };
  let isNew = false;
  const modern = modernServer({ "tools/list": () => ({ tools: [isNew ? { ...TOOL, inputSchema } : TOOL] }) });
  let strict = (header: unknown): boolean => header !== undefined;
  const server = await serve((asked, response, nth) =>
    asked.message.method === "tools/call" && !strict(asked.headers["mcp-param-a"])
      ? refuse(response, 400, { code: -32020, message: "Mcp-Param-A is missing" }, asked.message.id)
      : modern(asked, response, nth),
  );
  const connection = await connect(server.url, MODERN);
  await connection.listTools(NEVER);
  isNew = true;
  await call(connection, { a: "x" });
  expect(server.log.slice(2)).toEqual(["POST tools/call", "POST tools/list", "POST tools/call"]);
  strict = () => false;
  expect(await failedCall(connection)).toMatchObject({ code: "call_rejected" });
  expect(server.log.slice(5)).toEqual(["POST tools/call", "POST tools/list", "POST tools/call"]);
});

/** A server whose call is answered by `answer`. */
const serveCall = (answer: Handler): Promise<TestServer> => {
  const modern = modernServer();
  return serve((asked, response, nth) =>
    asked.message.method === "tools/call" ? answer(asked, response, nth) : modern(asked, response, nth),
  );
};

test("a call that is given up -> its response is closed, and nothing is posted", async () => {
  const closed = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const server = await serveCall((_, response) => {
    startEvents(response).write(": alive\n\n");
    response.once("close", () => closed.resolve());
    begun.resolve();
  });
  const connection = await connect(server.url, MODERN);
  const given = new AbortController();
  const failed = failedCall(connection, { signal: given.signal });
  await begun.promise;
  given.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await closed.promise;
  expect(server.log).toEqual(["POST server/discover", "POST tools/call"]);
});

test("a stream that breaks before the answer -> it may have run, and is not sent again", async () => {
  const server = await serveCall((_, response) => {
    startEvents(response).write('id: 7\nretry: 1\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n');
    setImmediate(() => response.destroy());
  });
  const error = await failedCall(await connect(server.url, MODERN));
  expect(error).toMatchObject({ code: "server_died" });
  expect(error.remedy).toContain("may have run");
  expect(server.log).toEqual(["POST server/discover", "POST tools/call"]);
});

test.each<[string, Handler, string]>([
  ["202 and no answer", (_, to) => to.writeHead(202).end(), "no content type"],
  [
    "an unknown type of result",
    ({ message }, to) =>
      sendJson(to, 200, { jsonrpc: "2.0", id: message.id, result: { resultType: "later" } }),
    '"later"',
  ],
  [
    "its error with status 400 and id null",
    (_, to) => refuse(to, 400, { code: -32602, message: "no such argument" }),
    "no such argument",
  ],
])("a call answered by %s -> the error says it", async (_, answer, words) => {
  const error = await failedCall(await connect((await serveCall(answer)).url, MODERN));
  expect(error.message).toContain(words);
});

test("progress and a request of the server in the response -> the progress counts, the request gets no answer", async () => {
  const told = Promise.withResolvers<void>();
  const server = await serveCall(({ message }, response) => {
    const { progressToken } = (message.params as { _meta: { progressToken: number } })._meta;
    const params = { progressToken, progress: 1, total: 2, message: "half" };
    startEvents(response);
    const send = (one: object) => response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...one })}\n\n`);
    send({ id: "s1", method: "elicitation/create", params: {} });
    send({ method: "notifications/progress", params });
    told.promise.then(() => {
      send({ id: message.id, result: { content: [] } });
      response.end();
    });
  });
  const connection = await connect(server.url, MODERN);
  const progress: unknown[] = [];
  const onProgress = (one: unknown): void => {
    progress.push(one);
    told.resolve();
  };
  await call(connection, {}, { onProgress });
  expect(progress).toEqual([{ message: "half", progress: 1, total: 2 }]);
  expect(server.log).toEqual(["POST server/discover", "POST tools/call"]);
  expect(connection.notes).toEqual([
    "sends requests, which its revision of MCP does not have; they get no answer",
  ]);
});

const asks = (asked: unknown[]): ServerAsks => ({
  may: { ask: true, sample: false },
  sample: async () => ({}),
  isOpen: false,
  watch: () => () => undefined,
  create: async (params) => {
    asked.push(params);
    return { action: "accept", content: { confirmed: true } };
  },
  required: async () => "none",
  callBegins: () => () => undefined,
});

test("input_required -> the user is asked, and the call repeated with the answer, its state and a new id", async () => {
  const params = { message: "sure?" };
  const server = await serve(
    modernServer({
      "tools/call": ({ params: sent }) =>
        sent?.inputResponses
          ? { content: [sent.inputResponses, sent.requestState] }
          : {
              resultType: "input_required",
              inputRequests: { q: { method: "elicitation/create", params } },
              requestState: "st~ä",
            },
    }),
  );
  const asked: unknown[] = [];
  const connection = await connect(server.url, MODERN, { asks: asks(asked) });
  const { content } = await call(connection, { a: 1 });
  expect(content).toEqual([{ q: { action: "accept", content: { confirmed: true } } }, "st~ä"]);
  expect(asked).toEqual([params]);
  const [first, second] = server.asked.slice(-2).map(({ message }) => message);
  expect(first?.id).not.toBe(second?.id);
  expect(second?.params?.arguments).toEqual({ a: 1 });
  expect(first?.params).toHaveProperty(
    ["_meta", "io.modelcontextprotocol/clientCapabilities", "elicitation"],
    { form: {}, url: {} },
  );
});

test("roots/list in a result -> the folders of the entry, which every request declares", async () => {
  const roots = [{ uri: "file:///a", name: "a" }];
  const server = await serve(
    modernServer({
      "tools/call": ({ params }) =>
        params?.inputResponses
          ? { content: [params.inputResponses] }
          : { resultType: "input_required", inputRequests: { r: { method: "roots/list" } } },
    }),
  );
  const { content } = await call(await connect(server.url, MODERN, { roots }));
  expect(content).toEqual([{ r: { roots } }]);
  expect(server.asked[0]?.message.params).toHaveProperty(
    ["_meta", "io.modelcontextprotocol/clientCapabilities", "roots"],
    {},
  );
});

test("a call that became a task -> looked at over broken answers, its question answered, its status told", async () => {
  let looks = 0;
  const modern = modernServer({
    "tools/call": () => ({ resultType: "task", taskId: "t/ä", status: "working", statusMessage: "begun" }),
    "tasks/get": () => {
      const inputRequests = { q: { method: "elicitation/create", params: { message: "?" } } };
      if (++looks === 2) return { status: "input_required", inputRequests };
      return { status: "completed", result: { content: [{ type: "text", text: "done" }] } };
    },
    "tasks/update": ({ params }) => ({ seen: params?.inputResponses }),
  });
  const server = await serve((asked, response, nth) => {
    if (asked.message.method === "tasks/get" && looks === 0) {
      looks++;
      response.destroy();
    } else modern(asked, response, nth);
  });
  const connection = await connect(server.url, MODERN, { asks: asks([]) });
  const progress: string[] = [];
  const result = await call(
    connection,
    {},
    {
      timeoutMs: 30_000,
      onProgress: ({ message }: { message: string }) => progress.push(message),
    },
  );
  expect(result).toEqual({ content: [{ type: "text", text: "done" }] });
  expect(progress).toEqual(["begun", "input_required", "completed"]);
  expect(server.log.slice(2)).toEqual([
    "POST tasks/get",
    "POST tasks/get",
    "POST tasks/update",
    "POST tasks/get",
  ]);
  expect(server.asked.at(-1)?.headers["mcp-name"]).toBe("=?base64?dC/DpA==?=");
});

test("a task that is given up -> tasks/cancel", async () => {
  const begun = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const server = await serve(
    modernServer({
      "tools/call": () => ({ resultType: "task", taskId: "1", status: "working" }),
      "tasks/get": () => {
        begun.resolve();
        return { status: "working" };
      },
      "tasks/cancel": () => {
        cancelled.resolve();
        return {};
      },
    }),
  );
  const connection = await connect(server.url, MODERN);
  const given = new AbortController();
  const failed = failedCall(connection, { signal: given.signal });
  await begun.promise;
  given.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await cancelled.promise;
});

test.each([
  ["120 s", 120_000, 119_000, 121_000],
  ["a moment, which is taken for the least time", 1, FRESH_LEAST_MS - 1_000, FRESH_LEAST_MS + 1_000],
  [
    "a year, which is taken for the most time",
    365 * 24 * 3_600_000,
    FRESH_MOST_MS - 1_000,
    FRESH_MOST_MS + 1_000,
  ],
])("a list that counts for %s -> stale after that time, not before", async (_, ttlMs, freshMs, staleMs) => {
  const server = await serve(modernServer({ "tools/list": () => ({ tools: [TOOL], ttlMs }) }));
  const connection = await connect(server.url, MODERN);
  const listedAt = Date.now();
  await connection.listTools(NEVER);
  onTestFinished(() => void vi.useRealTimers());
  const after = (ms: number): boolean => {
    vi.useFakeTimers({ toFake: ["Date"], now: listedAt + ms });
    return connection.isStale();
  };
  expect([after(0), after(freshMs), after(staleMs)]).toEqual([false, false, true]);
});

test("an eager server that tells of changes -> one stream, opened again when it ends", async () => {
  const changed = Promise.withResolvers<void>();
  const again = Promise.withResolvers<void>();
  const modern = modernServer({
    "server/discover": () => ({
      supportedVersions: [VERSION],
      capabilities: { tools: { listChanged: true } },
    }),
  });
  let streams = 0;
  const server = await serve((asked, response, nth) => {
    if (asked.message.method !== "subscriptions/listen") return modern(asked, response, nth);
    streams++;
    if (streams === 2) again.resolve();
    const _meta = { "io.modelcontextprotocol/subscriptionId": asked.message.id };
    const send = (one: object) => response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...one })}\n\n`);
    startEvents(response);
    send({ method: "notifications/subscriptions/acknowledged", params: { _meta } });
    send({ method: "notifications/tools/list_changed", params: { _meta } });
    if (streams === 1) changed.promise.then(() => response.destroy());
  });
  let changes = 0;
  await connect(
    server.url,
    { ...MODERN, lifecycle: "eager" },
    {
      onListChanged: () => {
        changes++;
        changed.resolve();
      },
    },
  );
  await changed.promise;
  await again.promise;
  expect(changes).toBeGreaterThanOrEqual(2);
  const listen = server.asked.find(({ message }) => message.method === "subscriptions/listen");
  expect(listen?.message.params?.notifications).toEqual({ toolsListChanged: true });
});

test("a lazy server that tells of changes -> no stream; its closed connection ends all requests", async () => {
  const modern = modernServer({
    "server/discover": () => ({
      supportedVersions: [VERSION],
      capabilities: { tools: { listChanged: true } },
    }),
  });
  const begun = Promise.withResolvers<void>();
  const server = await serve((asked, response, nth) => {
    if (asked.message.method !== "tools/call") return modern(asked, response, nth);
    startEvents(response).write(": alive\n\n");
    begun.resolve();
  });
  const connection = await connect(server.url, MODERN);
  const failed = failedCall(connection);
  await begun.promise;
  const open = server.asked.length;
  await connection.close({ termMs: 1, killMs: 1 });
  expect((await failed).code).toBe("server_died");
  expect(server.asked).toHaveLength(open);
  expect(server.log).not.toContain("POST subscriptions/listen");
});
