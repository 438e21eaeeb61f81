/** Owns: an open connection over HTTP to real servers on loopback: sessions, streams, limits, and its end. */
import { randomUUID } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { describe, expect, test } from "vitest";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { ServerAsks } from "../../workers/connection/asks/asks.ts";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import type { Connection, ConnectOptions } from "../../workers/connection/mcp/connection.ts";
import { heldIn } from "../../workers/connection/messages/heavy.ts";
import { shapeAnywhere } from "../../workers/connection/results/anywhere.ts";
import { inBytes } from "../../workers/connection/results/shape.ts";
import { connectHttp } from "../../workers/connection/transports/http/http.ts";
import { onCleanup } from "../support/cleanup.ts";
import {
  answerWell,
  connectOptions,
  type Handler,
  resultOf,
  serve,
  startEvents,
  type TestServer,
} from "../support/http-server.ts";
import { sized } from "../support/long.ts";

const never = new AbortController().signal;
const soon = { termMs: 1, killMs: 1 };
/** Of an event that arrives, and the limit of one that has no end. */
const MEBIBYTES = sized(8, 32);

async function connect(server: TestServer, entry = {}, more: Partial<ConnectOptions> = {}) {
  let onClosed = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve;
  });
  const options = connectOptions({ url: server.url, ...entry }, { onClosed, ...more });
  const connection = await connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  return { connection, notes: options.notes, closed };
}

const call = (connection: Connection, more: Partial<Parameters<Connection["callTool"]>[0]> = {}) =>
  connection.callTool({
    tool: "echo",
    args: { a: 1 },
    timeoutMs: 30_000,
    signal: never,
    onProgress: () => undefined,
    ...more,
  });

const failed = (calling: Promise<unknown>): Promise<ThreadsError> =>
  calling.then(
    () => expect.unreachable("answered"),
    (error: ThreadsError) => error,
  );

/** Gives `answer` to `tools/call`, and plain answers to all other requests. */
const onCall =
  (answer: (response: ServerResponse, id: number | string | undefined) => void): Handler =>
  (asked, response) =>
    asked.message.method === "tools/call" ? answer(response, asked.message.id) : answerWell(asked, response);

/** An object deeper than a reader that calls itself could go. */
const DEEP = `${'{"a":'.repeat(20_000)}{}${"}".repeat(20_000)}`;

/**
 * A server that forgets its session at each call of `lose` and then answers with `status`. `says`: what its answer to
 * `initialize` says beside the usual.
 */
function forgetful(
  status: number,
  body: string,
  says: object = {},
): { handler: Handler; lose: (nowSays?: object) => void } {
  let session = 1;
  let said = says;
  return {
    lose: (nowSays = said) => {
      session++;
      said = nowSays;
    },
    handler: (asked, response) => {
      const id = `session-${session}`;
      if (asked.message.method === "initialize") {
        const answer = JSON.parse(resultOf(asked.message));
        response
          .writeHead(200, { "content-type": "application/json", "mcp-session-id": id })
          .end(JSON.stringify({ ...answer, result: { ...answer.result, ...said } }).replace('"DEEP"', DEEP));
      } else if (asked.headers["mcp-session-id"] !== id) {
        const { id: request } = asked.message;
        response
          .writeHead(status, { "content-type": "application/json" })
          .end(
            body
              .replace('"ID"', JSON.stringify(request))
              .replace("SESSION", asked.headers["mcp-session-id"] as string),
          );
      } else answerWell(asked, response);
    },
  };
}

const LOST: [string, number, string][] = [
  ["404", 404, "{}"],
  [
    "404 with an error for the request's own id that names the session",
    404,
    '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Session not found"},"id":"ID"}',
  ],
  ...[
    "Session not found or expired",
    "Session expired. Please reinitialize.",
    "Invalid or expired session",
    "No record of SESSION",
  ].map((message): [string, number, string] => [
    `404 with "${message}" for the request's own id`,
    404,
    `{"jsonrpc":"2.0","error":{"code":-32603,"message":"${message}"},"id":"ID"}`,
  ]),
  [
    "400 with server-everything's words",
    400,
    '{"error":{"message":"Bad Request: No valid session ID provided"}}',
  ],
  [
    "400 with the words of a server of the SDK that has just started",
    400,
    '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}',
  ],
];

test.each(LOST)(
  "a lost session (%s) -> a new session opens, and a list is repeated once",
  async (_name, status, body) => {
    const { handler, lose } = forgetful(status, body);
    const server = await serve(handler);
    const { connection, notes } = await connect(server);
    lose();
    const lists = await Promise.all([connection.listTools(never), connection.listTools(never)]);
    expect(lists.map((tools) => tools.length)).toEqual([1, 1]);
    expect(server.log.filter((line) => line === "POST initialize")).toHaveLength(2);
    expect(server.log.filter((line) => line === "POST tools/list").length).toBeLessThanOrEqual(4);
    expect(notes).toEqual(["had lost the session; a new one is open"]);
    await connection.close(soon);
  },
);

const LOGGING = { capabilities: { tools: {}, logging: {} }, instructions: "First." };
const DEEPLY = { ...LOGGING, capabilities: { ...LOGGING.capabilities, experimental: { x: "DEEP" } } };
const MORE = { capabilities: { tools: {}, logging: {}, prompts: {} }, instructions: "Second." };

/** `levels`: how often the server is asked for a log level. `changes`: how often its lists may have changed. */
test.each([
  ["the same as before", LOGGING, LOGGING, { levels: 2, changes: 1, prompts: 0, instructions: "First." }],
  [
    "the same, with something deep that nobody reads",
    DEEPLY,
    DEEPLY,
    { levels: 2, changes: 1, prompts: 0, instructions: "First." },
  ],
  ["more", LOGGING, MORE, { levels: 2, changes: 2, prompts: 1, instructions: "Second." }],
  ["more, after nothing", {}, MORE, { levels: 1, changes: 2, prompts: 1, instructions: "Second." }],
  ["less", MORE, {}, { levels: 1, changes: 2, prompts: 0, instructions: undefined }],
  [
    "what no client takes",
    LOGGING,
    { capabilities: "none" },
    { levels: 2, changes: 1, prompts: 0, instructions: "First." },
  ],
])(
  "the server says of itself in the new session: %s -> what is asked of it goes by that",
  async (_name, first, second, expected) => {
    const { handler, lose } = forgetful(404, "{}", first);
    const server = await serve(handler);
    let changes = 0;
    const { connection } = await connect(server, {}, { onListChanged: () => changes++ });
    lose(second);
    expect(await connection.listTools(never)).toHaveLength(1);
    await connection.listPrompts(never);
    const count = (line: string): number => server.log.filter((found) => found === line).length;
    await expect.poll(() => count("POST logging/setLevel")).toBe(expected.levels);
    expect(changes).toBe(expected.changes);
    expect(count("POST prompts/list")).toBe(expected.prompts);
    expect(connection.instructions).toBe(expected.instructions);
    await connection.close(soon);
  },
);

test.each([
  [404, -32602, "Unknown tool: t"],
  [400, -32602, "Invalid params: no session abc"],
  [404, -32050, "No such issue"],
  [400, -32603, "The page was submitted, then the browser session crashed"],
  [404, -32603, "Terminal session 3 has no pane 4"],
  [404, -32050, "Session 7f3a not found in the recorder"],
])(
  "%i with an error %i for the request's own id -> the server's answer, and the session stays",
  async (status, code, message) => {
    const { handler } = forgetful(404, "{}");
    const server = await serve((asked, response, request) => {
      if (asked.message.method !== "tools/call") return handler(asked, response, request);
      const body = JSON.stringify({ jsonrpc: "2.0", id: asked.message.id, error: { code, message } });
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    });
    const { connection, notes } = await connect(server);
    for (let count = 0; count < 2; count++)
      await expect(call(connection)).rejects.toMatchObject({
        code: "call_rejected",
        message: expect.stringContaining(message),
      });
    expect(server.log.filter((line) => line === "POST initialize")).toHaveLength(1);
    expect(notes).toEqual([]);
    await connection.close(soon);
  },
);

test("a server that has gone back to an older revision when it opens the new session -> asked in that one from then on", async () => {
  let session = 1;
  const server = await serve((asked, response) => {
    const { http, headers, message } = asked;
    const id = `session-${session}`;
    const version = session === 1 ? "2025-11-25" : "2025-06-18";
    if (message.method === "initialize") {
      const params = { ...message.params, protocolVersion: version };
      answerWell({ ...asked, message: { ...message, params } }, response, { "mcp-session-id": id });
    } else if (headers["mcp-session-id"] !== id) response.writeHead(404).end();
    else if (http === "POST" && headers["mcp-protocol-version"] !== version)
      response.writeHead(400).end("Unsupported protocol version");
    else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  expect(await connection.listTools(never)).toHaveLength(1);
  session++;
  expect(await connection.listTools(never)).toHaveLength(1);
  expect((await call(connection)).content).toEqual([{ type: "text", text: '{"a":1}' }]);
  await connection.close(soon);
});

const REFUSALS: [status: number, body: string, headers: Record<string, string>][] = [
  [400, "bad", { "content-type": "text/plain" }],
  [400, "<!doctype html><title>Bad Request</title>", { "content-type": "text/html" }],
  [400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}', {}],
  [404, "", {}],
  [405, "", {}],
  [422, "{}", { "content-type": "application/json" }],
];
test.each(REFUSALS)(
  "notifications/initialized is refused (%i %s) -> the server is used all the same, and the log says it",
  async (status, body, headers) => {
    const server = await serve((asked, response) => {
      if (asked.message.method === "notifications/initialized") response.writeHead(status, headers).end(body);
      else answerWell(asked, response);
    });
    const { connection, notes } = await connect(server);
    expect(await connection.listTools(never)).toHaveLength(1);
    expect(notes).toEqual([`refuses notifications/initialized (status ${status}) and is used all the same`]);
    expect(server.log.filter((line) => line === "POST initialize")).toHaveLength(1);
    await connection.close(soon);
  },
);

test.each([
  [401, {}, "needs_auth"],
  [403, { "www-authenticate": 'Bearer error="insufficient_scope"' }, "needs_auth"],
  [404, { "mcp-session-id": "s" }, "connect_failed"],
  [503, {}, "connect_failed"],
])("notifications/initialized is answered with %i %j -> the connect fails", async (status, headers, code) => {
  const server = await serve((asked, response) => {
    if (asked.message.method === "notifications/initialized") response.writeHead(status, headers).end();
    else answerWell(asked, response, { "mcp-session-id": "s" });
  });
  await expect(connect(server, {}, { retryMs: [] })).rejects.toMatchObject({ code });
});

test.each(LOST)(
  "a call in a lost session (%s) -> fails and is not repeated; the next call works",
  async (_n, status, body) => {
    const { handler, lose } = forgetful(status, body);
    const server = await serve(handler);
    const { connection } = await connect(server);
    lose();
    const error = await failed(call(connection));
    expect(error.code).toBe("server_died");
    expect(error.message).toBe(
      `web/echo did not run: ${server.url} no longer knows this session; it may have been restarted.`,
    );
    expect(error.remedy).toBe("Repeat the call: the next one opens a new session.");
    expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
    expect((await call(connection)).content).toEqual([{ type: "text", text: '{"a":1}' }]);
    await connection.close(soon);
  },
);

/** Counts how often the lists of the server may have changed. */
function countChanges() {
  const told = { changes: 0, onListChanged: () => void told.changes++ };
  return told;
}

test("a call in a lost session -> its lists may have changed, told once", async () => {
  const { handler, lose } = forgetful(404, "{}");
  const server = await serve(handler);
  const told = countChanges();
  const { connection } = await connect(server, {}, { onListChanged: told.onListChanged });
  await call(connection);
  expect(told.changes).toBe(0);
  lose();
  await Promise.all([failed(call(connection)), failed(call(connection))]);
  expect(told.changes).toBe(1);
  await call(connection);
  expect(told.changes).toBe(1);
  await connection.close(soon);
});

test("the stream of notifications learns that the session is lost -> told without a request", async () => {
  let isLost = false;
  const server = await serve((asked, response) => {
    if (asked.http === "GET" && isLost) response.writeHead(404).end();
    else if (asked.http === "GET") {
      isLost = true;
      startEvents(response).end("retry: 5\n\n");
    } else answerWell(asked, response, { "mcp-session-id": "s" });
  });
  const changed = Promise.withResolvers<void>();
  const { connection } = await connect(server, {}, { onListChanged: changed.resolve });
  await changed.promise;
  await connection.close(soon);
});

test("a session is lost while its question is open -> the question is withdrawn, and the new session gets the answer to its own alone", async () => {
  let session = 1;
  const streams: ServerResponse[] = [];
  const answers: [session: unknown, message: unknown][] = [];
  const answered = Promise.withResolvers<void>();
  const server = await serve((asked, response) => {
    const { http, headers, message } = asked;
    const id = `session-${session}`;
    if (message.method === "initialize") return answerWell(asked, response, { "mcp-session-id": id });
    if (headers["mcp-session-id"] !== id) return response.writeHead(404).end();
    if (http === "GET") {
      // Each session counts its questions from 0.
      const params = { message: id, requestedSchema: { type: "object", properties: {} } };
      const question = { jsonrpc: "2.0", id: 0, method: "elicitation/create", params };
      startEvents(response).write(`retry: 5\ndata: ${JSON.stringify(question)}\n\n`);
      streams.push(response);
      return undefined;
    }
    if (message.id === 0 && message.method === undefined) {
      answers.push([id, message]);
      answered.resolve();
    }
    return answerWell(asked, response);
  });

  const open: { params: unknown; signal: AbortSignal; settle: (action: "accept" | "cancel") => void }[] = [];
  const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const withdrawn = Promise.withResolvers<void>();
  const asks: ServerAsks = {
    isOpen: false,
    watch: () => () => undefined,
    may: { ask: true, sample: false },
    sample: async () => ({}),
    create: async (params, signal) => {
      const { promise, resolve } = Promise.withResolvers<"accept" | "cancel">();
      open.push({ params, signal, settle: resolve });
      signal.addEventListener("abort", () => withdrawn.resolve());
      asked[open.length - 1]?.resolve();
      return { action: await promise };
    },
    required: async () => "none",
    callBegins: () => () => undefined,
  };
  const changed = Promise.withResolvers<void>();
  const { connection } = await connect(server, {}, { asks, onListChanged: changed.resolve });
  await asked[0]?.promise;
  session++;
  for (const stream of streams) stream.end();
  await Promise.all([changed.promise, withdrawn.promise]);
  expect(open[0]?.signal.aborted).toBe(true);
  await connection.listTools(never);
  await asked[1]?.promise;
  open[0]?.settle("cancel");
  open[1]?.settle("accept");
  await answered.promise;
  // What is sent later than an answer that should not be sent.
  await connection.listTools(never);
  expect(open.map(({ params }) => params)).toMatchObject([
    { message: "session-1" },
    { message: "session-2" },
  ]);
  expect(open[1]?.signal.aborted).toBe(false);
  expect(answers).toEqual([["session-2", { jsonrpc: "2.0", id: 0, result: { action: "accept" } }]]);
  await connection.close(soon);
});

/**
 * A server whose sessions bear numbers, and which begins each call's answer with `begin`. After `lose` it knows a new session
 * alone, and there it opens a stream without a word for an event that it does not know, as a server of the SDK does.
 */
async function restarting(
  begin: (response: ServerResponse, id: number | string) => void,
  more: Handler = answerWell,
) {
  let session = 1;
  const notifications: ServerResponse[] = [];
  const server = await serve((asked, response, nth) => {
    const { http, headers, message } = asked;
    const id = `session-${session}`;
    if (message.method === "initialize") answerWell(asked, response, { "mcp-session-id": id });
    else if (headers["mcp-session-id"] !== id) response.writeHead(404).end();
    else if (http === "GET") {
      startEvents(response).write("retry: 5\n\n");
      if (headers["last-event-id"] === undefined) notifications.push(response);
    } else if (message.method === "tools/call") begin(response, message.id ?? 0);
    else more(asked, response, nth);
  });
  return {
    server,
    notifications,
    lose: () => void session++,
    resumes: () => server.asked.filter(({ headers }) => headers["last-event-id"] === "41"),
    /** Settles when the server has got a call. */
    called: () => expect.poll(() => server.log).toContain("POST tools/call"),
  };
}

/** An answer of which nothing is known but the id behind which it goes on, and a wait that no test lasts for. */
const beginsAndEnds = (response: ServerResponse): void =>
  void startEvents(response).end("id: 41\nretry: 30000\ndata:\n\n");

const FORGOTTEN = {
  code: "server_died",
  message: expect.stringMatching(
    /^web\/echo got no answer: \S+ has forgotten the session of this request; it may have been restarted\.$/,
  ),
  remedy: "The call may have run. The next call connects again.",
};

/** A call that no time limit ends while a test runs. */
const long = (connection: Connection, signal = never) =>
  failed(call(connection, { timeoutMs: 600_000, signal }));

describe("the session of an open call is lost", () => {
  test("its stream is broken and waits to be resumed -> the call fails at once, and is neither resumed nor repeated", async () => {
    const { server, lose, resumes, called } = await restarting(beginsAndEnds);
    const { connection } = await connect(server);
    const calling = long(connection);
    await called();
    lose();
    expect(await connection.listTools(never)).toHaveLength(1);
    expect(await calling).toMatchObject(FORGOTTEN);
    expect(resumes()).toEqual([]);
    expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
    await connection.close(soon);
  });

  test("the attempt to resume it learns of the loss -> asked in its own session alone", async () => {
    const { server, lose, resumes } = await restarting((response) => {
      lose();
      startEvents(response).end("id: 41\nretry: 5\ndata:\n\n");
    });
    const reopened = Promise.withResolvers<unknown>();
    const { connection } = await connect(
      server,
      {},
      { onListChanged: () => reopened.resolve(connection.listTools(never)) },
    );
    expect(await long(connection)).toMatchObject(FORGOTTEN);
    expect(await reopened.promise).toHaveLength(1);
    expect(resumes().map(({ headers }) => headers["mcp-session-id"])).toEqual(["session-1"]);
    await connection.close(soon);
  });

  test("the stream of notifications learns of the loss -> the call fails at once", async () => {
    const { server, lose, notifications, called } = await restarting(beginsAndEnds);
    const { connection } = await connect(server);
    await expect.poll(() => notifications.length).toBe(1);
    const calling = long(connection);
    await called();
    lose();
    notifications[0]?.end();
    expect(await calling).toMatchObject(FORGOTTEN);
    await connection.close(soon);
  });

  test("its stream is open -> it brings the answer all the same", async () => {
    const open: [ServerResponse, id: number | string][] = [];
    const { server, lose } = await restarting((response, id) => {
      startEvents(response).write("id: 41\ndata:\n\n");
      open.push([response, id]);
    });
    const { connection } = await connect(server);
    const calling = call(connection);
    await expect.poll(() => open.length).toBe(1);
    lose();
    await connection.listTools(never);
    for (const [response, id] of open) response.end(`data: ${resultOf({ id, method: "tools/call" })}\n\n`);
    expect((await calling).content).toHaveLength(1);
    await connection.close(soon);
  });

  test("its stream is open and breaks later -> the call fails at once, and is not resumed", async () => {
    const open: ServerResponse[] = [];
    const { server, lose, resumes } = await restarting((response) => {
      startEvents(response).write("id: 41\nretry: 5\ndata:\n\n");
      open.push(response);
    });
    const { connection } = await connect(server);
    const calling = long(connection);
    await expect.poll(() => open.length).toBe(1);
    lose();
    await connection.listTools(never);
    for (const response of open) response.end();
    expect(await calling).toMatchObject(FORGOTTEN);
    expect(resumes()).toEqual([]);
    await connection.close(soon);
  });

  test("its answer was to come on the stream of notifications -> the call fails at once", async () => {
    const { server, lose, called } = await restarting((response) => response.writeHead(202).end());
    const { connection } = await connect(server);
    const calling = long(connection);
    await called();
    lose();
    await connection.listTools(never);
    expect(await calling).toMatchObject(FORGOTTEN);
    await connection.close(soon);
  });

  test("the call is cancelled then -> the new session is told of no request that it does not know", async () => {
    const { server, lose, called } = await restarting(
      (response) => void startEvents(response).write("id: 41\ndata:\n\n"),
    );
    const { connection } = await connect(server);
    const abort = new AbortController();
    const calling = long(connection, abort.signal);
    await called();
    lose();
    await connection.listTools(never);
    abort.abort();
    expect((await calling).code).toBe("cancelled");
    // What is sent later than a message that should not be sent.
    await connection.listTools(never);
    expect(server.log).not.toContain("POST notifications/cancelled");
    await connection.close(soon);
  });

  test("a request without effect whose stream is broken -> repeated in the new session", async () => {
    let begun = 0;
    const { server, lose } = await restarting(
      (response) => response.writeHead(202).end(),
      (asked, response) => {
        if (asked.message.method === "tools/list" && ++begun === 1) beginsAndEnds(response);
        else answerWell(asked, response);
      },
    );
    const { connection } = await connect(server);
    const listing = connection.listTools(never);
    await expect.poll(() => begun).toBe(1);
    lose();
    await failed(call(connection));
    expect(await listing).toHaveLength(1);
    expect(begun).toBe(2);
    await connection.close(soon);
  });
});

test("a call waits for a new session and is cancelled -> the server, which never got it, is told nothing", async () => {
  let isLost = false;
  const held = Promise.withResolvers<() => void>();
  const server = await serve((asked, response) => {
    const answerNow = (): void => answerWell(asked, response, { "mcp-session-id": "s" });
    if (!isLost) answerNow();
    else if (asked.message.method === "initialize") held.resolve(answerNow);
    else response.writeHead(404).end();
  });
  const { connection } = await connect(server);
  isLost = true;
  await failed(call(connection));
  const abort = new AbortController();
  const calling = long(connection, abort.signal);
  const open = await held.promise;
  abort.abort();
  expect((await calling).code).toBe("cancelled");
  isLost = false;
  open();
  // What is sent later than a message that should not be sent.
  for (let i = 0; i < 3; i++) await connection.listTools(never);
  expect(server.log).not.toContain("POST notifications/cancelled");
  expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
  await connection.close(soon);
});

test("the answer comes on the stream of notifications while the broken one is being resumed -> the resumed stream is ended", async () => {
  let id: number | string = 0;
  const streams: ServerResponse[] = [];
  const resumed = Promise.withResolvers<ServerResponse>();
  const ended = Promise.withResolvers<void>();
  const server = await serve((asked, response) => {
    if (asked.message.method === "tools/call") {
      id = asked.message.id ?? 0;
      startEvents(response).end("id: 41\nretry: 5\ndata:\n\n");
    } else if (asked.headers["last-event-id"] === "41") {
      response.once("close", ended.resolve);
      resumed.resolve(response);
    } else if (asked.http === "GET") streams.push(startEvents(response));
    else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  const calling = call(connection);
  const stream = await resumed.promise;
  await expect.poll(() => streams.length).toBe(1);
  for (const open of streams) open.write(`data: ${resultOf({ id, method: "tools/call" })}\n\n`);
  expect((await calling).content).toHaveLength(1);
  startEvents(stream).write(": nothing more\n\n");
  await ended.promise;
  await connection.close(soon);
});

test("a server of the SDK with one transport starts anew -> a list and a call find it again", async () => {
  const begin = async () => {
    const server = new McpServer({ name: "real", version: "1" });
    server.registerTool("echo", {}, async () => ({ content: [{ type: "text", text: "here" }] }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() });
    // The SDK's own types of a transport differ under exactOptionalPropertyTypes.
    await server.connect(transport as never);
    return transport;
  };
  let transport = await begin();
  const http = createServer((request, response) => void transport.handleRequest(request, response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  onCleanup(async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  const options = connectOptions({ url });
  const connection = await connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  transport = await begin();
  expect(await failed(call(connection))).toMatchObject({
    code: "server_died",
    remedy: "Repeat the call: the next one opens a new session.",
  });
  expect((await call(connection)).content).toEqual([{ type: "text", text: "here" }]);
  transport = await begin();
  expect(await connection.listTools(never)).toHaveLength(1);
  await connection.close(soon);
});

test("a server loses each new session at once -> a list fails after one repetition", async () => {
  const server = await serve((asked, response) => {
    if (asked.message.method === "initialize") answerWell(asked, response, { "mcp-session-id": "gone" });
    else if (asked.message.method === "tools/list") response.writeHead(404).end();
    else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  await failed(connection.listTools(never));
  expect(server.log.filter((line) => line === "POST tools/list")).toHaveLength(2);
  await connection.close(soon);
});

test("a lost session, and a new one needs a sign-in -> needs_auth", async () => {
  let lost = false;
  const server = await serve((asked, response) => {
    if (lost) response.writeHead(asked.message.method === "initialize" ? 401 : 404).end();
    else answerWell(asked, response, { "mcp-session-id": "s" });
  });
  const { connection } = await connect(server);
  lost = true;
  expect((await failed(connection.listTools(never))).code).toBe("needs_auth");
  await connection.close(soon);
});

test.each(["999999999", "-5", "Fri, 31 Dec 9999 23:59:59 GMT"])(
  "a call answered 429 with Retry-After: %s -> refused at once, with a time that is bounded",
  async (after) => {
    const server = await serve(onCall((response) => response.writeHead(429, { "retry-after": after }).end()));
    const { connection } = await connect(server);
    const error = await failed(call(connection));
    const askedMs = after === "-5" ? 0 : LIMITS.longestTimerMs;
    expect(error).toMatchObject({ code: "call_rejected", data: { retryAfterMs: askedMs } });
    expect(error.message).toContain(`asks to wait ${Math.ceil(askedMs / 1_000)} s`);
    expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
    await connection.close(soon);
  },
);

test.each<[number, string, string]>([
  [401, "needs_auth", "was refused: URL answered 401: told."],
  [400, "call_rejected", "was refused: URL answered status 400: told."],
  [429, "call_rejected", "was refused: URL answered status 429: told."],
  [500, "server_died", "failed: URL answered status 500: told."],
])("a call answered %i -> %s after one request: %s", async (status, code, sentence) => {
  const server = await serve(onCall((response) => response.writeHead(status).end("told")));
  const { connection } = await connect(server);
  const error = await failed(call(connection));
  expect(error.code).toBe(code);
  expect(error.message).toBe(`web/echo ${sentence.replace("URL", server.url)}`);
  expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
  await connection.close(soon);
});

const WANTS_WRITE = 'Bearer error="insufficient_scope", scope="write"';
test.each<[number, string, method: string, sentence: string, losses: number]>([
  [401, "Bearer", "tools/call", "(401).", 1],
  [403, WANTS_WRITE, "tools/call", "(403: it wants more rights: write).", 0],
  [403, `${WANTS_WRITE}, error_description="ask Ann"`, "resources/read", "write (ask Ann)).", 0],
  [403, 'Bearer error="insufficient_scope"', "tools/call", "more rights: it does not say which).", 0],
  [403, 'Bearer error="invalid_token"', "tools/call", "(403).", 1],
  [403, WANTS_WRITE, "tools/list", "write).", 1],
])(
  "%i %s to %s over an open connection -> needs_auth, %s; the credentials are lost: %s",
  async (status, challenge, method, sentence, losses) => {
    let isAsked = false;
    const server = await serve((asked, response) => {
      if (!isAsked || asked.message.method !== method) return answerWell(asked, response);
      return response.writeHead(status, { "www-authenticate": challenge }).end();
    });
    const lost: ThreadsError[] = [];
    const headers = { authorization: "Bearer t0ken" };
    const { connection } = await connect(server, { headers }, { onAuthLost: (error) => lost.push(error) });
    isAsked = true;
    const asking = {
      "tools/call": () => call(connection),
      "tools/list": () => connection.listTools(never),
      "resources/read": () =>
        connection.readResource({
          tool: "r",
          uri: "a://b",
          timeoutMs: 30_000,
          signal: never,
          onProgress: () => undefined,
        }),
    }[method] as () => Promise<unknown>;
    const error = await failed(asking());
    expect(error).toMatchObject({ code: "needs_auth", data: { status, reason: "key-refused" } });
    expect(error.message).toContain("the headers.authorization of");
    expect(error.message.endsWith(sentence)).toBe(true);
    isAsked = false;
    await connection.listTools(never);
    expect(lost).toHaveLength(losses);
    await connection.close(soon);
  },
);

/** A server with two pages of tools that answers `refuse` for the second one as often as it is told. */
async function pagedServer(times: number, refuse: (response: ServerResponse) => void) {
  let refusals = 0;
  return serve((asked, response) => {
    const { method, id, params } = asked.message as { method?: string; id?: number; params?: object };
    if (method !== "tools/list") return answerWell(asked, response);
    const isSecond = params !== undefined && "cursor" in params;
    if (isSecond && refusals++ < times) return refuse(response);
    const tools = [{ name: isSecond ? "second" : "first", inputSchema: { type: "object" } }];
    const result = { tools, ...(isSecond ? {} : { nextCursor: "2" }) };
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
}

describe("a server with too much to do refuses a page of a list", () => {
  const pages = ({ log }: TestServer): number => log.filter((line) => line === "POST tools/list").length;

  test.each([
    ["429 with Retry-After", 429, { "retry-after": "1" }, 1_000],
    ["503", 503, {}, 300],
    ["504", 504, {}, 300],
    ["524", 524, {}, 300],
  ])(
    "%s -> that page alone is asked for again, no sooner than it may be",
    async (_n, status, headers, ms) => {
      const server = await pagedServer(1, (response) => response.writeHead(status, headers).end("busy"));
      const { connection } = await connect(server);
      const startedAt = performance.now();
      expect((await connection.listTools(never)).map(({ name }) => name)).toEqual(["first", "second"]);
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(ms - 5);
      expect(pages(server)).toBe(3);
      await connection.close(soon);
    },
  );

  test("each time -> asked three times, and the failure says that the server is busy", async () => {
    const server = await pagedServer(9, (response) => response.writeHead(502).end("bad gateway"));
    const { connection } = await connect(server);
    expect(await failed(connection.listTools(never))).toMatchObject({
      code: "connect_failed",
      data: { status: 502, reason: "busy" },
    });
    expect(pages(server)).toBe(4);
    await connection.close(soon);
  });

  test.each([500, 501])("%i, which no wait changes -> not asked again", async (status) => {
    const server = await pagedServer(9, (response) => response.writeHead(status).end("broken"));
    const { connection } = await connect(server);
    expect((await failed(connection.listTools(never))).data).toEqual({ server: "web", status });
    expect(pages(server)).toBe(2);
    await connection.close(soon);
  });

  test.each([
    ["a minute", "60", 60_000],
    ["31 years", "999999999", LIMITS.longestTimerMs],
    ["the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", LIMITS.longestTimerMs],
  ])("it asks for %s -> not asked again", async (_name, after, retryAfterMs) => {
    const headers = { "retry-after": after };
    const server = await pagedServer(9, (response) => response.writeHead(429, headers).end());
    const { connection } = await connect(server);
    expect((await failed(connection.listTools(never))).data).toMatchObject({ retryAfterMs });
    expect(pages(server)).toBe(2);
    await connection.close(soon);
  });

  test("nobody wants the list any more, or the connection ends -> not asked again, and the server is told nothing", async () => {
    const server = await pagedServer(9, (response) => response.writeHead(429, { "retry-after": "2" }).end());
    const { connection } = await connect(server);
    const unwanted = new AbortController();
    const lists = [unwanted.signal, never].map((signal) => failed(connection.listTools(signal)));
    await expect.poll(() => pages(server)).toBe(4);
    unwanted.abort();
    await lists[0];
    await connection.close(soon);
    await lists[1];
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    expect(pages(server)).toBe(4);
    expect(server.log.filter((line) => line.includes("cancelled"))).toEqual([]);
  });
});

test("a JSON-RPC error with status 400 -> call_rejected", async () => {
  const server = await serve(
    onCall((response, id) =>
      response
        .writeHead(400, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_602, message: "no such thing" } })),
    ),
  );
  const { connection } = await connect(server);
  expect(await failed(call(connection))).toMatchObject({ code: "call_rejected", data: { rpcCode: -32_602 } });
  await connection.close(soon);
});

const PROGRESS = JSON.stringify({
  jsonrpc: "2.0",
  method: "notifications/message",
  params: { level: "info" },
});
test.each<[string, (response: ServerResponse) => void]>([
  [
    "JSON that breaks off",
    (response) => response.writeHead(200, { "content-type": "application/json" }).write("{"),
  ],
  ["a stream that breaks off", (response) => startEvents(response).write(`data: ${PROGRESS}\n\n`)],
])("a call's answer is %s -> that call fails at once, and no other request", async (_name, begin) => {
  const server = await serve(
    onCall((response) => {
      begin(response);
      setTimeout(() => response.destroy(), 20);
    }),
  );
  const { connection } = await connect(server);
  const error = await failed(call(connection));
  expect(error.code).toBe("server_died");
  expect(error.message).toContain("closed the connection without an answer");
  expect(error.remedy).toContain("The call may have run");
  expect(await connection.listTools(never)).toHaveLength(1);
  await connection.close(soon);
});

test("a call's stream ends without the answer and without ids -> the call fails at once", async () => {
  const server = await serve(onCall((response) => startEvents(response).end(`data: ${PROGRESS}\n\n`)));
  const { connection } = await connect(server);
  expect((await failed(call(connection))).code).toBe("server_died");
  await connection.close(soon);
});

test("a broken stream with ids -> resumed after the server's retry time", async () => {
  let id: number | string | undefined;
  const server = await serve((asked, response) => {
    const { message, http, headers } = asked;
    if (message.method === "tools/call") {
      id = message.id;
      startEvents(response).end("id: 41\nretry: 5\ndata:\n\n");
    } else if (http === "GET" && headers["last-event-id"] === "41") {
      startEvents(response).end(`id: 42\ndata: ${resultOf({ id: id ?? 0, method: "tools/call" })}\n\n`);
    } else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(1);
  await connection.close(soon);
});

test.each([
  ["the server still holds the old connection", 409, "Conflict: Stream already has an active connection"],
  ["a proxy does not reach the server for a while", 502, "Bad Gateway"],
])("a broken stream, and %s (%i) -> asked until the answer comes", async (_why, status, text) => {
  let id: number | string | undefined;
  const server = await serve((asked, response, nth) => {
    const { message, http, headers } = asked;
    if (message.method === "tools/call") {
      id = message.id;
      startEvents(response).end("id: 41\nretry: 5\ndata:\n\n");
    } else if (http === "GET" && headers["last-event-id"] === "41") {
      if (nth < 5) response.writeHead(status).end(text);
      else startEvents(response).end(`id: 42\ndata: ${resultOf({ id: id ?? 0, method: "tools/call" })}\n\n`);
    } else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  await connection.close(soon);
});

test("a stream that breaks in the middle of the answer's event -> resumed before that event", async () => {
  let id: number | string | undefined;
  const server = await serve((asked, response) => {
    const { message, http, headers } = asked;
    if (message.method === "tools/call") {
      id = message.id;
      const stream = startEvents(response);
      stream.write('id: 41\nretry: 5\ndata:\n\nid: 42\ndata: {"jso', () => response.destroy());
    } else if (http === "GET" && headers["last-event-id"] === "41") {
      startEvents(response).end(`id: 42\ndata: ${resultOf({ id: id ?? 0, method: "tools/call" })}\n\n`);
    } else answerWell(asked, response);
  });
  const { connection } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  await connection.close(soon);
});

test.each([
  ["CR only", "\r"],
  ["CRLF", "\r\n"],
])("events with line ends %s -> arrive while the stream stays open", async (_name, end) => {
  const server = await serve(
    onCall((response, id) => {
      startEvents(response).write(
        `event: message${end}data: ${resultOf({ id: id ?? 0, method: "tools/call" })}${end}${end}`,
      );
    }),
  );
  const { connection } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  await connection.close(soon);
});

test(`an event of ${MEBIBYTES} MiB in small pieces -> arrives, and stays in the thread for long messages`, async () => {
  const text = "x".repeat(1024 * 1024);
  const server = await serve(
    onCall((response, id) => {
      const stream = startEvents(response);
      stream.write(`data: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
      for (let i = 0; i < MEBIBYTES; i++) stream.write(text);
      stream.end('"}]}}\n\n');
    }),
  );
  const { connection } = await connect(server);
  const bytes: number[] = [];
  const options = {
    server: "slow",
    tool: "echo",
    secrets: { values: [], named: [] },
    readResource: () => undefined,
    redact: (one: string) => one,
    durationMs: 1,
    guard: { maxBytes: 50_000, maxLines: 2_000 },
    toon: false,
    wantsStructured: false,
    store: {
      save: async (parts: readonly (string | Uint8Array)[]) => {
        bytes.push(inBytes(parts).reduce((all, part) => all + part.byteLength, 0));
        return { path: "/saved", bytes: bytes[0] };
      },
    },
  };
  const result = await call(connection);
  expect(heldIn(result)).toBeDefined();
  await shapeAnywhere(result, options as never);
  expect(bytes[0]).toBe(MEBIBYTES * text.length);
  await connection.close(soon);
});

test.each([
  ["JSON", "application/json"],
  ["an event", "text/event-stream"],
])("a call's answer is %s without end -> message_too_large", async (_name, type) => {
  const server = await serve(
    onCall((response) => {
      response.writeHead(200, { "content-type": type });
      const chunk = Buffer.alloc(1024 * 1024, "x");
      const more = (): void => {
        if (response.destroyed) return;
        if (response.write(chunk)) setImmediate(more);
        else response.once("drain", more);
      };
      response.write(type === "application/json" ? '"' : "data: ");
      more();
    }),
  );
  const { connection } = await connect(server, {}, { maxMessageBytes: MEBIBYTES * 1024 * 1024 });
  const error = await failed(call(connection));
  const limitBytes = MEBIBYTES * 1024 * 1024;
  expect(error).toMatchObject({ code: "message_too_large", data: { server: "web", limitBytes } });
  expect(await connection.listTools(never)).toHaveLength(1);
  await connection.close(soon);
});

test.each(["gzip", "br"])("an answer compressed with %s -> read", async (encoding) => {
  const { gzipSync, brotliCompressSync } = await import("node:zlib");
  const pack = encoding === "br" ? brotliCompressSync : gzipSync;
  const server = await serve(
    onCall((response, id) =>
      response
        .writeHead(200, { "content-type": "application/json", "content-encoding": encoding })
        .end(pack(resultOf({ id: id ?? 0, method: "tools/call" }))),
    ),
  );
  const { connection } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  await connection.close(soon);
});

test("a cancelled call -> its request ends, and the server gets notifications/cancelled", async () => {
  const abort = new AbortController();
  let ended = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const server = await serve(
    onCall((response) => {
      response.once("close", () => ended());
      abort.abort();
    }),
  );
  const { connection } = await connect(server);
  expect((await failed(call(connection, { signal: abort.signal }))).code).toBe("cancelled");
  await gone;
  await expect.poll(() => server.log).toContain("POST notifications/cancelled");
  await connection.close(soon);
});

test.each([400, 404, 405, 501])("GET is answered with %i -> no stream, no note", async (status) => {
  const server = await serve((asked, response) => {
    if (asked.http === "GET") response.writeHead(status).end("no");
    else answerWell(asked, response);
  });
  const { connection, notes } = await connect(server);
  await call(connection);
  await expect.poll(() => server.log).toContain("GET");
  await call(connection);
  expect(notes).toEqual([]);
  expect(server.log.filter((line) => line === "GET")).toHaveLength(1);
  await connection.close(soon);
});

test("GET is answered with 404 in a session that is open, as by a server without that route -> the session stays", async () => {
  const server = await serve((asked, response) => {
    if (asked.http === "GET") response.writeHead(404).end("Cannot GET /mcp");
    else answerWell(asked, response, { "mcp-session-id": "s" });
  });
  const told = countChanges();
  const { connection } = await connect(server, {}, { onListChanged: told.onListChanged });
  await expect.poll(() => server.log).toContain("GET");
  for (let i = 0; i < 3; i++) await call(connection);
  expect(server.log.filter((line) => line === "POST initialize" || line === "GET")).toEqual([
    "POST initialize",
    "GET",
  ]);
  expect(told.changes).toBe(0);
  await connection.close(soon);
});

test("a notification stream drops again and again -> opened again with the last id, one note", async () => {
  const server = await serve((asked, response, nth) => {
    if (asked.http !== "GET") answerWell(asked, response);
    else if (nth < 4) startEvents(response).end(`id: ${nth}\nretry: 5\ndata: ${PROGRESS}\n\n`);
    else startEvents(response).write(": still here\n\n");
  });
  const { connection, notes } = await connect(server);
  const gets = (): (string | undefined)[] =>
    server.asked
      .filter(({ http }) => http === "GET")
      .map(({ headers }) => headers["last-event-id"] as string);
  await expect.poll(gets).toEqual([undefined, "0", "1", "2", "3"]);
  expect(notes).toEqual(["ended its notification stream; it is opened again from now on"]);
  await connection.close(soon);
});

test.each<[string, (response: ServerResponse) => void]>([
  [
    "409, as while it holds the old one",
    (response) => response.writeHead(409).end("Conflict: Only one SSE stream is allowed per session"),
  ],
  [
    "a redirect to another server, as by a hotel's network",
    (response) => response.writeHead(302, { location: "http://portal.test/" }).end(),
  ],
])("a notification stream that was open is refused with %s -> opened again later", async (_name, refuse) => {
  const server = await serve((asked, response, nth) => {
    if (asked.http !== "GET") answerWell(asked, response, { "mcp-session-id": "s" });
    else if (nth === 1) refuse(response);
    else if (nth === 0) startEvents(response).end(`data: ${PROGRESS}\n\n`);
    else startEvents(response).write(": still here\n\n");
  });
  const { connection } = await connect(server);
  const gets = (): number => server.log.filter((line) => line === "GET").length;
  await expect.poll(gets).toBe(3);
  await connection.close(soon);
});

test("an event that is not a message -> noted; the call works", async () => {
  const server = await serve(
    onCall((response, id) =>
      startEvents(response).end(
        `data: nonsense\n\ndata: ${resultOf({ id: id ?? 0, method: "tools/call" })}\n\n`,
      ),
    ),
  );
  const { connection, notes } = await connect(server);
  expect((await call(connection)).content).toHaveLength(1);
  expect(notes).toEqual(["sent an event that is not a JSON-RPC message: nonsense"]);
  await connection.close(soon);
});

test("close with a session -> DELETE with the session id", async () => {
  const server = await serve((asked, response) => answerWell(asked, response, { "mcp-session-id": "s-1" }));
  const { connection, closed } = await connect(server, { headers: { "x-key": "k" } });
  await connection.close(soon);
  await closed;
  expect(server.asked.at(-1)).toMatchObject({
    http: "DELETE",
    headers: { "mcp-session-id": "s-1", "x-key": "k" },
  });
});

test("close without a session -> no DELETE", async () => {
  const server = await serve(answerWell);
  const { connection } = await connect(server);
  await connection.close(soon);
  expect(server.log).not.toContain("DELETE");
});

test("close while the server answers neither DELETE nor the open call -> settles", async () => {
  const server = await serve((asked, response) => {
    if (asked.http === "DELETE" || asked.message.method === "tools/call") return;
    answerWell(asked, response, { "mcp-session-id": "s-1" });
  });
  const { connection } = await connect(server);
  const calling = failed(call(connection));
  await expect.poll(() => server.log).toContain("POST tools/call");
  await connection.close(soon);
  expect((await calling).code).toBe("server_died");
  expect(server.log.at(-1)).toBe("DELETE");
});

test("a legacy stream ends -> the connection closes, and its call fails at once", async () => {
  let stream: ServerResponse | undefined;
  const server = await serve(({ http, message }, response) => {
    if (http === "GET") {
      stream = startEvents(response);
      stream.write("event: endpoint\ndata: /messages\n\n");
      return;
    }
    response.writeHead(202).end();
    if (message.method === "tools/call") stream?.destroy();
    else if (message.id !== undefined) stream?.write(`data: ${resultOf(message)}\n\n`);
  });
  const { connection, closed } = await connect(server, { type: "sse" });
  const error = await failed(call(connection));
  await closed;
  expect(error.code).toBe("server_died");
  expect(error.message).toContain("closed the connection without an answer");
});

test("a legacy server refuses a message -> that call fails", async () => {
  let stream: ServerResponse | undefined;
  const server = await serve(({ http, message }, response) => {
    if (http === "GET") {
      stream = startEvents(response);
      stream.write("event: endpoint\ndata: /messages\n\n");
    } else if (message.method === "tools/call") response.writeHead(413).end("too long");
    else {
      response.writeHead(202).end();
      if (message.id !== undefined) stream?.write(`data: ${resultOf(message)}\n\n`);
    }
  });
  const { connection } = await connect(server, { type: "sse" });
  expect((await failed(call(connection))).message).toContain("answered status 413: too long");
  await connection.close(soon);
});
