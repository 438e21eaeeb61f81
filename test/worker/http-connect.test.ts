/** Owns: connects over HTTP to real servers on loopback: the chosen transport, retries, and the words of each error. */
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import { connectHttp } from "../../workers/connection/transports/http/http.ts";
import {
  answerWell,
  connectOptions,
  type Handler,
  type Message,
  resultOf,
  serve,
  startEvents,
} from "../support/http-server.ts";

type Entry = Record<string, unknown> & { url: string };

function connect(entry: Entry, more: Parameters<typeof connectOptions>[1] = {}) {
  const options = connectOptions(entry, more);
  const connecting = connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  return { connecting, notes: options.notes };
}

async function refusal(entry: Entry): Promise<ThreadsError> {
  return connect(entry, { retryMs: [10, 20] }).connecting.then(
    () => expect.unreachable("connected"),
    (error: ThreadsError) => error,
  );
}

/** A legacy SSE server at any path. A POST to the SSE address is answered with the status `post`. */
function legacyServer(post: number): Handler {
  let stream: Parameters<Handler>[1] | undefined;
  return ({ http, path, message }, response) => {
    if (http === "GET") {
      stream = startEvents(response);
      stream.write("event: endpoint\ndata: /messages?session=1\n\n");
    } else if (path !== "/messages?session=1") response.writeHead(post).end();
    else {
      response.writeHead(202).end();
      if (message.id !== undefined) stream?.write(`event: message\ndata: ${resultOf(message)}\n\n`);
    }
  };
}

test("connectHttp: a Streamable HTTP server -> connected, tools listed", async () => {
  const server = await serve(answerWell);
  const connection = await connect({ url: server.url, headers: { "X-Key": "k" } }).connecting;
  expect(connection.transport).toBe("http");
  expect((await connection.listTools(new AbortController().signal)).map(({ name }) => name)).toEqual([
    "echo",
  ]);
  expect(server.log.filter((line) => line !== "GET")).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
  ]);
  expect(server.asked.every(({ headers }) => headers["x-key"] === "k")).toBe(true);
  expect(server.asked.at(-1)?.headers["mcp-protocol-version"]).toMatch(/^20\d\d-/);
  await connection.close({ termMs: 1, killMs: 1 });
});

test.each([404, 405, 406, 415])("connectHttp: POST answers %i -> falls back to SSE", async (status) => {
  const server = await serve(legacyServer(status));
  const { connecting, notes } = connect({ url: server.url });
  const connection = await connecting;
  expect(connection.transport).toBe("sse");
  expect(await connection.listTools(new AbortController().signal)).toHaveLength(1);
  expect(notes).toEqual([`refuses Streamable HTTP (status ${status}), trying SSE`]);
  await connection.close({ termMs: 1, killMs: 1 });
});

test.each(["http", "streamable-http"])("connectHttp: type %s -> also falls back to SSE", async (type) => {
  const server = await serve(legacyServer(405));
  const connection = await connect({ type, url: server.url }).connecting;
  expect(connection.transport).toBe("sse");
  await connection.close({ termMs: 1, killMs: 1 });
});

test("connectHttp: type sse -> never tries Streamable HTTP", async () => {
  const server = await serve(legacyServer(500));
  const connection = await connect({ type: "sse", url: server.url }).connecting;
  expect(connection.transport).toBe("sse");
  expect(server.log[0]).toBe("GET");
  await connection.close({ termMs: 1, killMs: 1 });
});

test.each([400, 401, 403, 422, 503])("connectHttp: POST answers %i -> does not try SSE", async (status) => {
  const server = await serve((_asked, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end('{"error":"told"}'),
  );
  const error = await refusal({ url: server.url });
  expect(error.message).toContain("told");
  expect(server.log).not.toContain("GET");
});

test("connectHttp: SSE is refused too -> the error tells the first refusal", async () => {
  const server = await serve(({ http }, response) =>
    response.writeHead(http === "GET" ? 400 : 404).end("gone"),
  );
  const error = await refusal({ url: server.url });
  expect(error).toMatchObject({ code: "connect_failed", data: { server: "web", status: 404 } });
  expect(error.message).toBe(`web: ${server.url} answered status 404: gone.`);
});

test("connectHttp: a legacy server names another server for messages -> refused, nothing is sent there", async () => {
  const other = await serve(answerWell);
  const server = await serve(({ http }, response) => {
    if (http === "GET") startEvents(response).write(`event: endpoint\ndata: ${other.origin}/steal\n\n`);
    else response.writeHead(405).end();
  });
  const error = await refusal({ type: "sse", url: server.url });
  expect(error.message).toContain("names an address for messages at another server");
  expect(other.asked).toEqual([]);
});

const CHALLENGE = 'Bearer error="invalid_token", resource_metadata="https://a.test/meta", scope="read"';
test.each<[string, number, Record<string, string>, string]>([
  ["401", 401, {}, "needs_auth"],
  ["401 with a challenge", 401, { "www-authenticate": CHALLENGE }, "needs_auth"],
  ["403 with such a challenge", 403, { "www-authenticate": CHALLENGE }, "needs_auth"],
  ["403", 403, {}, "connect_failed"],
])("connectHttp: %s -> code and reason", async (_name, status, headers, code) => {
  const server = await serve((_asked, response) => response.writeHead(status, headers).end("no"));
  const error = await refusal({ url: server.url });
  expect(error.code).toBe(code);
  expect(error.data).toEqual({
    server: "web",
    status,
    reason: code !== "needs_auth" ? "rejected" : headers["www-authenticate"] ? "needs-auth" : "key-wanted",
    ...(headers["www-authenticate"]
      ? {
          challenge: {
            scheme: "Bearer",
            error: "invalid_token",
            resourceMetadata: "https://a.test/meta",
            scope: "read",
          },
        }
      : {}),
  });
  expect(server.log).toEqual(["POST initialize"]);
});

test("connectHttp: 401 -> the remedy says whether credentials are missing or refused", async () => {
  const server = await serve((_asked, response) => response.writeHead(401).end());
  const without = await refusal({ url: server.url });
  expect(without.remedy).toContain('write "bearerTokenEnv"');
  expect(without.data).toMatchObject({ reason: "key-wanted" });
  for (const [entry, key] of [
    [{ headers: { authorization: "Bearer key-1" } }, "headers.authorization"],
    [{ headers: { "x-api-key": "key-1", "x-other": "1" } }, "headers.x-api-key"],
    [{ headers: { Authorization: "key-1", Cookie: "a=b" } }, "headers.Authorization and the headers.Cookie"],
  ] as const) {
    const refused = await refusal({ url: server.url, ...entry });
    expect(refused.message).toContain(`refused the ${key} of `);
    expect(refused.data).toMatchObject({ reason: "key-refused", status: 401 });
  }
  const noKey = await refusal({ url: server.url, headers: { "x-client": "pi" } });
  expect(noKey.data).toMatchObject({ reason: "key-wanted" });
});

test.each([408, 429, 500, 502, 503])("connectHttp: POST answers %i -> tries twice more", async (status) => {
  const server = await serve((asked, response, nth) =>
    nth < 2 ? response.writeHead(status).end("busy") : answerWell(asked, response),
  );
  const { connecting, notes } = connect({ url: server.url }, { retryMs: [10, 20] });
  await (await connecting).close({ termMs: 1, killMs: 1 });
  expect(notes).toEqual([
    `could not be connected (status ${status}), trying again in 10 ms`,
    `could not be connected (status ${status}), trying again in 20 ms`,
  ]);
});

test("connectHttp: no Retry-After -> tries again after 300 ms and 1 s", async () => {
  const server = await serve((asked, response, nth) =>
    nth < 2 ? response.writeHead(503).end("busy") : answerWell(asked, response),
  );
  const { connecting, notes } = connect({ url: server.url });
  await (await connecting).close({ termMs: 1, killMs: 1 });
  expect(notes).toEqual([
    "could not be connected (status 503), trying again in 300 ms",
    "could not be connected (status 503), trying again in 1000 ms",
  ]);
});

test("connectHttp: three failed attempts -> gives up with the server's words", async () => {
  const server = await serve((_asked, response) => response.writeHead(503).end("maintenance"));
  const error = await refusal({ url: server.url });
  expect(error.message).toBe(`web: ${server.url} answered status 503: maintenance.`);
  expect(server.log).toEqual(Array(3).fill("POST initialize"));
});

test("connectHttp: Retry-After of one second -> waits as long", async () => {
  const server = await serve((asked, response, nth) =>
    nth === 0 ? response.writeHead(429, { "retry-after": "1" }).end() : answerWell(asked, response),
  );
  const { connecting, notes } = connect({ url: server.url });
  await (await connecting).close({ termMs: 1, killMs: 1 });
  expect(notes[0]).toContain("trying again in 1000 ms");
});

test.each([
  ["60", 60_000],
  ["999999999", LIMITS.longestTimerMs],
  ["Fri, 31 Dec 9999 23:59:59 GMT", LIMITS.longestTimerMs],
])("connectHttp: Retry-After: %s -> no second attempt, told as %i ms", async (after, retryAfterMs) => {
  const server = await serve((_asked, response) =>
    response.writeHead(429, { "retry-after": after }).end("slow down"),
  );
  const error = await refusal({ url: server.url });
  const seconds = Math.ceil(retryAfterMs / 1_000);
  expect(error.message).toContain(`answered status 429: slow down and asks to wait ${seconds} s`);
  expect(error.data).toEqual({ server: "web", status: 429, retryAfterMs, reason: "busy" });
  expect(server.log).toHaveLength(1);
});

test("connectHttp: the connection breaks -> tries again", async () => {
  const server = await serve((asked, response, nth) =>
    nth === 0 ? response.destroy() : answerWell(asked, response),
  );
  const connection = await connect({ url: server.url }).connecting;
  await connection.close({ termMs: 1, killMs: 1 });
});

test("connectHttp: the signal is aborted between attempts -> ends at once", async () => {
  const abort = new AbortController();
  const server = await serve((_asked, response) => response.writeHead(503, { "retry-after": "5" }).end());
  const { connecting } = connect({ url: server.url }, { signal: abort.signal, onNote: () => abort.abort() });
  await expect(connecting).rejects.toMatchObject({ code: "cancelled" });
  expect(server.log).toHaveLength(1);
});

test.each([
  ["the answer to POST", "http"],
  ["the first event", "sse"],
])("connectHttp: %s never comes -> connect_timeout after startupTimeoutMs", async (_name, type) => {
  const server = await serve(({ http }, response) => {
    if (http === "GET") startEvents(response).write(": wait\n\n");
  });
  const error = await refusal({ type, url: server.url, startupTimeoutMs: 200 });
  expect(error).toMatchObject({ code: "connect_timeout", data: { server: "web", timeoutMs: 200 } });
});

/** Starts a TCP server that does not speak HTTP and answers `host:port`. */
async function tcp(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createNetServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function closedPort(): Promise<string> {
  const server = await serve(() => undefined);
  await server.close();
  return server.origin;
}

test("connectHttp: a closed port -> connection refused", async () => {
  const origin = await closedPort();
  const error = await refusal({ url: `${origin}/mcp` });
  expect(error.message).toBe(`web: ${origin}/mcp refused the connection (ECONNREFUSED).`);
  expect(error.remedy).toBe("Check the url in mcp.json and that the server is up.");
});

test("connectHttp: a server that does not speak HTTP -> the error says so", async () => {
  const host = await tcp((socket) => socket.end("SSH-2.0-OpenSSH\r\n"));
  expect((await refusal({ url: `http://${host}/` })).message).toBe(
    `web: http://${host}/ does not speak HTTP.`,
  );
});

test("connectHttp: https to a plain server -> the error says that it does not speak TLS", async () => {
  const server = await serve(answerWell);
  const url = server.url.replace("http:", "https:");
  expect((await refusal({ url })).message).toBe(`web: ${url} does not speak TLS.`);
});

test.each<[string, number]>([
  ["200", 200],
  ["400", 400],
])("connectHttp: a web page with status %s -> the error says so", async (_name, status) => {
  const server = await serve((_asked, response) =>
    response.writeHead(status, { "content-type": "text/html" }).end("<html><title>My Shop</title>"),
  );
  const error = await refusal({ url: server.url });
  expect(error.message).toBe(
    `web: ${server.url} is not an MCP server: it answered with a web page (HTML), status ${status}: My Shop.`,
  );
  expect(error.remedy).toBe("The url must be the MCP endpoint, often ending in /mcp.");
});

test("connectHttp: an empty refusal of a web site -> one probe without the headers finds the page", async () => {
  const server = await serve(({ http }, response) => {
    if (http === "POST") response.writeHead(400).end();
    else response.writeHead(200, { "content-type": "text/html" }).end("<title>Welcome</title>");
  });
  const error = await refusal({
    url: `${server.url}?key=query-secret`,
    headers: { "X-Key": "header-secret" },
  });
  expect(error.message).toContain("it answered with a web page (HTML), status 200: Welcome");
  const [, again, probe, ...more] = server.asked;
  expect(again?.message).toMatchObject({ method: "initialize", params: { capabilities: {} } });
  expect(probe).toMatchObject({ http: "GET", path: "/mcp" });
  expect(probe?.headers["x-key"]).toBeUndefined();
  expect(more).toEqual([]);
});

test("connectHttp: a redirect to another server -> named without its query, not followed", async () => {
  const other = await serve(answerWell);
  const location = `${other.origin}/login?state=query-secret`;
  const server = await serve((_asked, response) => response.writeHead(307, { location }).end());
  const error = await refusal({ url: server.url });
  expect(error.message).toContain(`redirects to ${other.origin}/login, which is not followed`);
  expect(other.asked).toEqual([]);
});

test("connectHttp: a redirect within the server -> followed with method and headers", async () => {
  const server = await serve((asked, response) => {
    if (asked.path === "/mcp") response.writeHead(308, { location: "/mcp/" }).end();
    else answerWell(asked, response);
  });
  const connection = await connect({ url: server.url, headers: { "x-key": "k" } }).connecting;
  expect(server.asked[1]).toMatchObject({ http: "POST", path: "/mcp/", headers: { "x-key": "k" } });
  await connection.close({ termMs: 1, killMs: 1 });
});

test("connectHttp: the server rejects initialize with a JSON-RPC error -> the error has the server's words", async () => {
  const server = await serve(({ message }: { message: Message }, response) =>
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32_602, message: "too old" } })),
  );
  expect((await refusal({ url: server.url })).message).toContain("too old");
});

const UNREAD = { status: 400, type: "text/plain", body: "Invalid message format" };
const rpcError = (error: object) => ({
  status: 200,
  type: "application/json",
  body: JSON.stringify({ jsonrpc: "2.0", id: 0, error }),
});

test.each<[string, typeof UNREAD, (params: Record<string, unknown>) => boolean, string]>([
  [
    "a JSON-RPC error",
    rpcError({ code: -32603, message: 'Unrecognized field "form"' }),
    ({ capabilities }) => JSON.stringify(capabilities) === "{}",
    "without this client's capabilities",
  ],
  [
    "400",
    UNREAD,
    ({ capabilities }) => JSON.stringify(capabilities) === "{}",
    "without this client's capabilities",
  ],
  [
    "400 that names versions",
    { ...UNREAD, body: "Unsupported protocol version (supported: 2025-06-18, 2024-11-05)" },
    ({ protocolVersion }) => protocolVersion === "2025-06-18",
    "with MCP 2025-06-18",
  ],
  [
    "a JSON-RPC error about a version",
    rpcError({ code: -32602, message: "unsupported protocol version: 2025-11-25" }),
    ({ protocolVersion }) => protocolVersion === "2024-11-05",
    "with MCP 2024-11-05",
  ],
])("connectHttp: the handshake is refused by %s -> once more", async (_, refused, isTaken, how) => {
  const server = await serve((asked, response) => {
    const { method, params = {} } = asked.message;
    if (method !== "initialize" || isTaken(params)) answerWell(asked, response);
    else response.writeHead(refused.status, { "content-type": refused.type }).end(refused.body);
  });
  const { connecting, notes } = connect({ url: server.url });
  const connection = await connecting;
  expect(notes).toEqual([`refuses the handshake, trying once more ${how}`]);
  expect(await connection.listTools(new AbortController().signal)).toHaveLength(1);
  expect(server.log.filter((line) => line !== "GET")).toEqual([
    "POST initialize",
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
  ]);
  expect(server.asked.at(-1)?.headers["mcp-protocol-version"]).toBe(connection.protocol.version);
  await connection.close({ termMs: 1, killMs: 1 });
});

test("connectHttp: type sse, the handshake is refused -> once more without capabilities", async () => {
  const legacy = legacyServer(405);
  let stream: Parameters<Handler>[1] | undefined;
  const server = await serve((asked, response, nth) => {
    const { id, method, params } = asked.message;
    if (asked.http === "GET") stream = response;
    if (method !== "initialize" || JSON.stringify(params?.capabilities) === "{}") {
      legacy(asked, response, nth);
      return;
    }
    response.writeHead(202).end();
    const error = { code: -32603, message: 'Unrecognized field "form"' };
    stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, error })}\n\n`);
  });
  const connection = await connect({ type: "sse", url: server.url }).connecting;
  expect(await connection.listTools(new AbortController().signal)).toHaveLength(1);
  await connection.close({ termMs: 1, killMs: 1 });
});

test("connectHttp: a url with userinfo -> sent as Basic credentials", async () => {
  const server = await serve(answerWell);
  const url = server.url.replace("http://", "http://me:p%40ss@");
  const connection = await connect({ url }).connecting;
  const basic = `Basic ${Buffer.from("me:p@ss").toString("base64")}`;
  expect(server.asked.map(({ headers }) => headers.authorization)).toContain(basic);
  await connection.close({ termMs: 1, killMs: 1 });
});

test.each<[string, (url: string) => Handler]>([
  ["401", () => (_asked, response) => response.writeHead(401).end("bad token header-secret")],
  [
    "404",
    () =>
      ({ path, headers }, response) =>
        response.writeHead(404).end(`no ${path} ${headers["x-key"]}`),
  ],
  ["redirect to itself", (url) => (_asked, response) => response.writeHead(302, { location: url }).end()],
  ["reset", () => (_asked, response) => response.destroy()],
])("connectHttp: %s -> the error shows no query, userinfo or header", async (_name, handler) => {
  let handle: Handler = () => undefined;
  const server = await serve((...args) => handle(...args));
  const url = `${server.url.replace("//", "//user-secret:pass-secret@")}?key=query-secret`;
  handle = handler(url);
  const entry = { url, headers: { "x-key": "header-secret" } };
  const { connecting, notes } = connect(entry, { retryMs: [10, 20] });
  const error = await connecting.catch((reason: ThreadsError) => reason);
  const shown = JSON.stringify([error, (error as ThreadsError).message, notes]);
  expect(shown).toContain(server.url);
  expect(shown).not.toContain("secret");
});
