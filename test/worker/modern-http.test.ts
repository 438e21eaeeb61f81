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
import { currentCatalog, type Place, start, textOf, until } from "./support.ts";

const ENVELOPE = "io.modelcontextprotocol/";
const placeOf = ({ agentDir, cwd }: Place): Place => ({ agentDir, cwd });

test("every request -> the envelope, the headers that repeat it, an id of its own, and no session", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  await at.call("s", "echo", { text: "hi" });
  await at.call("s", "get_note");
  await at.runtime.ask("getPrompt", { server: "s", prompt: "weather", args: { city: "Bern" } });

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
});

test("parameters with x-mcp-header -> repeated as headers, encoded where no header holds them; a server checks them", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  const args = { region: "eu wést", note: "x" };
  expect(JSON.parse(textOf(await at.call("s", "routed", args)))).toEqual(args);
  const [sent] = sentTo(server, "tools/call");
  const encoded = Buffer.from(args.region, "utf8").toString("base64");
  expect(sent?.headers).toMatchObject({ "mcp-param-region": `=?base64?${encoded}?=` });
  expect(Object.keys(sent?.headers ?? {}).filter((name) => name.startsWith("mcp-param-"))).toHaveLength(1);
});

test("the server refuses the headers once (-32020) -> the tools are listed again, and the call is sent once more", async () => {
  let refusals = 1;
  const server = await serveFixture("modern", (asked, response) => {
    if (asked.message.method !== "tools/call" || refusals-- <= 0) return false;
    sendMessage(response, { id: asked.message.id, error: { code: -32020, message: "Header mismatch" } }, 400);
    return true;
  });
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  const before = server.asked.length;
  expect(textOf(await at.call("s", "routed", { region: "eu" }))).toBe('{"region":"eu"}');
  expect(server.log.slice(before)).toEqual(["POST tools/call", "POST tools/list", "POST tools/call"]);
});

test("the server refuses the headers for ever (-32020) -> the call fails after one repetition", async () => {
  const server = await serveFixture(
    "modern",
    onCall(({ message }, response) =>
      sendMessage(response, { id: message.id, error: { code: -32020, message: "Header mismatch" } }, 400),
    ),
  );
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  expect(await at.failedCall("s", "echo", { text: "a" })).toMatchObject({ code: "call_rejected" });
  expect(sentTo(server, "tools/call")).toHaveLength(2);
});

test("a call that is cancelled -> its exchange is closed, the server stops, and nothing is posted", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  const counts = async (): Promise<{ hanging: number; cancelled: number }> =>
    JSON.parse(textOf(await at.call("s", "counts")));
  const cancel = new AbortController();
  const failed = at.failedCall("s", "hang", {}, cancel.signal);
  await until(async () => (await counts()).hanging === 1 || undefined);
  const before = server.asked.length;
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => (await counts()).cancelled === 1 || undefined);
  expect(new Set(server.log.slice(before))).toEqual(new Set(["POST tools/call"]));
  expect(server.asked.filter(({ message }) => message.id === undefined)).toEqual([]);
});

test("a call that takes too long -> call_timeout, and the server stops", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN, timeout: 0.2 } });
  await at.settled("s");
  expect(await at.failedCall("s", "hang")).toMatchObject({ code: "call_timeout" });
  const cancelled = async () => JSON.parse(textOf(await at.call("s", "counts"))).cancelled;
  await until(async () => (await cancelled()) === 1 || undefined);
});

test("a long call -> its progress arrives", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  expect(textOf(await at.call("s", "work", { steps: 3, ms: 10 }))).toBe("3 steps");
  expect(await at.event("progress")).toMatchObject({ message: "step 1", progress: 1, total: 3 });
});

test("a server that is kept up, and adds a tool -> one open stream tells it, and the tool can be called", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN, lifecycle: "eager" } });
  await at.settled("s");
  await until(async () => sentTo(server, "subscriptions/listen").length === 1 || undefined);
  const since = at.events.length;
  await at.call("s", "grow");
  await at.event("catalog", () => true, since);
  await until(async () => (await currentCatalog(at)).get("s__grown"));
  expect(textOf(await at.call("s", "grown"))).toBe("grown");
  expect(sentTo(server, "subscriptions/listen")).toHaveLength(1);
});

test("a lazy server -> no stream is held open", async () => {
  const server = await serveFixture();
  const at = await start({ s: { url: server.url, protocol: MODERN } });
  await at.settled("s");
  await at.call("s", "echo", { text: "a" });
  expect(sentTo(server, "subscriptions/listen")).toEqual([]);
});

test.each(["auto", MODERN])(
  'protocol "%s", the second session of a lazy server -> its first call is one POST and nothing before it',
  async (protocol) => {
    const server = await serveFixture();
    const servers = { s: { url: server.url, protocol } };
    const first = await start(servers);
    await first.settled("s");
    await first.runtime.stop();
    const before = server.asked.length;

    const second = await start(servers, { place: placeOf(first) });
    expect(await second.settled("s")).toMatchObject({ state: "idle" });
    expect(textOf(await second.call("s", "routed", { region: "eu" }))).toBe('{"region":"eu"}');
    const [call, ...later] = server.asked.slice(before);
    expect(call?.message).toMatchObject({ method: "tools/call" });
    expect(call?.headers).toMatchObject({ "mcp-name": "routed", "mcp-param-region": "eu" });
    // A list that is no longer fresh may be read again beside the call.
    expect(later.filter(({ message }) => !String(message.method).endsWith("/list"))).toEqual([]);
  },
);

test("a server that was modern and now speaks the old era alone -> the first call finds out, and runs once", async () => {
  const handlers = { modern: fixtureHandler("modern"), legacy: fixtureHandler("legacy") };
  let eras: keyof typeof handlers = "modern";
  const server = await serve((...asked) => handlers[eras](...asked));
  const first = await start({ s: { url: server.url } });
  await first.settled("s");
  await first.runtime.stop();
  eras = "legacy";
  const before = server.asked.length;
  const second = await start({ s: { url: server.url } }, { place: placeOf(first) });
  await second.settled("s");
  const seen = JSON.parse(textOf(await second.call("s", "sees")));
  expect(seen.envelope).toBeNull();
  const calls = server.asked.slice(before).filter(({ message }) => message.method === "tools/call");
  expect(calls.filter(({ headers }) => headers["mcp-protocol-version"] !== MODERN)).toHaveLength(1);
  expect(calls.length).toBeLessThanOrEqual(2);
});
