/**
 * Owns: `pi-mcp-threads serve --http`: who gets an answer, where the token is, the bounds, and both eras of the protocol, with the
 * SDK's client and by plain requests.
 */
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { processesWithMarker } from "../support/processes.ts";
import { modern } from "./serve-support.ts";
import { fixtureServer, type RunOptions, runCli, startCli } from "./support.ts";

const TOKEN = `the-token-of-this-run-${process.pid}-and-of-no-other`;
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "agent", version: "1" } },
};

interface Endpoint {
  url: string;
  stderr(): string;
  end(signal?: NodeJS.Signals): Promise<number | null>;
  pid: number;
}

async function listen(
  home: PiHome,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Endpoint> {
  const { child, ended } = startCli(home, ["serve", "--http", ...args], options);
  let stderr = "";
  const listening = Promise.withResolvers<string>();
  child.stderr?.on("data", (chunk: string) => {
    stderr += chunk;
    const [, url] = /Listening at (\S+)/.exec(stderr) ?? [];
    // The line about the token follows.
    if (url !== undefined && /token/i.test(stderr)) listening.resolve(url);
  });
  void ended.then(() => listening.reject(new Error(stderr)));
  onCleanup(async () => {
    child.kill();
    await ended;
  });
  return {
    url: await listening.promise,
    stderr: () => stderr,
    pid: child.pid ?? 0,
    end: async (signal = "SIGTERM") => {
      child.kill(signal);
      return (await ended).code;
    },
  };
}

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
  path?: string;
}

/** One request. `body`: as JSON, or as it stands. */
function ask(url: string, { method = "POST", headers = {}, body, path }: Asked = {}) {
  const answered = Promise.withResolvers<{ status: number; headers: object; text: string }>();
  const sent = request(
    new URL(path ?? "", url),
    {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
    },
    (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("close", () =>
        answered.resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    },
  );
  sent.on("error", (error) => answered.reject(error));
  sent.end(typeof body === "string" || body === undefined ? body : JSON.stringify(body));
  return answered.promise;
}

async function sdkClient(url: string, answer?: () => { action: "accept"; content: Record<string, string> }) {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } },
  });
  const client = new Client(
    { name: "agent", version: "1" },
    { capabilities: answer ? { elicitation: {} } : {} },
  );
  if (answer) client.setRequestHandler(ElicitRequestSchema, answer);
  let changes = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
  await client.connect(transport as never);
  onCleanup(() => client.close());
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  return { client, names, changes: () => changes, transport };
}

let home: PiHome;
let endpoint: Endpoint;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
  await home.writeMcp({
    mcpServers: {
      results: fixtureServer("results.mjs"),
      gated: { ...fixtureServer("shows.mjs"), approve: "always" },
      waits: fixtureServer("waits.mjs"),
      says: { ...fixtureServer("says.mjs"), env: { SAYS: JSON.stringify("Ask for work.") } },
    },
  });
  await runCli(home, ["list"]);
  endpoint = await forWholeFile(() => listen(home, [], { env: { PI_MCP_THREADS_TOKEN: TOKEN } }));
});

test("a client that opens no stream of its own -> a question comes in the answer to the call", async () => {
  const call = (body: object, session: Record<string, string> = {}): Promise<Response> =>
    fetch(endpoint.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...session,
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  const params = { ...INITIALIZE.params, capabilities: { elicitation: {} } };
  const greeted = await call({ ...INITIALIZE, params });
  await greeted.text();
  const session = { "mcp-session-id": greeted.headers.get("mcp-session-id") ?? "" };
  await call({ method: "notifications/initialized" }, session);
  const asked = { id: 2, method: "tools/call", params: { name: "gated__show", arguments: { text: "x" } } };
  const { body } = await call(asked, session);
  const messages: { id?: number; method?: string; result?: unknown }[] = [];
  let text = "";
  for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines.filter((one) => one.startsWith("data: "))) {
      const message = JSON.parse(line.slice("data: ".length));
      messages.push(message);
      if (message.method === "elicitation/create")
        await call({ id: message.id, result: { action: "decline" } }, session);
    }
  }
  expect(messages.map(({ id, method }) => method ?? id)).toEqual(["elicitation/create", 2]);
  expect(messages[1]?.result).toMatchObject({ isError: true });
});

describe("who gets an answer", () => {
  const initialize = { body: INITIALIZE };

  test.each([
    ["no token", { headers: { authorization: "" } }, 401],
    ["another token", { headers: { authorization: `Bearer ${TOKEN}x` } }, 401],
    ["the token as another scheme", { headers: { authorization: `Basic ${TOKEN}` } }, 401],
    ["a name that leads to loopback (DNS rebinding)", { headers: { host: "attacker.example:80" } }, 403],
    ["a page of another site", { headers: { origin: "https://attacker.example" } }, 403],
    ["a page without an origin", { headers: { origin: "null" } }, 403],
    ["another path", { path: "/other" }, 404],
    ["a method of browsers", { method: "OPTIONS", body: undefined }, 405],
    ["a body of 5 MiB", { body: `"${"x".repeat(5 * 1024 * 1024)}"` }, 413],
    ["a body that is no JSON", { body: "{" }, 400],
    ["another type of body", { headers: { "content-type": "text/plain" } }, 415],
    ["a session that there is not", { headers: { "mcp-session-id": "none" } }, 404],
    ["a request without a session", { body: { ...INITIALIZE, method: "tools/list", params: {} } }, 400],
  ] satisfies [string, Asked, number][])("%s -> %s", async (_what, asked, status) => {
    const answer = await ask(endpoint.url, { ...initialize, ...asked });
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain(TOKEN);
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
  });

  test("a page of this machine with the token -> it is answered", async () => {
    const headers = { origin: "http://localhost:3000", host: "localhost:1" };
    expect((await ask(endpoint.url, { ...initialize, headers })).status).toBe(200);
  });

  test("it listens on 127.0.0.1 alone", async () => {
    expect(new URL(endpoint.url).hostname).toBe("127.0.0.1");
    const port = Number(new URL(endpoint.url).port).toString(16).toUpperCase().padStart(4, "0");
    const sockets = await readFile("/proc/net/tcp", "utf8").catch(() => "");
    const listening = sockets.split("\n").filter((line) => line.includes(`:${port} 00000000:0000 0A`));
    for (const line of listening) expect(line).toContain(`0100007F:${port}`);
  });
});

describe("the token", () => {
  test("none is given -> a new one in a private file, which ends with serve", async () => {
    const own = await listen(home);
    const [, file = ""] = /The token is in (\S+),/.exec(own.stderr()) ?? [];
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const token = (await readFile(file, "utf8")).trim();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(own.stderr()).not.toContain(token);
    const headers = { authorization: `Bearer ${token}` };
    expect((await ask(own.url, { body: INITIALIZE, headers })).status).toBe(200);
    expect(await own.end()).toBe(143);
    expect((await readdir(home.agentDir)).filter((name) => name.endsWith(".token"))).toEqual([]);
  });

  test("--token-file -> made for this user alone, or read; one that others can read is refused", async () => {
    const file = join(home.dir, "token");
    const own = await listen(home, ["--token-file", file]);
    const token = (await readFile(file, "utf8")).trim();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const headers = { authorization: `Bearer ${token}` };
    expect((await ask(own.url, { body: INITIALIZE, headers })).status).toBe(200);
    await own.end();
    const again = await listen(home, ["--token-file", file]);
    expect((await ask(again.url, { body: INITIALIZE, headers })).status).toBe(200);
    await chmod(file, 0o644);
    const open = await runCli(home, ["serve", "--http", "--token-file", file]);
    expect([open.code, open.stderr]).toEqual([7, expect.stringContaining("is not private")]);
    await writeFile(file, "short");
    await chmod(file, 0o600);
    const short = await runCli(home, ["serve", "--http", "--token-file", file]);
    expect([short.code, short.stderr]).toEqual([2, expect.stringContaining("at least 32")]);
    expect(short.stderr).not.toContain("short\n");
  });

  test("no server inherits it, no log and no command line has it", async () => {
    const { client } = await sdkClient(endpoint.url);
    await client.callTool({ name: "results__answer", arguments: { content: [] } });
    const marked = await processesWithMarker(`PI_MCP_THREADS_TOKEN=${TOKEN}`);
    expect(marked.map(({ pid }) => pid)).toEqual([endpoint.pid]);
    expect(marked[0]?.command).not.toContain(TOKEN);
    expect(await readFile(join(home.agentDir, "mcp-threads.log"), "utf8")).not.toContain(TOKEN);
    expect(endpoint.stderr()).not.toContain(TOKEN);
  });

  test("a port that is taken -> a sentence, and code 3", async () => {
    const { port } = new URL(endpoint.url);
    const { code, stderr } = await runCli(home, ["serve", "--http", port]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("another program listens there")]);
  });
});

describe("clients up to 2025-11-25", () => {
  test("each has a list of its own, hears of changes, and is asked by itself", async () => {
    const one = await sdkClient(endpoint.url, () => ({ action: "accept", content: {} }));
    const two = await sdkClient(endpoint.url);
    const query = { query: "select:results__answer" };
    await one.client.callTool({ name: "ToolSearch", arguments: query });
    await expect.poll(one.changes).toBeGreaterThan(0);
    expect(await one.names()).toContain("results__answer");
    expect(await two.names()).toEqual(["ToolSearch", "call"]);
    expect(two.changes()).toBe(0);
    const done = await one.client.callTool({ name: "gated__show", arguments: { text: "done" } });
    expect(done).toMatchObject({ content: [{ text: "done" }] });
    const undone = await two.client.callTool({ name: "gated__show", arguments: { text: "done" } });
    expect(undone.isError).toBe(true);
    await one.transport.terminateSession();
    await expect(one.client.listTools()).rejects.toThrow();
  });

  test("more sessions than the limit -> the one that was used least recently ends", async () => {
    const begin = async (): Promise<string> => {
      const { headers } = await ask(endpoint.url, { body: INITIALIZE });
      return (headers as Record<string, string>)["mcp-session-id"] ?? "";
    };
    const first = await begin();
    for (let at = 0; at < 32; at++) await begin();
    const ping = { body: { jsonrpc: "2.0", id: 2, method: "ping" } };
    const status = async (id: string) =>
      (await ask(endpoint.url, { ...ping, headers: { "mcp-session-id": id } })).status;
    expect(await status(first)).toBe(404);
    expect(await status(await begin())).toBe(200);
  });
});

/** Plain requests, as of an agent that opens and leaves streams as it likes. */
describe("a session of plain requests", () => {
  const send = (method: string, body?: object, session?: string, signal?: AbortSignal): Promise<Response> =>
    fetch(endpoint.url, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
        ...(session === undefined ? {} : { "mcp-session-id": session }),
      },
      ...(body ? { body: JSON.stringify({ jsonrpc: "2.0", ...body }) } : {}),
      ...(signal ? { signal } : {}),
    });
  const begin = async (capabilities: object = {}): Promise<string> => {
    const greeted = await send("POST", { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities } });
    await greeted.text();
    const session = greeted.headers.get("mcp-session-id") ?? "";
    await send("POST", { method: "notifications/initialized" }, session);
    return session;
  };
  const call = (name: string, args: object) => ({
    id: 2,
    method: "tools/call",
    params: { name, arguments: args },
  });
  const isOnItsWay = (file: string) => expect.poll(() => stat(file).catch(() => undefined)).toBeDefined();

  test("it waits for a tool -> it is no idle one that new sessions end, until the call is over or the client has gone", async () => {
    const [busy, gone] = [await begin(), await begin()];
    const [file, arrived, arrivedToo] = ["over", "busy-arrived", "gone-arrived"].map((name) =>
      join(home.dir, name),
    ) as [string, string, string];
    const answered = await send("POST", call("waits__work", { file, arrived }), busy);
    const left = new AbortController();
    await send("POST", call("waits__work", { file, arrived: arrivedToo }), gone, left.signal);
    await Promise.all([isOnItsWay(arrived), isOnItsWay(arrivedToo)]);
    left.abort();
    for (let at = 0; at < 32; at++) await begin();
    const status = async (session: string) => (await send("POST", { id: 3, method: "ping" }, session)).status;
    expect([await status(busy), await status(gone)]).toEqual([200, 404]);
    await writeFile(file, "yes");
    expect(await answered.text()).toContain("busy-arrived");
    for (let at = 0; at < 32; at++) await begin();
    expect(await status(busy)).toBe(404);
  });

  test("its stream of events ends -> it can open another one", async () => {
    const session = await begin();
    for (let at = 0; at < 3; at++) {
      const left = new AbortController();
      const open = async () => (await send("GET", undefined, session, left.signal)).status;
      await expect.poll(open).toBe(200);
      expect((await send("GET", undefined, session)).status).toBe(409);
      left.abort();
    }
  });

  test("a question about its call, while an older call of another client is open -> it is asked, and nobody else", async () => {
    const file = join(home.dir, "count-is-over");
    const one = await sdkClient(endpoint.url, () => ({ action: "accept", content: {} }));
    let progress = 0;
    const older = one.client.callTool({ name: "gated__count", arguments: { file } }, undefined, {
      onprogress: () => void progress++,
    });
    await expect.poll(() => progress).toBeGreaterThan(0);
    const two = await sdkClient(endpoint.url);
    const unable = await two.client.callTool({ name: "gated__show", arguments: { text: "done" } });
    expect(unable).toMatchObject({ isError: true });
    expect(JSON.stringify(unable)).toContain("shows no questions");
    const session = await begin({ elicitation: {} });
    const { body } = await send("POST", call("gated__show", { text: "done" }), session);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("elicitation/create");
    await reader.cancel();
    await writeFile(file, "yes");
    expect(await older).toMatchObject({ content: [{ text: "count is over" }] });
  });
});

describe("clients of 2026-07-28", () => {
  const call = async (name: string, args: object, more: object = {}, capabilities: object = {}) => {
    const params = modern({ name, arguments: args, ...more }, capabilities);
    const { text } = await ask(endpoint.url, {
      body: { jsonrpc: "2.0", id: 7, method: "tools/call", params },
      headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name },
    });
    const json = /^data: (\{.*"id":7.*)$/m.exec(text)?.[1] ?? text;
    return (JSON.parse(json) as { result: Record<string, unknown> }).result;
  };

  test("a call, and a question that the next request answers", async () => {
    const content = [{ type: "text", text: "hi" }];
    expect(await call("results__answer", { content })).toMatchObject({ resultType: "complete", content });
    const shows = { elicitation: {} };
    const args = { text: "done" };
    const asked = await call("gated__show", args, {}, shows);
    expect(asked.resultType).toBe("input_required");
    const [key = ""] = Object.keys(asked.inputRequests as object);
    const { requestState } = asked;
    const inputResponses = { [key]: { action: "accept", content: {} } };
    const done = await call("gated__show", args, { requestState, inputResponses }, shows);
    expect(done).toMatchObject({ content: [{ text: "done" }] });
  });

  test("two searches, perhaps of two clients -> both get the instructions of the server that they find", async () => {
    for (let at = 0; at < 2; at++) {
      const found = await call("ToolSearch", { query: "select:says__work" });
      expect(found.content).toEqual([
        { type: "text", text: expect.any(String) },
        { type: "text", text: expect.stringContaining("Ask for work.") },
      ]);
    }
  });

  test("the client closes the exchange -> the call is cancelled at the server", async () => {
    const file = join(home.dir, "never");
    const arrived = join(home.dir, "arrived");
    const params = modern({ name: "waits__work", arguments: { file, arrived } });
    const sent = request(endpoint.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "waits__work",
      },
    });
    sent.on("error", () => undefined);
    sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }));
    await expect.poll(() => stat(arrived).catch(() => undefined)).toBeDefined();
    sent.destroy();
    const log = () => readFile(join(home.agentDir, "mcp-threads.log"), "utf8");
    await expect.poll(log).toMatch(/waits\/work.*cancelled/);
  });
});
