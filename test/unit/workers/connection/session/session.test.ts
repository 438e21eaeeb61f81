/** Owns: what a session does with its first plan, with changes, with requests and at its end. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { decode } from "../../../../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { CacheEntry } from "../../../../../workers/shared/tasks.ts";
import { settle } from "../servers/support.ts";
import { never, openWith } from "./support.ts";

const entry = (tool: string): CacheEntry => ({
  configHash: `hash of ${tool}`,
  tools: [{ name: tool }],
  cachedAt: 1,
});
const NO_PARAMS = {};

describe("the first plan", () => {
  test("servers that are unknown -> told as planned before anything connects; then connected and published", async () => {
    const at = await openWith({ a: {}, b: {} });
    await at.session.planned;
    const planned = await at.event("planned");
    expect(planned.servers.map(({ name, state }) => [name, state])).toEqual([
      ["a", "idle"],
      ["b", "idle"],
    ]);
    expect(at.events[0]).toBe(planned);
    for (const name of ["a", "b"]) (await at.opening(name)).open();
    const settled = await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(settled).toEqual([]);
    expect(at.published.at(-1)?.servers.map(({ name, tools }) => [name, tools.length])).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
    expect(at.types()).not.toContain("notice");
  });

  test("tools that the cache knows -> published without a connection; the use of the entry is written down", async () => {
    const at = await openWith({ a: {} }, { entries: { a: entry("known") } });
    const pending = await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect([pending, at.openings.length]).toEqual([[], 0]);
    expect(at.published.at(-1)?.servers[0]?.tools).toEqual([{ name: "known", direct: false }]);
    await at.session.close();
    expect(at.stored).toEqual([
      { path: expect.stringMatching(/mcp-cache\.json$/), entries: {}, used: { a: "hash of known" } },
    ]);
  });

  test("an unknown server -> the cache worker's thread starts; on demand only when that server connects", async () => {
    const unasked = await openWith({ a: {} });
    await unasked.opening("a");
    expect(unasked.warmed()).toBe(1);

    const entries = { known: entry("known") };
    const at = await openWith({ known: {}, a: {} }, { entries, facts: { onDemand: true } });
    const reconnect = async (server: string): Promise<void> => {
      const reconnected = at.session.requests.reconnect({ server }, never());
      (await at.opening(server)).open();
      await reconnected;
    };
    await at.session.planned;
    await reconnect("known");
    expect(at.warmed()).toBe(0);
    await reconnect("a");
    expect(at.warmed()).toBe(1);
  });

  test("resources that another adapter stored -> checked like a server's", async () => {
    const resources = [{ name: "note", uri: "x://note" }, { name: 7 }, null];
    const at = await openWith(
      { a: { exposeResources: true } },
      { entries: { a: { ...entry("known"), resources } } },
    );
    await at.session.planned;
    const { servers } = await at.session.requests.status(NO_PARAMS, never());
    expect(servers[0]).toMatchObject({ toolCount: 1, resourceCount: 1 });
  });

  test("a server at work when the worker died -> not connected by itself", async () => {
    const heldBack = [{ server: "a", why: "It was at work" }];
    const at = await openWith({ a: {} }, { facts: { heldBack } });
    const pending = await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect([pending, at.openings.length]).toEqual([[], 0]);
    const { servers } = await at.session.requests.status(NO_PARAMS, never());
    expect(servers[0]).toMatchObject({ state: "failed" });
  });

  test("a server of the project that nobody agreed to -> not there, and a call says why", async () => {
    const at = await openWith({ a: {} }, { entries: { a: entry("t") }, project: { theirs: {} } });
    await at.session.planned;
    const { servers, questions } = await at.event("planned");
    expect([servers.map(({ name }) => name), questions.map(({ server }) => server)]).toEqual([
      ["a"],
      ["theirs"],
    ]);
    const call = { callId: "1", server: "theirs", tool: "t", args: {} };
    await expect(at.session.requests.callTool(call, never())).rejects.toMatchObject({
      code: "server_not_trusted",
      message: "theirs is not started: it waits for the user's consent.",
    });
    const missing = await at.session.requests.explainMissing({ name: "theirs__t" }, never());
    expect(missing).toMatchObject({ code: "server_not_trusted" });
    const hash = questions[0]?.hash ?? "";
    await at.session.requests.answerConsent({ hash, allow: true }, never());
    await at.opening("theirs");
  });
});

describe("a change", () => {
  test("a yes is taken back while it is being applied -> the server does not start", async () => {
    const reading = Promise.withResolvers<void>();
    const read = Promise.withResolvers<void>();
    const cacheRead = () => {
      reading.resolve();
      return read.promise;
    };
    const at = await openWith({}, { project: { site: { lifecycle: "eager" } }, cacheRead });
    const { requests } = at.session;
    const [question] = (await requests.status({}, never())).questions;
    const allowed = requests.answerConsent({ hash: question?.hash ?? "", allow: true }, never());
    await reading.promise;
    const decisions = () => requests.decisions({}, never());
    const [decided] = await decisions();
    const takenBack = requests.takeBack({ id: decided?.id ?? "" }, never());
    await expect.poll(decisions).toEqual([]);
    read.resolve();
    await Promise.all([allowed, takenBack]);
    expect(at.openings).toEqual([]);
    const { servers, questions } = await requests.status({}, never());
    expect([servers, questions.map(({ server }) => server)]).toEqual([[], ["site"]]);
    const again = requests.answerConsent({ hash: questions[0]?.hash ?? "", allow: true }, never());
    await at.opening("site");
    await again;
  });

  test("a yes is taken back while another edit is being applied -> no call reaches the server, which does not connect again", async () => {
    let read = Promise.resolve();
    const at = await openWith({}, { project: { site: {} }, cacheRead: () => read });
    const { requests } = at.session;
    const [question] = (await requests.status({}, never())).questions;
    const allowed = requests.answerConsent({ hash: question?.hash ?? "", allow: true }, never());
    (await at.opening("site")).open({
      listTools: async () => [{ name: "t", annotations: { readOnlyHint: true } }],
      callTool: async () => ({ content: [] }),
    });
    await allowed;
    await requests.settleTools({ timeoutMs: 60_000 }, never());
    const call = { callId: "1", server: "site", tool: "t", args: {} };
    await requests.callTool(call, never());
    const edited = Promise.withResolvers<void>();
    read = edited.promise;
    const editing = at.edit({ other: {} });
    await expect.poll(async () => (await requests.status({}, never())).servers.length).toBe(2);
    const decisions = () => requests.decisions({}, never());
    const takenBack = requests.takeBack({ id: (await decisions())[0]?.id ?? "" }, never());
    await expect.poll(decisions).toEqual([]);
    for (const refused of [requests.callTool(call, never()), requests.reconnect({ server: "site" }, never())])
      await expect(refused).rejects.toMatchObject({
        code: "server_not_trusted",
        message: "site is not used: its permission was taken back.",
      });
    expect(at.openings.length).toBe(1);
    edited.resolve();
    await Promise.all([editing, takenBack]);
    const { servers, questions } = await requests.status({}, never());
    expect(
      [servers, questions].map((list) => list.map((one) => ("name" in one ? one.name : one.server))),
    ).toEqual([["other"], ["site"]]);
  });

  const known = { entries: { a: entry("t"), b: entry("t") } };

  test("a server added -> reported once it has settled and main has its tools", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    const since = at.events.length;
    await at.edit({ a: {}, new: {} });
    const opening = await at.opening("new");
    await settle();
    expect(at.types(since)).not.toContain("notice");
    opening.open({ listTools: async () => [{ name: "x" }, { name: "y" }] });
    const notice = await at.event("notice", since);
    expect(notice).toMatchObject({ level: "info", text: "mcp.json: + new (2 tools)" });
    expect(at.types(since).at(-2)).toBe("catalog");
    expect(at.published.at(-1)?.servers.map(({ tools }) => tools.length)).toEqual([1, 2]);
    expect(at.lines).toContain("info mcp.json: + new (2 tools)");
  });

  test("a server removed -> main has that at once, and the notice follows", async () => {
    const at = await openWith({ a: {}, b: {} }, known);
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    const since = at.events.length;
    await at.edit({ a: {} });
    expect(await at.event("notice", since)).toMatchObject({ text: "mcp.json: - b" });
    expect(at.types(since).slice(0, 3)).toEqual(["planned", "removed", "notice"]);
  });

  test.each<[string, Record<string, object>]>([
    ["removed", {}],
    ["switched off", { a: { enabled: false } }],
  ])("a server that a search waits for is %s -> the search goes on at once", async (_how, servers) => {
    const at = await openWith({ a: {} });
    await at.opening("a");
    const settled = at.session.requests.settleTools({ timeoutMs: LIMITS.longestTimerMs }, never());
    await at.edit(servers);
    expect(await settled).toEqual([]);
    expect(at.published.at(-1)?.servers).toEqual([]);
  });

  test("of rules alone, nothing that main shows -> reported without another catalog", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    const since = at.events.length;
    await at.edit({ a: { requestTimeoutMs: 5 } });
    expect(await at.event("notice", since)).toMatchObject({ text: "mcp.json: ~ a (timeout)" });
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(at.types(since)).toEqual(["planned", "notice"]);
  });

  test.each<[string, object, boolean]>([
    ["excludeTools", { excludeTools: ["x"] }, true],
    ["a key that changes no list, as written", { env: {} }, true],
    ["resources, which nobody knows yet", { exposeResources: true }, false],
    ["another program", { args: ["other"] }, false],
  ])(
    "that gives a known server another hash: %s -> its entry has that hash and its old age: %s",
    async (_what, change, isStored) => {
      const at = await openWith({ a: { exposeResources: false } }, known);
      await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
      await at.edit({ a: { exposeResources: false, ...change } });
      await at.session.close();
      const entries = at.stored.flatMap(({ entries: { a } }) => a ?? []);
      const stored = {
        tools: [{ name: "t" }],
        cachedAt: 1,
        configHash: expect.stringContaining(JSON.stringify(change).slice(1, -1)),
      };
      expect(entries).toEqual(isStored ? [expect.objectContaining(stored)] : []);
    },
  );

  test("of settings -> they hold at once, for servers that run and for the catalog", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    const since = at.events.length;
    await at.edit({ a: {} }, { directTools: true });
    expect(await at.event("notice", since)).toMatchObject({ text: "mcp.json: settings (directTools)" });
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(at.published.at(-1)?.servers[0]?.tools).toEqual([{ name: "t", direct: true }]);
  });

  test("nothing that anybody sees -> not reported", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    const since = at.events.length;
    await at.edit({ a: { env: {} } });
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(at.types(since)).not.toContain("notice");
  });

  test("the session ends before its servers have settled -> not reported", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.planned;
    await at.edit({ a: {}, slow: {} });
    await at.opening("slow");
    const since = at.events.length;
    await at.session.close();
    expect(at.types(since)).not.toContain("notice");
  });

  test("an edit that waits for the user's word -> told as held; applied when the user says so", async () => {
    const at = await openWith({ a: {} }, { ...known, settings: { hotReload: "ask" } });
    await at.session.planned;
    await at.write({ a: {}, new: {} }, { hotReload: "ask" });
    const { id, text } = await at.event("held");
    expect(text).toBe("mcp.json: + new");
    expect(at.openings).toEqual([]);
    expect(await at.session.requests.applyHeld({ id, apply: true }, never())).toBeUndefined();
    await at.opening("new");
  });

  test("servers that another extension registers -> started beside the user's", async () => {
    const at = await openWith({ a: {} }, known);
    await at.session.planned;
    const registered = [{ name: "theirs", config: { command: "x" }, extensionPath: "/ext.ts" }];
    await at.session.requests.setRegistered({ servers: registered }, never());
    await at.opening("theirs");
  });
});

describe("requests", () => {
  test("a call -> the server is connected, the result comes back as bytes, progress as events", async () => {
    const at = await openWith({ a: {} }, { entries: { a: entry("work") } });
    const call = { callId: "c1", server: "a", tool: "work", args: { x: 1 } };
    const called = at.session.requests.callTool(call, never());
    (await at.opening("a")).open({
      callTool: async ({ args, onProgress }) => {
        onProgress({ message: "half" });
        return { content: [{ type: "text", text: JSON.stringify(args) }] };
      },
    });
    expect(decode(await called)).toMatchObject({
      content: [{ type: "text", text: '{"x":1}' }],
      isError: false,
    });
    expect(at.events).toContainEqual({ type: "progress", callId: "c1", message: "half" });
  });

  test("a call that fails -> its error without secrets of the server's definition", async () => {
    const at = await openWith({ a: {} }, { entries: { a: entry("work") } });
    const call = { callId: "c1", server: "a", tool: "work", args: {} };
    const called = at.session.requests.callTool(call, never());
    const { options, open } = await at.opening("a");
    options.onSecrets({ values: ["s3cr3t-value"], named: [] });
    open({ callTool: () => Promise.reject(new ThreadsError("call_rejected", "a says s3cr3t-value")) });
    await expect(called).rejects.toMatchObject({ code: "call_rejected", message: "a says [redacted]" });
  });

  test("reconnect -> the named server; an unknown one, or one whose entry is wrong, is explained", async () => {
    const at = await openWith({ a: {}, wrong: { command: undefined } }, { entries: { a: entry("t") } });
    const reconnected = at.session.requests.reconnect({ server: "a" }, never());
    (await at.opening("a")).open();
    expect(await reconnected).toBeUndefined();
    const reconnect = (server: string) => at.session.requests.reconnect({ server }, never());
    await expect(reconnect("wrong")).rejects.toThrow("The server wrong cannot be used.");
    await expect(reconnect("x")).rejects.toMatchObject({ code: "unknown_server" });
  });

  test("reconnect of a server whose tools were left out -> they are published again", async () => {
    let isTooMuch = true;
    const at = await openWith(
      { a: {} },
      {
        entries: { a: entry("t") },
        publish: ({ servers }) => !isTooMuch || servers.every(({ tools }) => tools.length === 0),
      },
    );
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(at.published.at(-1)?.servers[0]?.tools).toEqual([]);
    isTooMuch = false;
    const reconnected = at.session.requests.reconnect({ server: "a" }, never());
    (await at.opening("a")).fail(new Error("not today"));
    await reconnected;
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    expect(at.published.at(-1)?.servers[0]?.tools).toEqual([{ name: "t", direct: false }]);
  });

  test("somebody leaves the log while a request waits for its next line -> it ends without an error, which would be such a line", async () => {
    const at = await openWith({});
    const leave = new AbortController();
    const waiting = at.session.requests.serverLog({ server: "a", seen: 0 }, leave.signal);
    leave.abort();
    expect(await waiting).toEqual({ lines: [], size: 0 });
  });

  test("the end of a turn -> an eager server that was dropped connects", async () => {
    const at = await openWith({ a: { lifecycle: "eager" } });
    await at.session.planned;
    const first = await at.opening("a");
    const connection = first.open();
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    connection.end();
    await at.session.requests.turnEnded(NO_PARAMS, never());
    await settle();
    expect(at.openings).toHaveLength(2);
  });

  test("a tool of a server that is switched off -> explained; one that nobody knows -> not", async () => {
    const at = await openWith({ a: { enabled: false } });
    const explain = (name: string) => at.session.requests.explainMissing({ name }, never());
    expect(await explain("mcp__a__work")).toMatchObject({ code: "server_disabled" });
    expect(await explain("other__work")).toBeUndefined();
  });

  test("a tool's schema -> as it was listed, whatever repairs it needs; nothing for a tool that nobody listed", async () => {
    const inputSchema = { $schema: "x:y", if: { required: ["a"] }, unevaluatedProperties: false };
    const listed = {
      configHash: "hash of a",
      tools: [{ name: "t", inputSchema }, { name: "bare" }],
      cachedAt: 1,
    };
    const at = await openWith({ a: {} }, { entries: { a: listed } });
    const declared = (tool: string) => at.session.requests.declaredSchema({ server: "a", tool }, never());
    expect(await declared("t")).toBe(JSON.stringify(inputSchema, undefined, 2));
    expect(await declared("bare")).toBeUndefined();
    expect(await declared("other")).toBeUndefined();
    await expect(
      at.session.requests.declaredSchema({ server: "b", tool: "t" }, never()),
    ).rejects.toMatchObject({ code: "unknown_server" });
  });

  test("/mcp disable and enable -> written, applied, answered with the file", async () => {
    const at = await openWith({ a: {} }, { entries: { a: entry("t") } });
    const set = (enabled: boolean) =>
      at.session.requests.setEnabled({ server: "a", enabled, project: false }, never());
    expect(await set(false)).toEqual({ file: expect.stringMatching(/mcp\.json$/) });
    const off = await at.session.requests.status(NO_PARAMS, never());
    expect(off.servers[0]?.state).toBe("disabled");
    await set(true);
    const on = await at.session.requests.status(NO_PARAMS, never());
    expect(on.servers[0]?.state).not.toBe("disabled");
  });

  test("/mcp enable of a server whose entry has a mistake -> says that it stays off, and why", async () => {
    const registered = [{ name: "a", config: { command: "x" }, extensionPath: "/ext.ts" }];
    const at = await openWith({ a: { excludeTools: "drop_*" } }, { facts: { registered } });
    const set = () => at.session.requests.setEnabled({ server: "a", enabled: true, project: false }, never());
    expect(await set()).toMatchObject({ but: expect.stringMatching(/cannot be used.*excludeTools/) });
    const { servers } = await at.session.requests.status(NO_PARAMS, never());
    expect(servers).toMatchObject([{ name: "a", state: "disabled" }]);
  });

  test.each([
    ["no JSON", '{\n  "mcpServers": {} x\n}\n', "2:20: not valid JSON: invalid symbol."],
    ["a list", "[]", "1:1: expected an object, found a list."],
    ["empty", " \n", "1:1: the file is empty."],
    ["too large", `${" ".repeat(LIMITS.configFileBytes)}{}`, "the text is larger than 32 MB."],
  ])("an edited text that is %s -> not written, and why", async (_name, text, problem) => {
    const { session, event } = await openWith({ mcp: { a: { command: "x" } } });
    await event("planned");
    const { file, text: before } = await session.requests.readConfig({ project: false }, never());
    const wanted = { project: false, before, text };
    expect(await session.requests.writeConfig(wanted, never())).toEqual({ file, problem });
    expect(await readFile(file, "utf8")).toBe(before);
  });

  test("statistics that no setting names -> captured; switched off -> not", async () => {
    const at = await openWith({});
    const summary = { tools: [], moreTools: 0, tokensSaved: 0 };
    expect(await at.session.requests.stats(NO_PARAMS, never())).toEqual({ captured: true, summary });
    const off = await openWith({}, { settings: { captureStats: false } });
    expect(await off.session.requests.stats(NO_PARAMS, never())).toEqual({ captured: false });
  });
});

describe("the end", () => {
  /** Throws at the first event of that type. */
  const failingOnce = (type: WorkerEvent["type"]) => {
    let failed = false;
    return (event: WorkerEvent): void => {
      if (failed || event.type !== type) return;
      failed = true;
      throw new Error(`no ${type}`);
    };
  };

  test("connections are closed, what was listed is stored; nothing is sent any more", async () => {
    const at = await openWith({ a: {} });
    await at.session.planned;
    const connection = (await at.opening("a")).open();
    await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
    await at.session.close();
    expect(connection.closes).toHaveLength(1);
    expect(at.stored.flatMap(({ entries }) => Object.keys(entries))).toEqual(["a"]);
    expect(at.lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });

  test("a start that failed -> each request rejects with its error; close closes what was opened", async () => {
    const at = await openWith({ a: {} }, { emit: failingOnce("server") });
    await expect(at.session.planned).rejects.toThrow("no server");
    await expect(at.session.requests.status(NO_PARAMS, never())).rejects.toThrow("no server");
    await expect(at.session.requests.readConfig({ project: false }, never())).rejects.toThrow("no server");
    const { options } = await at.opening("a");
    await at.session.close();
    expect(options.signal.aborted).toBe(true);
  });
});
