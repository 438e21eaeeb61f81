/**
 * Owns: the stateless era over HTTP as the server sees it: what each request carries, how few requests there are, how a
 * call is cancelled, and how the server tells of changes.
 */
import { expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import {
  fixtureHandler,
  MODERN,
  metaOf,
  onCall,
  sendMessage,
  sentTo,
  serveFixture,
} from "../support/modern-http.ts";
import { currentCatalog, forRows, type Place, start, textOf, until } from "./support.ts";

const ENVELOPE = "io.modelcontextprotocol/";
const placeOf = ({ agentDir, cwd }: Place): Place => ({ agentDir, cwd });

const HEADER_MISMATCH = { code: -32020, message: "Header mismatch" };

/** One worker with a server for each test. */
const shared = forRows(async () => {
  let refusals = 1;
  const servers = {
    enveloped: await serveFixture(),
    routed: await serveFixture(),
    refusesOnce: await serveFixture("modern", (asked, response) => {
      if (asked.message.method !== "tools/call" || refusals-- <= 0) return false;
      sendMessage(response, { id: asked.message.id, error: HEADER_MISMATCH }, 400);
      return true;
    }),
    refuses: await serveFixture(
      "modern",
      onCall(({ message }, response) =>
        sendMessage(response, { id: message.id, error: HEADER_MISMATCH }, 400),
      ),
    ),
    hangs: await serveFixture(),
    times: await serveFixture(),
    works: await serveFixture(),
    grows: await serveFixture(),
  };
  const more: Record<string, object> = { times: { timeout: 2 }, grows: { lifecycle: "eager" } };
  const entries = Object.entries(servers).map(([name, { url }]) => [
    name,
    { url, protocol: MODERN, ...more[name] },
  ]);
  const at = await start(Object.fromEntries(entries));
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return { at, servers };
});

test("every request -> the envelope, the headers that repeat it, an id of its own, and no session; no stream is held open for a lazy server", async () => {
  const {
    at,
    servers: { enveloped: server },
  } = await shared();
  await at.call("enveloped", "echo", { text: "hi" });
  await at.call("enveloped", "get_note");
  await at.runtime.ask("getPrompt", { server: "enveloped", prompt: "weather", args: { city: "Bern" } });

  expect(new Set(server.asked.map(({ http }) => http))).toEqual(new Set(["POST"]));
  for (const asked of server.asked) {
    const { headers, message } = asked;
    expect(headers).toMatchObject({
      "mcp-protocol-version": MODERN,
      "mcp-method": message.method,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    });
    expect(headers).not.toHaveProperty("mcp-session-id");
    expect(metaOf(asked)).toMatchObject({
      [`${ENVELOPE}protocolVersion`]: MODERN,
      [`${ENVELOPE}clientInfo`]: { name: "pi-mcp-threads" },
      [`${ENVELOPE}clientCapabilities`]: { elicitation: { form: {}, url: {} } },
    });
  }
  const ids = server.asked.map(({ message }) => message.id);
  expect(ids).not.toContain(undefined);
  expect(new Set(ids).size).toBe(ids.length);
  const named = Object.fromEntries(
    ["tools/call", "resources/read", "prompts/get"].map((method) => [
      method,
      sentTo(server, method).map(({ headers }) => headers["mcp-name"]),
    ]),
  );
  expect(named).toEqual({
    "tools/call": ["echo"],
    "resources/read": ["fixture://note"],
    "prompts/get": ["weather"],
  });
  expect(sentTo(server, "initialize")).toEqual([]);
  expect(sentTo(server, "subscriptions/listen")).toEqual([]);
});

test("parameters with x-mcp-header -> repeated as headers, encoded where no header holds them; a server checks them", async () => {
  const {
    at,
    servers: { routed: server },
  } = await shared();
  const args = { region: "eu wést", note: "x" };
  expect(JSON.parse(textOf(await at.call("routed", "routed", args)))).toEqual(args);
  const [sent] = sentTo(server, "tools/call");
  const encoded = Buffer.from(args.region, "utf8").toString("base64");
  expect(sent?.headers).toMatchObject({ "mcp-param-region": `=?base64?${encoded}?=` });
  expect(Object.keys(sent?.headers ?? {}).filter((name) => name.startsWith("mcp-param-"))).toHaveLength(1);
});

test("the server refuses the headers once (-32020) -> the tools are listed again, and the call is sent once more", async () => {
  const {
    at,
    servers: { refusesOnce: server },
  } = await shared();
  const before = server.asked.length;
  expect(textOf(await at.call("refusesOnce", "routed", { region: "eu" }))).toBe('{"region":"eu"}');
  expect(server.log.slice(before)).toEqual(["POST tools/call", "POST tools/list", "POST tools/call"]);
});

test("the server refuses the headers for ever (-32020) -> the call fails after one repetition", async () => {
  const {
    at,
    servers: { refuses: server },
  } = await shared();
  expect(await at.failedCall("refuses", "echo", { text: "a" })).toMatchObject({ code: "call_rejected" });
  expect(sentTo(server, "tools/call")).toHaveLength(2);
});

test("a call that is cancelled -> its exchange is closed, the server stops, and nothing is posted", async () => {
  const {
    at,
    servers: { hangs: server },
  } = await shared();
  const counts = async (): Promise<{ hanging: number; cancelled: number }> =>
    JSON.parse(textOf(await at.call("hangs", "counts")));
  const cancel = new AbortController();
  const failed = at.failedCall("hangs", "hang", {}, cancel.signal);
  await until(async () => (await counts()).hanging === 1 || undefined);
  const before = server.asked.length;
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => (await counts()).cancelled === 1 || undefined);
  expect(new Set(server.log.slice(before))).toEqual(new Set(["POST tools/call"]));
  expect(server.asked.filter(({ message }) => message.id === undefined)).toEqual([]);
});

test("a call that takes too long -> call_timeout, and the server stops", async () => {
  const { at } = await shared();
  expect(await at.failedCall("times", "hang")).toMatchObject({ code: "call_timeout" });
  const cancelled = async () => JSON.parse(textOf(await at.call("times", "counts"))).cancelled;
  await until(async () => (await cancelled()) === 1 || undefined);
});

test("a long call -> its progress arrives", async () => {
  const { at } = await shared();
  expect(textOf(await at.call("works", "work", { steps: 3, ms: 10 }))).toBe("3 steps");
  expect(await at.event("progress")).toMatchObject({ message: "step 1", progress: 1, total: 3 });
});

test("a server that is kept up, and adds a tool -> one open stream tells it, and the tool can be called", async () => {
  const {
    at,
    servers: { grows: server },
  } = await shared();
  await until(async () => sentTo(server, "subscriptions/listen").length === 1 || undefined);
  const since = at.events.length;
  await at.call("grows", "grow");
  await at.event("catalog", () => true, since);
  await until(async () => (await currentCatalog(at)).get("grows__grown"));
  expect(textOf(await at.call("grows", "grown"))).toBe("grown");
  expect(sentTo(server, "subscriptions/listen")).toHaveLength(1);
});

/** A session that has learned three lazy servers, and the next one with the same servers. */
const twoSessions = forRows(async () => {
  const handlers = { modern: fixtureHandler("modern"), legacy: fixtureHandler("legacy") };
  let eras: keyof typeof handlers = "modern";
  const servers = {
    auto: await serveFixture(),
    pinned: await serveFixture(),
    changes: await serve((...asked) => handlers[eras](...asked)),
  };
  const entries = {
    auto: { url: servers.auto.url, protocol: "auto" },
    pinned: { url: servers.pinned.url, protocol: MODERN },
    changes: { url: servers.changes.url },
  };
  const first = await start(entries);
  await first.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  await first.runtime.stop();
  eras = "legacy";
  const before = new Map(Object.values(servers).map((server) => [server, server.asked.length]));
  const at = await start(entries, { place: placeOf(first) });
  return {
    at,
    askedOf: (name: keyof typeof servers) => servers[name].asked.slice(before.get(servers[name])),
  };
});

test.each(["auto", "pinned"] as const)(
  "a lazy server with the protocol %s, its second session -> its first call is one POST and nothing before it",
  async (name) => {
    const { at, askedOf } = await twoSessions();
    expect(await at.settled(name)).toMatchObject({ state: "idle" });
    expect(textOf(await at.call(name, "routed", { region: "eu" }))).toBe('{"region":"eu"}');
    const [call, ...later] = askedOf(name);
    expect(call?.message).toMatchObject({ method: "tools/call" });
    expect(call?.headers).toMatchObject({ "mcp-name": "routed", "mcp-param-region": "eu" });
    // A list that is no longer fresh may be read again beside the call.
    expect(later.filter(({ message }) => !String(message.method).endsWith("/list"))).toEqual([]);
  },
);

test("a server that was modern and now speaks the old era alone -> the first call finds out, and runs once", async () => {
  const { at, askedOf } = await twoSessions();
  const seen = JSON.parse(textOf(await at.call("changes", "sees")));
  expect(seen.envelope).toBeNull();
  const calls = askedOf("changes").filter(({ message }) => message.method === "tools/call");
  expect(calls.filter(({ headers }) => headers["mcp-protocol-version"] !== MODERN)).toHaveLength(1);
  expect(calls.length).toBeLessThanOrEqual(2);
});
