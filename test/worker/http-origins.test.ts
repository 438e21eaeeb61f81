/**
 * Owns: data sent to one HTTP server never reaches another origin. Two ports of loopback are two origins: no answer
 * of one server makes the client send the other a request, header, cookie, session id or event id. Cookies of a session go
 * back to the origin that has set them.
 */
import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import { connectHttp } from "../../workers/connection/transports/http/http.ts";
import {
  type Asked,
  answerWell,
  connectOptions,
  type Handler,
  resultOf,
  serve,
  startEvents,
  type TestServer,
} from "../support/http-server.ts";
import { MODERN, serveFixture } from "../support/modern-http.ts";

const never = new AbortController().signal;
const soon = { termMs: 1, killMs: 1 };
const patient = { timeout: 20_000 };
const KEY = "header-secret-1";
const BASIC = `Basic ${Buffer.from("me:pass-secret-1").toString("base64")}`;

function connect(server: TestServer, entry = {}) {
  const options = connectOptions({ url: server.url, headers: { "x-key": KEY }, ...entry });
  const connecting = connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  return { connecting, notes: options.notes };
}

const refused = async (server: TestServer, entry = {}): Promise<ThreadsError> =>
  connect(server, entry).connecting.then(
    () => expect.unreachable("connected"),
    (error: ThreadsError) => error,
  );

const call = { tool: "echo", args: {}, timeoutMs: 2_000, signal: never, onProgress: () => undefined };

const hostOf = ({ origin }: TestServer): string => new URL(origin).host;
/** Ways to write an address of the server `other`, some of which contain the host of `own`. */
const ADDRESSES: [string, (other: TestServer, own: TestServer) => string][] = [
  ["another origin", (other) => `${other.origin}/steal`],
  ["another origin without a scheme", (other) => `//${hostOf(other)}/steal`],
  ["another origin behind backslashes", (other) => `\\\\${hostOf(other)}\\steal`],
  ["another origin behind a name", (other, own) => `http://${hostOf(own)}@${hostOf(other)}/steal`],
  ["the same machine by another name", (other) => `http://localhost:${new URL(other.origin).port}/steal`],
];
const NOT_OWN: typeof ADDRESSES = [
  ...ADDRESSES,
  ["itself with a name and password", (_other, own) => `http://thief:word@${hostOf(own)}/mcp/`],
  ["itself over TLS on a port that is not its own", (_other, own) => `https://${hostOf(own)}/mcp`],
];

describe.each([301, 302, 303, 307, 308])("status %i", (status) => {
  test.each(NOT_OWN)("a POST is redirected to %s -> not followed", async (_name, addressOf) => {
    const other = await serve(answerWell);
    const server: TestServer = await serve((_asked, response) =>
      response.writeHead(status, { location: addressOf(other, server) }).end(),
    );
    const error = await refused(server);
    expect(error).toMatchObject({ code: "connect_failed", data: { server: "web", status } });
    expect(error.message).toMatch(
      / redirects to https?:\/\/[^@]*, which is not followed because that is another/,
    );
    expect(other.asked).toEqual([]);
    expect(server.asked).toHaveLength(1);
  });

  test.each(ADDRESSES)(
    "streams, resumptions and DELETE are redirected to %s -> not followed",
    async (_name, addressOf) => {
      const other = await serve(answerWell);
      const server: TestServer = await serve((asked, response) => {
        if (asked.message.method === "tools/call") startEvents(response).end("id: 7\ndata:\nretry: 1\n\n");
        else if (asked.http === "POST") answerWell(asked, response, { "mcp-session-id": "session-1" });
        else response.writeHead(status, { location: addressOf(other, server) }).end();
      });
      const connection = await connect(server).connecting;
      await connection.callTool(call).catch(() => undefined);
      await connection.close(soon);
      expect(server.log.filter((line) => line === "GET").length).toBeGreaterThanOrEqual(2);
      expect(server.log.at(-1)).toBe("DELETE");
      expect(other.asked).toEqual([]);
    },
  );
});

/** A legacy server that names `endpoint` for messages and answers at any path. */
function legacy(endpoint: (own: TestServer) => string): () => Promise<TestServer> {
  return async () => {
    let stream: ServerResponse | undefined;
    const handler: Handler = ({ http, message }, response) => {
      if (http === "GET") {
        stream = startEvents(response);
        stream.write(`event: endpoint\ndata: ${endpoint(server)}\n\n`);
        return;
      }
      response.writeHead(202).end();
      if (message.id !== undefined) stream?.write(`data: ${resultOf(message)}\n\n`);
    };
    const server = await serve(handler);
    return server;
  };
}

test.each([...ADDRESSES, ...NOT_OWN.slice(-1)])(
  "a legacy server names %s for messages -> neither server gets a message",
  async (_name, addressOf) => {
    const other = await serve(answerWell);
    const server = await legacy((own) => addressOf(other, own))();
    const error = await refused(server, { type: "sse" });
    expect(error.message).toContain("names an address for messages at another server");
    expect(other.asked).toEqual([]);
    expect(server.log).toEqual(["GET"]);
  },
);

test("a legacy server names itself with a name and password -> only the definition's credentials are sent", async () => {
  const server = await legacy((own) => `http://thief:word@${hostOf(own)}/messages`)();
  const url = server.url.replace("//", "//me:pass-secret-1@");
  const connection = await connect(server, { type: "sse", url }).connecting;
  expect(server.asked.map(({ path }) => path)).toContain("/messages");
  expect(new Set(server.asked.map(({ headers }) => headers.authorization))).toEqual(new Set([BASIC]));
  await connection.close(soon);
});

test("a legacy stream is redirected to another origin -> not followed", async () => {
  const other = await serve(answerWell);
  const server = await serve((_asked, response) =>
    response.writeHead(307, { location: `//${hostOf(other)}/steal` }).end(),
  );
  expect((await refused(server, { type: "sse" })).message).toContain("because that is another server");
  expect(other.asked).toEqual([]);
});

describe("a server sets cookies", () => {
  const cookie = { "set-cookie": ["AWSALB=1; Path=/; Max-Age=9999", "b=2; Domain=localhost"] };

  test("in each answer -> its own requests have them, up to the end of the session, and another origin gets none", async () => {
    const other = await serve(answerWell);
    const session = { ...cookie, "mcp-session-id": "session-1" };
    const server = await serve((asked, response) => {
      if (asked.message.method === "tools/call")
        response.writeHead(307, { location: `http://localhost:${new URL(other.origin).port}/mcp` }).end();
      else answerWell(asked, response, session);
    });
    const connection = await connect(server).connecting;
    await connection.listTools(never);
    await connection.callTool(call).catch(() => undefined);
    await connection.close(soon);
    const [first, ...more] = server.asked;
    expect(first?.headers.cookie).toBeUndefined();
    expect(server.log.at(-1)).toBe("DELETE");
    expect(new Set(more.map(({ headers }) => headers.cookie))).toEqual(new Set(["AWSALB=1; b=2"]));
    expect(other.asked).toEqual([]);
  });

  test("a configured cookie -> both are sent", async () => {
    const server = await serve((asked, response) => answerWell(asked, response, cookie));
    const connection = await connect(server, { headers: { Cookie: "key=1" } }).connecting;
    await connection.listTools(never);
    await connection.close(soon);
    expect(server.asked[0]?.headers.cookie).toBe("key=1");
    expect(server.asked.at(-1)?.headers.cookie).toBe("key=1; AWSALB=1; b=2");
  });

  test("and loses the session -> the new one begins without them", async () => {
    let session = 1;
    const server = await serve((asked, response) => {
      const id = `session-${session}`;
      const isKnown = asked.message.method === "initialize" || asked.headers["mcp-session-id"] === id;
      if (!isKnown) response.writeHead(404, { "set-cookie": "AWSALB=lost" }).end();
      else answerWell(asked, response, { "mcp-session-id": id, "set-cookie": `AWSALB=${id}` });
    });
    const connection = await connect(server).connecting;
    session++;
    await connection.listTools(never);
    await connection.close(soon);
    const begins = server.asked.filter(({ message }) => message.method === "initialize");
    expect(begins.map(({ headers }) => headers.cookie)).toEqual([undefined, undefined]);
    const lists = server.asked.filter(({ message }) => message.method === "tools/list");
    expect(lists.map(({ headers }) => headers.cookie)).toEqual(["AWSALB=session-1", "AWSALB=session-2"]);
  });

  test("on the old transport -> its messages have them", async () => {
    let stream: ServerResponse | undefined;
    const server = await serve(({ http, message }, response) => {
      if (http === "GET") {
        stream = response.writeHead(200, { "content-type": "text/event-stream", ...cookie });
        stream.write("event: endpoint\ndata: /messages\n\n");
        return;
      }
      response.writeHead(202).end();
      if (message.id !== undefined) stream?.write(`data: ${resultOf(message)}\n\n`);
    });
    const connection = await connect(server, { type: "sse" }).connecting;
    await connection.close(soon);
    expect(server.asked.at(-1)?.headers.cookie).toBe("AWSALB=1; b=2");
  });

  test("in the revision without sessions -> none is kept", async () => {
    const server = await serveFixture("modern", (_asked, response) => {
      response.setHeader("set-cookie", cookie["set-cookie"]);
      return false;
    });
    const connection = await connect(server, { protocol: MODERN }).connecting;
    await connection.listTools(never);
    await connection.close(soon);
    expect(server.asked.length).toBeGreaterThan(1);
    expect(server.asked.every(({ headers }) => headers.cookie === undefined)).toBe(true);
  });
});

const sentKeys = ({ headers }: Asked): string[] => Object.keys(headers).sort();

test("the request that explains a failure -> like a browser's, without own headers, name, password or query", async () => {
  const server = await serve(({ http }, response) => {
    if (http === "POST")
      response.writeHead(400, { "mcp-session-id": "session-1", "set-cookie": "a=b" }).end();
    else response.writeHead(200, { "content-type": "text/html" }).end("<title>Welcome</title>");
  });
  const url = `${server.url.replace("//", "//me:pass-secret-1@")}?key=query-secret-1`;
  const headers = { "x-key": KEY, authorization: "Bearer token-secret-1" };
  const error = await refused(server, { url, headers });
  expect(error.message).toContain("Welcome");
  const [probe, ...more] = server.asked.filter(({ http }) => http === "GET");
  expect(server.asked[0]?.headers["x-key"]).toBe(KEY);
  expect(probe).toMatchObject({ http: "GET", path: "/mcp" });
  expect(probe && sentKeys(probe)).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"]);
  expect(more).toEqual([]);
});

test.each([
  ["a line end", "good\r\nx-injected: 1"],
  ["a bare line feed", "good\nx-injected: 1"],
  ["a NUL", "good\u0000"],
  ["a character beyond one byte", "漢字"],
])(
  "a header value with %s -> nothing is sent, and the error does not show the value",
  async (_name, value) => {
    const server = await serve(answerWell);
    const error = await refused(server, { headers: { "x-key": `${KEY}${value}` } });
    expect(error).toMatchObject({ code: "connect_failed" });
    expect(error.message).toMatch(/ was not asked: .*x-key/);
    expect(JSON.stringify([error.message, error.data])).not.toContain(KEY);
    expect(server.asked).toEqual([]);
  },
);

test.each([
  ["of kilobytes", "s".repeat(8_000)],
  ["that looks like more headers", "s; x-injected: 1, y"],
])("a session id %s -> sent back as one header", async (_name, id) => {
  const server = await serve((asked, response) => answerWell(asked, response, { "mcp-session-id": id }));
  const connection = await connect(server).connecting;
  await connection.listTools(never);
  await connection.close(soon);
  for (const { headers } of server.asked.slice(1)) {
    expect(headers["mcp-session-id"]).toBe(id);
    expect(headers["x-injected"]).toBeUndefined();
  }
});

test.each([
  ["of ASCII", "7; x: y", "7; x: y"],
  ["of other characters", "7é", undefined],
  ["with a NUL", "7\u0000", undefined],
  ["of kilobytes", "7".repeat(2_000), undefined],
])("an event id %s -> sent back only if a header can hold it", async (_name, id, sent) => {
  const server = await serve((asked, response) => {
    if (asked.http === "GET") startEvents(response).end(`retry: 1\nid: ${id}\ndata:\n\n`);
    else answerWell(asked, response);
  });
  const connection = await connect(server).connecting;
  const gets = (): Asked[] => server.asked.filter(({ http }) => http === "GET");
  await expect.poll(() => gets().length, patient).toBeGreaterThanOrEqual(2);
  expect(gets()[1]?.headers["last-event-id"]).toBe(sent);
  await connection.close(soon);
});
