/**
 * Owns: servers over HTTP that break rules or never finish. Each costs one request and its time, and no lasting
 * connection.
 */
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ErrorCode, ThreadsError } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import type { Connection } from "../../workers/connection/mcp/connection.ts";
import { ANSWERS_AT_A_TIME, connectHttp } from "../../workers/connection/transports/http/http.ts";
import { createHttpClient } from "../../workers/connection/web/client.ts";

import {
  answerWell,
  connectOptions,
  type Message,
  resultOf,
  serve,
  startEvents,
} from "../support/http-server.ts";
import { answerPlainly, badly, type RawAnswer, serveRaw, trickle } from "../support/raw-http.ts";

const never = new AbortController().signal;
const soon = { termMs: 1, killMs: 1 };
/** This limit ends hangs only. No test depends on how long a busy machine takes. */
const patient = { timeout: 20_000 };
const MEBIBYTE = 1024 * 1024;

afterEach(() => {
  vi.useRealTimers();
});

function connect(url: string, entry = {}) {
  const options = connectOptions({ url, ...entry }, { maxMessageBytes: MEBIBYTE, retryMs: [10, 20] });
  const connecting = connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  return { connecting, notes: options.notes };
}

const call = (connection: Connection, timeoutMs: number, signal = never) =>
  connection.callTool({ tool: "echo", args: { a: 1 }, timeoutMs, signal, onProgress: () => undefined });

const failed = (calling: Promise<unknown>): Promise<ThreadsError> =>
  calling.then(
    () => expect.unreachable("answered"),
    (error: ThreadsError) => error,
  );

const head = (status: string, ...headers: string[]): string =>
  `HTTP/1.1 ${status}\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n`;
const JSON_TYPE = "content-type: application/json";
const CHUNKED = "transfer-encoding: chunked";
const oneByte = (socket: Socket): void => trickle(socket, "1\r\n \r\n");
const many = Array.from({ length: 5_000 }, (_, i) => `x-${i}: some value`);
const long = `http://b.test/${"x".repeat(15_000)}`;

interface Row {
  answer: RawAnswer;
  /**
   * The error code of a failed call. A failed connect has `connect_timeout`, `connect_failed` or `message_too_large`.
   */
  code: ErrorCode;
  says: RegExp;
  /** The most requests for one connect. A call causes one request, or this many if the server redirects in a circle. */
  asked?: number;
  /** True if the answer is complete, so that its connection may serve the next request. */
  complete?: true;
}

const ROWS: Record<string, Row> = {
  "never answers": { answer: () => undefined, code: "call_timeout", says: /did not answer within/ },
  "sends headers without end": {
    answer: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      trickle(socket, "x: y\r\n");
    },
    code: "call_timeout",
    says: /did not answer within/,
  },
  "sends hints without end": {
    answer: (socket) => trickle(socket, head("103 Early Hints")),
    code: "call_timeout",
    says: /did not answer within/,
  },
  "sends a byte at a time": {
    answer: (socket) => {
      socket.write(head("200 OK", JSON_TYPE, CHUNKED));
      oneByte(socket);
    },
    code: "call_timeout",
    says: /did not answer within/,
  },
  "sends comments without end": {
    answer: (socket) => {
      socket.write(head("200 OK", "content-type: text/event-stream", CHUNKED));
      trickle(socket, "3\r\n:x\n\r\n");
    },
    code: "call_timeout",
    says: /did not answer within/,
  },
  "accepts, and never answers": {
    complete: true,
    answer: (socket) => socket.write(head("202 Accepted", "content-length: 0")),
    code: "call_timeout",
    says: /did not answer within/,
  },
  "accepts with a body without end, and never answers": {
    answer: (socket) => {
      socket.write(head("202 Accepted", CHUNKED));
      oneByte(socket);
    },
    code: "call_timeout",
    says: /did not answer within/,
  },
  "announces more than it sends": {
    answer: (socket, { message }) =>
      socket.write(`${head("200 OK", JSON_TYPE, "content-length: 9000")}${resultOf(message)}`),
    code: "call_timeout",
    says: /did not answer within/,
  },
  "announces more than it sends, and closes": {
    answer: (socket, { message }) =>
      socket.end(`${head("200 OK", JSON_TYPE, "content-length: 9000")}${resultOf(message)}`),
    code: "server_died",
    says: /closed the connection/,
  },
  "announces less than it sends": {
    answer: (socket, { message }) =>
      socket.write(`${head("200 OK", JSON_TYPE, "content-length: 20")}${resultOf(message)}`),
    code: "server_died",
    says: /got no result: .* this is not a JSON-RPC message/,
  },
  "answers another request": {
    complete: true,
    answer: (socket, { message }) => {
      const body = resultOf({ ...message, id: 1_000_000 });
      socket.write(`${head("200 OK", JSON_TYPE, `content-length: ${body.length}`)}${body}`);
    },
    code: "server_died",
    says: /got no result: .* this does not answer the request/,
  },
  "sends a chunk of no size": {
    answer: (socket) => socket.write(`${head("200 OK", JSON_TYPE, CHUNKED)}nonsense\r\n`),
    code: "server_died",
    says: /closed the connection|broke the rules of HTTP/,
  },
  "sends thousands of headers": {
    answer: (socket) => socket.write(head("200 OK", JSON_TYPE, ...many)),
    code: "server_died",
    says: /got no result: .* sent headers of more than 16 KiB/,
    asked: 1,
  },
  "drops each connection": {
    answer: (socket) => socket.destroy(),
    code: "server_died",
    says: /got no answer: .* closed the connection without an answer/,
    asked: 3,
  },
  "switches to another protocol": {
    answer: (socket) => socket.write(head("101 Go", "upgrade: x", "connection: upgrade")),
    code: "server_died",
    says: /got no answer/,
    asked: 3,
  },
  "fails with a body without end": {
    answer: (socket) => {
      socket.write(head("500 No", "content-type: text/plain", CHUNKED));
      oneByte(socket);
    },
    code: "server_died",
    says: /failed: .* answered status 500/,
    asked: 3,
  },
  "compresses nonsense": {
    complete: true,
    answer: (socket) =>
      socket.write(`${head("200 OK", JSON_TYPE, "content-encoding: gzip", "content-length: 8")}nonsense`),
    code: "server_died",
    says: /got no answer/,
    asked: 3,
  },
  "compresses a thousandfold": {
    complete: true,
    answer: (socket) => {
      const packed = gzipSync(Buffer.alloc(8 * MEBIBYTE, " "));
      socket.write(head("200 OK", JSON_TYPE, "content-encoding: gzip", `content-length: ${packed.length}`));
      socket.write(packed);
    },
    code: "message_too_large",
    says: /got no result: .* more than 1 MiB/,
    asked: 1,
  },
  "redirects to a long address of another server": {
    complete: true,
    answer: (socket) => socket.write(head("307 There", `location: ${long}`, "content-length: 0")),
    code: "server_died",
    says: /got no result: .* redirects to http:\/\/b\.test\/x+… \(15,014 characters\), .* another server/,
    asked: 1,
  },
  "redirects in a circle": {
    complete: true,
    answer: (socket, { path }) =>
      socket.write(head("308 There", `location: ${path === "/a" ? "/mcp" : "/a"}`, "content-length: 0")),
    code: "server_died",
    says: /got no result: .* redirects to .*, which is not followed after so many others/,
    asked: 6,
  },
};

const rows = Object.entries(ROWS).map(([name, row]) => ({ name, ...row }));
/** Time limit of a connect: short if it must end by it. */
const limitOf = ({ code }: Row): number => (code === "call_timeout" ? 300 : 30_000);
/** The same of a call, which must have reached the server by then, also on a busy machine. */
const callLimitOf = (row: Row): number => Math.max(1_500, limitOf(row));

describe("a call that a server", () => {
  test.each(rows)(
    "$name -> $code after one request; its connection is closed, the next call works",
    async (row) => {
      let isBad = true;
      const held = new Set<Socket>();
      const bad = badly("tools/call", (socket, ...asked) => {
        held.add(socket);
        row.answer(socket, ...asked);
      });
      const server = await serveRaw((...asked) => (isBad ? bad : answerPlainly)(...asked));
      const connection = await connect(server.url).connecting;
      const error = await failed(call(connection, callLimitOf(row)));
      expect(error.code).toBe(row.code);
      expect(error.message).toMatch(row.says);
      expect(error.message.length).toBeLessThan(1_000);
      const times = server.log.filter((line) => line === "POST tools/call").length;
      expect(times).toBe(row.name.includes("circle") ? row.asked : 1);
      isBad = false;
      expect((await call(connection, 30_000)).content).toHaveLength(1);
      const open = (): number => [...held].filter((socket) => !socket.destroyed).length;
      if (!row.complete) await expect.poll(open, patient).toBe(0);
      await connection.close(soon);
    },
  );
});

describe("a connect to a server that", () => {
  test.each(rows)("$name -> fails after few requests; no connection is left", async (row) => {
    const startupTimeoutMs = limitOf(row);
    const server = await serveRaw((socket, request, nth) =>
      (request.http === "POST" ? row.answer : answerPlainly)(socket, request, nth),
    );
    const error = await failed(connect(server.url, { startupTimeoutMs }).connecting);
    expect(error.code).toMatch(/^(connect_timeout|connect_failed|message_too_large)$/);
    expect(error.message).toMatch(/^web(: http| did not start)/);
    expect(error.message.length).toBeLessThan(1_000);
    expect(server.log.filter((line) => line !== "GET").length).toBeLessThanOrEqual(row.asked ?? 3);
    expect(server.log.filter((line) => line === "GET").length).toBeLessThanOrEqual(1);
    await expect.poll(() => server.open, patient).toBe(0);
  });
});

describe("a session over HTTP", () => {
  test("404 to everything after initialize -> each list costs two more sessions at most", async () => {
    const server = await serve(({ http, message }, response) => {
      const isStart = message.method === "initialize" || message.id === undefined;
      if (http === "POST" && isStart)
        answerWell({ http, message } as never, response, { "mcp-session-id": "s" });
      else response.writeHead(404).end();
    });
    const { connecting, notes } = connect(server.url);
    const connection = await connecting;
    for (let i = 0; i < 5; i++) await failed(connection.listTools(never));
    for (let i = 0; i < 5; i++) expect((await failed(call(connection, 30_000))).code).toBe("server_died");
    const count = (line: string): number => server.log.filter((found) => found === line).length;
    expect(count("POST initialize")).toBeLessThanOrEqual(1 + 5 * 2 + 5);
    expect(count("POST tools/list")).toBeLessThanOrEqual(10);
    expect(count("POST tools/call")).toBe(5);
    // Each session tries to open its stream once, and the server refuses it.
    expect(count("GET")).toBeLessThanOrEqual(count("POST initialize"));
    expect(new Set(notes)).toEqual(new Set(["had lost the session; a new one is open"]));
    await connection.close(soon);
  });

  test("404 to everything after initialize, also to notifications -> the connect fails and says so, once", async () => {
    const server = await serve((asked, response) => {
      if (asked.message.method === "initialize") answerWell(asked, response, { "mcp-session-id": "s" });
      else response.writeHead(404).end();
    });
    const error = await failed(connect(server.url).connecting);
    expect(error).toMatchObject({ code: "connect_failed" });
    expect(error.message).toBe(`web: ${server.url} no longer knows the session that it has just opened.`);
    expect(server.log.filter((line) => line.startsWith("POST"))).toHaveLength(2);
  });

  test("initialize of a new session gets 202 and no answer -> no session, the call ends by its time limit", async () => {
    let lost = false;
    const server = await serve((asked, response) => {
      if (!lost) return answerWell(asked, response, { "mcp-session-id": "s" });
      response.writeHead(asked.message.method === "initialize" ? 202 : 404).end();
    });
    const { connecting, notes } = connect(server.url);
    const connection = await connecting;
    lost = true;
    await failed(call(connection, 30_000));
    expect((await failed(call(connection, 300))).code).toBe("call_timeout");
    expect(notes).toEqual([]);
    await connection.close(soon);
  });

  test("a stream that ends at once with retry: 0 -> opened a few times, one note", async () => {
    const server = await serve((asked, response) => {
      if (asked.http === "GET") startEvents(response).end("retry: 0\n\n");
      else answerWell(asked, response);
    });
    const { connecting, notes } = connect(server.url);
    const startedAt = performance.now();
    const connection = await connecting;
    const gets = (): number => server.log.filter((line) => line === "GET").length;
    await expect.poll(gets, patient).toBe(2);
    // The second GET waits for two seconds or more; without a limit there would be thousands of GETs by now.
    expect(performance.now() - startedAt).toBeGreaterThan(1_500);
    expect(notes).toEqual(["ended its notification stream; it is opened again from now on"]);
    await connection.close(soon);
  });

  test("an answer whose stream closes again and again with retry: 0 -> resumed at most ten times a second", async () => {
    const server = await serve((asked, response) => {
      if (asked.message.method === "tools/call") startEvents(response).end("id: 1\nretry: 0\ndata:\n\n");
      else if (asked.headers["last-event-id"] === "1") startEvents(response).end(": nothing new\n\n");
      else answerWell(asked, response);
    });
    const connection = await connect(server.url).connecting;
    const startedAt = performance.now();
    expect((await failed(call(connection, 1_500))).code).toBe("call_timeout");
    const tookMs = performance.now() - startedAt;
    const gets = server.asked.filter(({ headers }) => headers["last-event-id"] === "1").length;
    expect(gets).toBeGreaterThanOrEqual(3);
    expect(gets).toBeLessThanOrEqual(tookMs / 100);
    await connection.close(soon);
  });

  test("an answer whose stream closes with retry: 500 -> resumed after that time, not before", async () => {
    const times: number[] = [];
    let called: Message = {};
    const server = await serve((asked, response) => {
      if (asked.message.method === "tools/call") {
        startEvents(response).end("id: 1\nretry: 500\ndata:\n\n");
        times.push(performance.now());
        called = asked.message;
      } else if (asked.headers["last-event-id"] === "1") {
        times.push(performance.now());
        startEvents(response).end(`data: ${resultOf(called)}\n\n`);
      } else answerWell(asked, response);
    });
    const connection = await connect(server.url).connecting;
    await call(connection, 30_000);
    const [closed = 0, resumed = 0] = times;
    expect(resumed - closed).toBeGreaterThan(450);
    await connection.close(soon);
  });

  test("the server sends hundreds of requests and accepts no reply -> few connections; calls work", async () => {
    const asks = Array.from({ length: LIMITS.serverRequestsOpen - 100 }, (_, id) =>
      JSON.stringify({ jsonrpc: "2.0", id, method: "ping" }),
    );
    const server = await serveRaw((socket, asked, nth) => {
      const { http, message } = asked;
      if (http === "GET") {
        socket.write(head("200 OK", "content-type: text/event-stream"));
        socket.write(asks.map((ask) => `data: ${ask}\n\n`).join(""));
      } else if (message.method !== undefined) answerPlainly(socket, asked, nth);
    });
    const connection = await connect(server.url).connecting;
    await expect
      .poll(() => server.log.filter((line) => line === "POST").length, patient)
      .toBeGreaterThanOrEqual(ANSWERS_AT_A_TIME);
    expect((await call(connection, 30_000)).content).toHaveLength(1);
    expect(server.mostOpen).toBeLessThan(2 * ANSWERS_AT_A_TIME);
    await connection.close(soon);
  });

  test("a notification that is never acknowledged -> given up after ten seconds", async () => {
    const server = await serveRaw((socket, asked, nth) => {
      if (asked.message.method === "notifications/cancelled" || asked.message.method === "tools/call") return;
      answerPlainly(socket, asked, nth);
    });
    const connection = await connect(server.url).connecting;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    for (let i = 0; i < 10; i++) {
      const abort = new AbortController();
      const calling = failed(call(connection, 600_000, abort.signal));
      abort.abort();
      await calling;
    }
    await expect
      .poll(() => server.log.filter((line) => line === "POST notifications/cancelled").length, patient)
      .toBe(10);
    expect(server.open).toBeGreaterThanOrEqual(10);
    vi.advanceTimersByTime(10_000);
    await expect.poll(() => server.open, patient).toBeLessThanOrEqual(1);
    await connection.close(soon);
  });
});

/**
 * A legacy server with one stream for all of its messages. `onPost` answers POSTs and may send messages on the
 * stream.
 */
function legacy(onPost: (socket: Socket, message: Message, say: (text: string) => void) => void): RawAnswer {
  let stream: Socket | undefined;
  const say = (text: string): void => void stream?.write(`data: ${text}\n\n`);
  return (socket, { http, message }) => {
    if (http !== "GET") return onPost(socket, message, say);
    stream = socket;
    socket.write(`${head("200 OK", "content-type: text/event-stream")}event: endpoint\ndata: /m\n\n`);
  };
}

const accept = (socket: Socket): void => void socket.write(head("202 Accepted", "content-length: 0"));

describe("a legacy server", () => {
  test.each<[string, (socket: Socket) => void]>([
    [
      "accepts requests with bodies without end",
      (socket) => socket.write(`${head("200 OK", CHUNKED)}1\r\n \r\n`),
    ],
    ["answers no POST of a request", () => undefined],
  ])("that %s -> calls work, and no connection stays open", async (_name, takes) => {
    const server = await serveRaw(
      legacy((socket, message, say) => {
        if (message.id === undefined) return accept(socket);
        takes(socket);
        say(resultOf(message));
      }),
    );
    const connection = await connect(server.url, { type: "sse" }).connecting;
    for (let i = 0; i < 20; i++) expect((await call(connection, 30_000)).content).toHaveLength(1);
    // One connection is the stream; one more may stay open for the next request.
    await expect.poll(() => server.open, patient).toBeLessThanOrEqual(2);
    expect(server.log.filter((line) => line === "POST tools/call")).toHaveLength(20);
    await connection.close(soon);
  });

  test("that ends each POST only after its answer -> a call longer than any limit of a POST works", async () => {
    let finish = (): void => undefined;
    const server = await serveRaw(
      legacy((socket, message, say) => {
        const answer = (): void => {
          if (message.id !== undefined) say(resultOf(message));
          accept(socket);
        };
        if (message.method === "tools/call") finish = answer;
        else answer();
      }),
    );
    const connection = await connect(server.url, { type: "sse" }).connecting;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const calling = call(connection, 600_000);
    await expect.poll(() => server.log.at(-1), patient).toBe("POST tools/call");
    vi.advanceTimersByTime(500_000);
    finish();
    expect((await calling).content).toHaveLength(1);
    await connection.close(soon);
  });

  test("that accepts no notification -> each is given up after ten seconds", async () => {
    const server = await serveRaw(
      legacy((socket, message, say) => {
        if (message.method === "notifications/cancelled" || message.method === "tools/call") return;
        accept(socket);
        if (message.id !== undefined) say(resultOf(message));
      }),
    );
    const connection = await connect(server.url, { type: "sse" }).connecting;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    for (let i = 0; i < 10; i++) {
      const abort = new AbortController();
      const calling = failed(call(connection, 600_000, abort.signal));
      await expect
        .poll(() => server.log.filter((line) => line === "POST tools/call").length, patient)
        .toBe(i + 1);
      abort.abort();
      await calling;
    }
    await expect
      .poll(() => server.log.filter((line) => line === "POST notifications/cancelled").length, patient)
      .toBe(10);
    // The connections of the cancelled calls close soon.
    await expect.poll(() => server.open, patient).toBeLessThanOrEqual(12);
    expect(server.open).toBeGreaterThanOrEqual(11);
    vi.advanceTimersByTime(10_000);
    await expect.poll(() => server.open, patient).toBeLessThanOrEqual(2);
    await connection.close(soon);
  });

  test("that sends hundreds of requests and accepts no reply -> few connections, calls work", async () => {
    const server = await serveRaw(
      legacy((socket, message, say) => {
        if (message.method === undefined) return;
        accept(socket);
        if (message.id !== undefined) say(resultOf(message));
        if (message.method !== "notifications/initialized") return;
        const asks = LIMITS.serverRequestsOpen - 100;
        for (let id = 0; id < asks; id++) say(JSON.stringify({ jsonrpc: "2.0", id, method: "ping" }));
      }),
    );
    const connection = await connect(server.url, { type: "sse" }).connecting;
    expect((await call(connection, 30_000)).content).toHaveLength(1);
    expect(server.mostOpen).toBeLessThan(2 * ANSWERS_AT_A_TIME);
    await connection.close(soon);
  });

  test("that has 1,000 unaccepted requests -> the next call fails without a request", async () => {
    const server = await serveRaw(
      legacy((socket, message, say) => {
        if (message.method === "tools/call") return;
        accept(socket);
        if (message.id !== undefined) say(resultOf(message));
      }),
    );
    const connection = await connect(server.url, { type: "sse" }).connecting;
    const abort = new AbortController();
    const calls = Array.from({ length: 1_000 }, () => failed(call(connection, 600_000, abort.signal)));
    const error = await failed(call(connection, 600_000));
    expect(error).toMatchObject({ code: "server_died" });
    expect(error.message).toBe(
      `web/echo did not run: ${server.url} was not asked: it has not taken 1000 requests yet.`,
    );
    abort.abort();
    await Promise.all(calls);
    await connection.close(soon);
  });
});

test("a proxy that never opens the tunnel -> closed after half a minute, even if the request was cancelled", async () => {
  const proxy = await serveRaw(() => undefined);
  const client = createHttpClient({ https_proxy: proxy.origin });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const abort = new AbortController();
  const asked = {
    method: "GET",
    url: new URL("https://mcp.test/"),
    headers: {},
    signal: abort.signal,
  } as const;
  const asking = client.request(asked).catch((error: Error) => error.name);
  await expect.poll(() => proxy.log, patient).toEqual(["CONNECT"]);
  abort.abort();
  expect(await asking).toBe("AbortError");
  expect(proxy.open).toBe(1);
  vi.advanceTimersByTime(30_000);
  await expect.poll(() => proxy.open, patient).toBe(0);
  client.close();
});
