/**
 * Owns: servers of the stateless era over HTTP that fail: in a call, in a list, at any time. A call that may have run is
 * never sent a second time, no request goes to another origin, and the next call works.
 */
import { stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { type Asked, answerWell, serve, startEvents, type TestServer } from "../support/http-server.ts";
import { amount } from "../support/long.ts";
import { type Fault, MODERN, sendMessage, sentTo, serveFixture } from "../support/modern-http.ts";
import { forRows, type Started, start, textOf, until } from "./support.ts";

const MEBIBYTE = 1024 * 1024;
/** Just below the largest message, or well above what a model is shown. */
const LARGE_MEBIBYTES = amount(4, 60);
const json = { "content-type": "application/json" };

/** A fault of the first `tools/call`. Those after it are answered well. */
function firstCall(answer: (response: ServerResponse, asked: Asked) => void): Fault {
  let isOver = false;
  return (asked, response) => {
    if (isOver || asked.message.method !== "tools/call") return false;
    isOver = true;
    answer(response, asked);
    return true;
  };
}

/**
 * One worker with all these servers. Each row gets its own by its title, which is not the server's name: an error begins with
 * the name.
 */
function openAll(
  rows: [title: string, fault: Fault, more?: Record<string, unknown>][],
): (title: string) => Promise<{ at: Started; name: string; server: TestServer }> {
  const servers = new Map<string, { name: string; server: TestServer }>();
  const shared = forRows(async () => {
    const entries: Record<string, Record<string, unknown>> = {};
    for (const [i, [title, fault, more]] of rows.entries()) {
      const [name, server] = [`s${i}`, await serveFixture("modern", fault)];
      servers.set(title, { name, server });
      entries[name] = { url: server.url, protocol: MODERN, ...more };
    }
    const at = await start(entries);
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    return at;
  });
  return async (title) => {
    const at = await shared();
    const own = servers.get(title);
    if (!own) throw new Error(`no row ${title}`);
    return { at, ...own };
  };
}

const event = (message: object, id = ""): string =>
  `${id === "" ? "" : `id: ${id}\nretry: 1\n`}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
const progress = (token: unknown): object => ({
  method: "notifications/progress",
  params: { progressToken: token, progress: 1, message: "begun" },
});
const tokenOf = ({ message }: Asked): unknown =>
  (message.params?._meta as { progressToken?: unknown } | undefined)?.progressToken;

interface Row {
  answer: (response: ServerResponse, asked: Asked) => void;
  code: string;
  says: RegExp;
}

const ROWS: Record<string, Row> = {
  "closes the connection before an answer": {
    answer: (response) => response.destroy(),
    code: "server_died",
    says: /no (answer|result)/,
  },
  "closes the stream after progress": {
    answer: (response, asked) => {
      startEvents(response).write(event(progress(tokenOf(asked))));
      setImmediate(() => response.destroy());
    },
    code: "server_died",
    says: /no (answer|result)/,
  },
  "ends the stream without a result, and offers to resume it": {
    answer: (response, asked) => startEvents(response).end(event(progress(tokenOf(asked)), "7")),
    code: "server_died",
    says: /no (answer|result)/,
  },
  "answers JSON that is no message": {
    answer: (response) => response.writeHead(200, json).end('{"hello":1}'),
    code: "server_died",
    says: /no (answer|result)/,
  },
  "answers half of a message": {
    answer: (response) => response.writeHead(200, json).end('{"jsonrpc":"2.0","id":'),
    code: "server_died",
    says: /no (answer|result)/,
  },
  "answers a web page": {
    answer: (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>hello"),
    code: "server_died",
    says: /./,
  },
  "answers nothing (202)": {
    answer: (response) => response.writeHead(202).end(),
    code: "server_died",
    says: /./,
  },
  "answers a type of result that nobody knows": {
    answer: (response, { message }) =>
      sendMessage(response, { id: message.id, result: { resultType: "later", content: [] } }),
    code: "call_rejected",
    says: /later/,
  },
  "asks for input without a question or a state": {
    answer: (response, { message }) =>
      sendMessage(response, { id: message.id, result: { resultType: "input_required" } }),
    code: "call_rejected",
    says: /./,
  },
  "answers a JSON-RPC error with a status of its own": {
    answer: (response, { message }) =>
      sendMessage(response, { id: message.id, error: { code: -32602, message: "no such city" } }, 400),
    code: "call_rejected",
    says: /no such city/,
  },
  "is broken (500)": {
    answer: (response) => response.writeHead(500).end("oops"),
    code: "server_died",
    says: /500/,
  },
};

describe("a server that, in a call,", () => {
  let redirectTarget = "";
  const REDIRECTS = [301, 302, 303, 307, 308];
  const ASKS = "sends a request of its own, and then the result";
  const LARGE = "answers a large result";
  const TOO_LARGE = "answers more than the largest message";
  const opened = openAll([
    ...Object.entries(ROWS).map(([title, { answer }]): [string, Fault] => [title, firstCall(answer)]),
    ...REDIRECTS.map((status): [string, Fault, Record<string, unknown>] => [
      `redirects ${status}`,
      firstCall((response) => response.writeHead(status, { location: redirectTarget }).end()),
      { headers: { "x-key": "header-secret-1" } },
    ]),
    [
      ASKS,
      firstCall((response, { message }) => {
        const ask = { id: "ask-1", method: "elicitation/create", params: { message: "Who?" } };
        const result = { resultType: "complete", content: [{ type: "text", text: "done" }] };
        startEvents(response).end(event(ask) + event({ id: message.id, result }));
      }),
    ],
    [LARGE, () => false, { timeout: 300 }],
    [
      TOO_LARGE,
      firstCall((response, { message }) => {
        response
          .writeHead(200, json)
          .write(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":{"a":"`);
        const piece = "x".repeat(MEBIBYTE);
        for (let sent = 0; sent <= LIMITS.messageBytes; sent += MEBIBYTE) response.write(piece);
        response.end('"}}');
      }),
      { timeout: 300 },
    ],
  ]);
  test.each(Object.entries(ROWS))(
    "%s -> the call fails and is not repeated; the next one works",
    async (title, row) => {
      const { at, name, server } = await opened(title);
      const failed = await at.failedCall(name, "echo", { text: "a" });
      expect(failed).toMatchObject({ code: row.code, data: { server: name } });
      expect(failed.message).toMatch(row.says);
      expect(sentTo(server, "tools/call")).toHaveLength(1);
      expect(textOf(await at.call(name, "echo", { text: "b" }))).toBe("b");
      expect(new Set(server.asked.map(({ http }) => http))).toEqual(new Set(["POST"]));
      expect(at.crashes).toEqual([]);
    },
  );

  test.each(REDIRECTS)("redirects to another origin (%i) -> not followed", async (status) => {
    const other = await serve(answerWell);
    redirectTarget = `${other.origin}/steal`;
    const { at, name, server } = await opened(`redirects ${status}`);
    const failed = await at.failedCall(name, "echo", { text: "a" });
    expect(failed.message).toMatch(/redirects to .* not followed/);
    expect(sentTo(server, "tools/call")).toHaveLength(1);
    expect(other.asked).toEqual([]);
  });

  test(`${ASKS} -> the request gets no answer, the result counts`, async () => {
    const { at, name, server } = await opened(ASKS);
    expect(textOf(await at.call(name, "echo", { text: "a" }))).toBe("done");
    expect(at.user.asked).toEqual([]);
    expect(server.asked.filter(({ message }) => message.method === undefined)).toEqual([]);
  });

  test(`${LARGE} -> it is cut for the model and stored whole`, async () => {
    const { at, name } = await opened(LARGE);
    const result = await at.call(name, "big", { mebibytes: LARGE_MEBIBYTES });
    expect((await stat(result.storedAt ?? "")).size).toBeGreaterThanOrEqual(LARGE_MEBIBYTES * MEBIBYTE);
    expect(textOf(result).length).toBeLessThan(MEBIBYTE);
    expect(at.crashes).toEqual([]);
  });

  test(`${TOO_LARGE} -> message_too_large, and the next call works`, async () => {
    const { at, name, server } = await opened(TOO_LARGE);
    const failed = await at.failedCall(name, "echo", { text: "a" });
    expect(failed).toMatchObject({ code: "message_too_large", data: { server: name } });
    expect(sentTo(server, "tools/call")).toHaveLength(1);
    expect(textOf(await at.call(name, "echo", { text: "b" }))).toBe("b");
  });
});

describe("a server whose first answer", () => {
  const DISCOVERS: [string, (response: ServerResponse, asked: Asked) => void, RegExp][] = [
    [
      "is a web page",
      (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
      /HTML|page/,
    ],
    ["is not found", (response) => response.writeHead(404).end(), /404/],
    ["is busy", (response) => response.writeHead(503).end(), /503/],
    [
      "has only newer revisions",
      (response, { message }) =>
        sendMessage(
          response,
          { id: message.id, error: { code: -32022, message: "no", data: { supported: ["2031-01-01"] } } },
          400,
        ),
      /2031-01-01/,
    ],
  ];
  const NEVER = "never comes";
  const DENIES = "wants a sign-in";
  const deny: Fault = (_asked, response) => {
    response.writeHead(401).end();
    return true;
  };
  const opened = openAll([
    ...DISCOVERS.map(([title, answer]): [string, Fault] => [
      title,
      (asked, response) => {
        answer(response, asked);
        return true;
      },
    ]),
    [NEVER, () => true, { startupTimeoutMs: 100 }],
    [DENIES, deny],
    [`${DENIES}, auto`, deny, { protocol: "auto" }],
  ]);
  test.each(DISCOVERS)("%s -> the server failed, and the error says why", async (title, _answer, says) => {
    const { at, name, server } = await opened(title);
    const status = await at.settled(name);
    expect(status).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(status.error?.message).toMatch(says);
    expect(sentTo(server, "initialize")).toEqual([]);
  });

  test(`${NEVER} -> connect_timeout`, async () => {
    const { at, name } = await opened(NEVER);
    expect(await at.settled(name)).toMatchObject({ state: "failed", error: { code: "connect_timeout" } });
  });

  test.each([DENIES, `${DENIES}, auto`])("%s -> needs-auth, not another era", async (title) => {
    const { at, name } = await opened(title);
    expect(await at.settled(name)).toMatchObject({ state: "needs-auth" });
  });
});

describe("a list of tools and a stream of changes", () => {
  const BROKEN = "one tool of the list is broken";
  const ENDS = "the stream of changes ends again and again";
  let streams = 0;
  const opened = openAll([
    [
      BROKEN,
      (asked, response) => {
        if (asked.message.method !== "tools/list") return false;
        const inputSchema = { type: "object" };
        const region = (header: string) => ({
          type: "object",
          properties: { region: { type: "string", "x-mcp-header": header } },
        });
        const tools = [
          { name: "echo", inputSchema },
          { name: "bad-header", inputSchema: region("two words") },
          { name: 7, inputSchema },
          { name: "good-header", inputSchema: region("Region") },
        ];
        sendMessage(response, { id: asked.message.id, result: { resultType: "complete", tools } });
        return true;
      },
    ],
    [
      ENDS,
      ({ message }, response) => {
        if (message.method !== "subscriptions/listen") return false;
        streams++;
        startEvents(response).end();
        return true;
      },
      { lifecycle: "eager" },
    ],
  ]);

  test(`${BROKEN} -> only that tool is missing`, async () => {
    const { at, name } = await opened(BROKEN);
    expect(await at.settled(name)).toMatchObject({ state: "connected", toolCount: 2 });
    expect(await at.failedCall(name, "bad-header")).toMatchObject({ code: "unknown_tool" });
    expect(await at.log()).toContain("bad-header");
  });

  test(`${ENDS} -> it is opened again, with pauses, and calls work`, async () => {
    const { at, name } = await opened(ENDS);
    await until(async () => streams > 1 || undefined);
    expect(textOf(await at.call(name, "echo", { text: "a" }))).toBe("a");
    expect(streams).toBeLessThan(20);
  });
});
