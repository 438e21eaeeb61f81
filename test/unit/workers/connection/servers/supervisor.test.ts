/** Owns: what a plan does to running servers, what a name stands for, and the waiting; the connections are fakes. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { plan } from "../../../../../workers/connection/config/plan/plan.ts";
import type { Connection } from "../../../../../workers/connection/mcp/connection.ts";
import { callTool } from "../../../../../workers/connection/servers/call.ts";
import type { KnownTools } from "../../../../../workers/connection/servers/lists.ts";
import { Supervisor, type SupervisorContext } from "../../../../../workers/connection/servers/supervisor.ts";
import { SHUTDOWN_TIMES } from "../../../../../workers/shared/pace/pace.ts";
import { recordingLog } from "../../recording-log.ts";
import { definitionOf, fakeConnect, type Opening, settle } from "./support.ts";

afterEach(() => {
  vi.useRealTimers();
});

type Entries = Record<string, object>;
const configurationOf = (entries: Entries) => ({
  servers: Object.entries(entries).map(([name, entry]) => definitionOf(name, entry)),
  settings: DEFAULT_SETTINGS,
});
const never = (): AbortSignal => new AbortController().signal;

function open(options: Partial<SupervisorContext> = {}) {
  const { connect, openings } = fakeConnect();
  const reports: string[] = [];
  const lists: string[] = [];
  const supervisor = new Supervisor({
    cwd: "/cwd",
    npxCacheFile: "/npx",
    log: recordingLog().log,
    emit: () => undefined,
    approvals: { of: () => undefined },
    settings: () => DEFAULT_SETTINGS,
    connect,
    onStatus: ({ name, phase }) => reports.push(`${name} ${phase}`),
    onTools: ({ name }) => lists.push(name),
    ...options,
  });
  let before = configurationOf({});
  /** Carries out what leads from the last configuration to this one. */
  const edit = (entries: Entries, withheld?: Map<string, string>): void => {
    const after = configurationOf(entries);
    supervisor.carryOut(
      plan(before, after),
      new Map([...(withheld ?? [])].map(([name, reason]) => [name, { reason, by: "user" }])),
    );
    before = after;
  };
  return {
    supervisor,
    reports,
    lists,
    openings,
    edit,
    /** The same, and connects what is to be up; the cache knows nothing. */
    start: async (entries: Entries): Promise<void> => {
      edit(entries);
      supervisor.restoreAndConnect({});
      await settle();
    },
    /** Names of the servers that asked for a connection, in order. */
    asked: () => openings.map(({ options: { definition } }) => definition.name),
    openingOf: (name: string): Opening => {
      const found = openings.findLast((one) => one.options.definition.name === name);
      if (!found) throw new Error(`${name} asked for no connection`);
      return found;
    },
  };
}

const call = (supervisor: ReturnType<typeof open>["supervisor"], name: string) =>
  callTool(supervisor.get(name), {
    callId: "1",
    tool: "work",
    args: {},
    signal: never(),
    onProgress: () => undefined,
  });

describe("the first plan", () => {
  test("nothing connects before the cache was asked", async () => {
    const { edit, asked } = open();
    edit({ a: { lifecycle: "eager" } });
    await settle();
    expect(asked()).toEqual([]);
  });

  const known: KnownTools = { tools: [{ name: "known" }] };
  test.each<[string, object, KnownTools | undefined, boolean]>([
    ["lazy, tools known", {}, known, false],
    ["lazy, tools unknown", {}, undefined, true],
    ["eager, tools known", { lifecycle: "eager" }, known, true],
    ["keep-alive, tools known", { lifecycle: "keep-alive" }, known, true],
    ["disabled, tools unknown", { enabled: false }, undefined, false],
    ["lazy, listed nothing", {}, { tools: [] }, true],
    [
      "lazy, listed nothing of anything",
      {},
      { tools: [], prompts: [], skills: [], resources: { resources: [], templates: [] } },
      true,
    ],
    ["lazy, prompts known", {}, { tools: [], prompts: [{ name: "p" }] }, false],
    ["disabled, listed nothing", { enabled: false }, { tools: [] }, false],
  ])("%s -> connects only if it must", async (_case, entry, cached, connects) => {
    const { supervisor, edit, asked } = open();
    edit({ a: entry });
    supervisor.restoreAndConnect(cached ? { a: cached } : {});
    await settle();
    expect(asked()).toEqual(connects ? ["a"] : []);
    expect(supervisor.get("a").tools).toEqual(cached?.tools);
  });

  test("a server that listed nothing -> ToolSearch waits for it; asked once", async () => {
    const { supervisor, edit, asked, openingOf } = open();
    edit({ a: {} });
    supervisor.restoreAndConnect({ a: { tools: [] } });
    await settle();
    expect(supervisor.get("a").learning).toBe(true);
    openingOf("a").open({ listTools: async () => [] });
    await settle();
    await supervisor.reconnectDropped();
    await settle();
    expect([supervisor.get("a").learning, asked()]).toEqual([false, ["a"]]);
  });

  test("a call comes before the cache has answered -> what the server listed itself stays", async () => {
    const { supervisor, edit, openingOf } = open();
    edit({ a: {} });
    const calling = call(supervisor, "a");
    await settle();
    openingOf("a").open({
      listTools: async () => [{ name: "work" }],
      listPrompts: async () => [{ name: "new" }],
    });
    await calling;
    supervisor.restoreAndConnect({
      a: { tools: [{ name: "old" }], prompts: [{ name: "old" }], instructions: "Old." },
    });
    const { tools, prompts, instructions } = supervisor.get("a");
    expect([tools, prompts, instructions]).toEqual([[{ name: "work" }], [{ name: "new" }], undefined]);
  });

  test("the cache answers between a server's prompts and its tools -> its own prompts stay", async () => {
    const { supervisor, edit, openingOf } = open();
    edit({ a: {} });
    const calling = call(supervisor, "a");
    await settle();
    const listed = Promise.withResolvers<{ name: string }[]>();
    openingOf("a").open({ listTools: () => listed.promise, listPrompts: async () => [{ name: "new" }] });
    await settle();
    supervisor.restoreAndConnect({ a: { tools: [{ name: "old" }], prompts: [{ name: "old" }] } });
    expect(supervisor.get("a").tools).toEqual([{ name: "old" }]);
    listed.resolve([{ name: "work" }]);
    await calling;
    const { tools, prompts } = supervisor.get("a");
    expect([tools, prompts]).toEqual([[{ name: "work" }], [{ name: "new" }]]);
  });

  test("a server named like a member of Object -> its tools are unknown", async () => {
    const { start, asked } = open();
    await start({ constructor: {} });
    expect(asked()).toEqual(["constructor"]);
  });

  test("a call waits for one server -> the others stand aside, that one does not, and they list when it is answered", async () => {
    const { start, supervisor, openingOf } = open();
    await start({ a: { lifecycle: "eager" }, called: { lifecycle: "eager" } });
    const asideOf = (name: string) => openingOf(name).options.standAside?.();
    expect(asideOf("a")).toBeUndefined();
    const answered = Promise.withResolvers<{ content: [] }>();
    const calling = call(supervisor, "called");
    expect(asideOf("called")).toBeUndefined();
    expect(asideOf("a")).toBeInstanceOf(Promise);
    openingOf("a").open();
    openingOf("called").open({
      listTools: async () => [{ name: "work" }],
      callTool: () => answered.promise,
    });
    await settle();
    expect(supervisor.get("called").phase).toBe("connected");
    expect(supervisor.get("a").phase).toBe("connecting");
    answered.resolve({ content: [] });
    await calling;
    await settle();
    expect(supervisor.get("a").phase).toBe("connected");
    expect(asideOf("a")).toBeUndefined();
  });

  test("a server at work when the worker died -> held back, once: an edit of it is tried", async () => {
    const { start, supervisor, asked } = open({ heldBack: new Map([["a", "It was at work"]]) });
    await start({ a: {}, b: {} });
    expect(asked()).toEqual(["b"]);
    expect(supervisor.get("a").phase).toBe("failed");
    await start({ a: { args: ["other"] }, b: {} });
    expect(asked()).toEqual(["b", "a"]);
  });
});

describe("an edit", () => {
  async function connected() {
    const at = open();
    await at.start({ a: {}, b: {} });
    const connections = { a: at.openingOf("a").open(), b: at.openingOf("b").open() };
    await settle();
    return { ...at, connections };
  }

  test("of rules -> the same server with its connection", async () => {
    const { supervisor, edit, connections } = await connected();
    const before = supervisor.get("a");
    edit({ a: { excludeTools: ["work"] }, b: {} });
    expect(supervisor.get("a")).toBe(before);
    expect(before.excludes("work")).toBe(true);
    expect(connections.a.closes).toEqual([]);
  });

  test.each<[string, from: string, to: string, onDemand: boolean, connects: boolean]>([
    ["lazy to eager", "lazy", "eager", false, true],
    ["lazy to keep-alive", "lazy", "keep-alive", false, true],
    ["eager to keep-alive", "eager", "keep-alive", false, true],
    ["keep-alive to lazy", "keep-alive", "lazy", false, false],
    ["lazy to eager, in a session that connects on demand", "lazy", "eager", true, false],
  ])(
    "of the lifecycle, %s, no connection -> connects if the server is to be up",
    async (_case, from, to, onDemand, connects) => {
      const { supervisor, edit, asked, openingOf } = open({ onDemand });
      edit({ a: { lifecycle: from } });
      const resources = { resources: [], templates: [] };
      supervisor.restoreAndConnect({ a: { tools: [{ name: "known" }], resources } });
      await settle();
      if (asked().length > 0) {
        const connection = openingOf("a").open();
        await settle();
        connection.end();
      }
      const since = asked().length;
      edit({ a: { lifecycle: to } });
      await settle();
      expect(asked().slice(since)).toEqual(connects ? ["a"] : []);
      expect(supervisor.get("a").phase).toBe(connects ? "connecting" : "idle");
    },
  );

  test("of the lifecycle, of a server that has just failed -> tried at once: keep-alive has no timer yet", async () => {
    const { edit, start, asked, openingOf } = open();
    await start({ a: {} });
    openingOf("a").fail(new Error("no"));
    await settle();
    edit({ a: { lifecycle: "keep-alive" } });
    await settle();
    expect(asked()).toEqual(["a", "a"]);
  });

  test("of the command -> another server with the old tools; the old one ends after its calls", async () => {
    const { supervisor, edit, connections, openingOf, reports } = await connected();
    const answer = Promise.withResolvers<{ content: [] }>();
    connections.a.callTool = () => answer.promise;
    const called = call(supervisor, "a");
    await settle();
    const before = supervisor.get("a");
    edit({ a: { args: ["other"] }, b: {} });
    supervisor.restoreAndConnect({});
    const after = supervisor.get("a");
    expect(after).not.toBe(before);
    expect([after.tools, after.phase]).toEqual([[{ name: "work" }], "connecting"]);
    await settle();
    openingOf("a").open();
    await settle();
    expect(connections.a.closes).toEqual([]);
    const since = reports.length;
    answer.resolve({ content: [] });
    await called;
    await settle();
    expect(connections.a.closes).toHaveLength(1);
    // The end of a server that was replaced is not reported as one of its successor's.
    expect(reports.slice(since)).toEqual([]);
  });

  test("that removes a server -> it is closed, and its name says so until it is defined again", async () => {
    const { supervisor, edit, connections } = await connected();
    edit({ b: {} });
    await settle();
    expect(connections.a.closes).toHaveLength(1);
    expect(supervisor.servers.map(({ name }) => name)).toEqual(["b"]);
    expect(supervisor.names).toEqual(["b", "a"]);
    expect(() => supervisor.get("a")).toThrow("The server a was removed from the configuration.");
    edit({ b: {}, a: {} });
    expect(supervisor.servers.map(({ name }) => name)).toEqual(["b", "a"]);
  });

  test("a server that was removed while a call of it runs longer than it may -> closed all the same", async () => {
    const { supervisor, edit, connections } = await connected();
    connections.a.callTool = () => new Promise(() => undefined);
    void call(supervisor, "a");
    await settle();
    vi.useFakeTimers();
    edit({ b: {} });
    await vi.advanceTimersByTimeAsync(LIMITS.drainMs);
    expect(connections.a.closes).toHaveLength(1);
  });
});

describe("the process of the server before", () => {
  const other = { args: ["other"] };
  /** The server `a`, whose process ends when the test says so. */
  async function ending(entry: object, over: Partial<Connection> = {}) {
    const at = open();
    const ended = Promise.withResolvers<void>();
    await at.start({ a: entry });
    const connection = at.openingOf("a").open({ ...over, close: () => ended.promise });
    await settle();
    return { ...at, connection, end: ended.resolve };
  }

  test.each<[string, Entries[]]>([
    ["another command", [{ a: other }]],
    ["removed, then defined again", [{}, { a: {} }]],
    ["switched off, then on", [{ a: { enabled: false } }, { a: {} }]],
    ["two edits at once", [{ a: other }, { a: { args: ["third"] } }]],
  ])("%s -> the next one starts once it has ended", async (_case, edits) => {
    const { start, asked, connection, end, openingOf, supervisor } = await ending({});
    for (const entries of edits) await start(entries);
    expect(connection.closes).toHaveLength(1);
    const calling = call(supervisor, "a");
    await settle();
    expect(asked()).toEqual(["a"]);
    end();
    await settle();
    expect(asked()).toEqual(["a", "a"]);
    openingOf("a").open();
    await calling;
  });

  test("does not end -> the next one starts after the limit, and a call waits no longer", async () => {
    vi.useFakeTimers();
    const { start, asked, supervisor } = await ending({});
    await start({ a: other });
    void call(supervisor, "a");
    await vi.advanceTimersByTimeAsync(LIMITS.closeKillMs - 1);
    expect(asked()).toEqual(["a"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked()).toEqual(["a", "a"]);
  });

  test.each<[string, object, Partial<Connection>, Entries]>([
    ["was a remote server", { command: undefined, url: "https://x.test" }, { transport: "http" }, { a: {} }],
    ["shared", { shared: true }, { sharing: () => ({ sessions: 1, since: 0 }) }, { a: other }],
    ["the next one is remote", {}, {}, { a: { command: undefined, url: "https://x.test" } }],
    ["another server", {}, {}, { b: {} }],
  ])("%s -> nothing waits", async (_case, entry, over, next) => {
    const { start, asked } = await ending(entry, over);
    await start(next);
    expect(asked()).toHaveLength(2);
  });
});

describe("carryOut", () => {
  const other = { args: ["other"] };
  const rules = { description: "other" };
  test.each<[string, existing: Entries, before: Entries, after: Entries, outcomes: string[]]>([
    ["a new server", {}, {}, { a: {} }, ["a created"]],
    ["a server removed", { a: {} }, { a: {} }, {}, ["a ended"]],
    ["the same", { a: {} }, { a: {} }, { a: {} }, ["a kept"]],
    ["other rules", { a: {} }, { a: {} }, { a: rules }, ["a kept"]],
    ["another command", { a: {} }, { a: {} }, { a: other }, ["a created", "a ended"]],
    [
      "the order of the new configuration, then removals",
      { a: {}, b: {} },
      { a: {}, b: {} },
      { c: {}, b: {} },
      ["c created", "b kept", "a ended"],
    ],
    ["planned to be kept, but not there", {}, { a: {} }, { a: {} }, ["a created"]],
    ["planned to be updated, but not there", {}, { a: {} }, { a: rules }, ["a created"]],
    ["planned to be replaced, but not there", {}, { a: {} }, { a: other }, ["a created"]],
    ["planned to start, but there", { a: {} }, {}, { a: {} }, ["a created", "a ended"]],
    ["planned to be removed, but not there", {}, { a: {} }, {}, []],
  ])("%s -> %j", async (_case, existing, before, after, outcomes) => {
    const { supervisor, edit } = open();
    edit(existing);
    const old = supervisor.servers;
    const next = configurationOf(after);
    supervisor.carryOut(plan(configurationOf(before), next));
    await settle();
    expect([
      ...supervisor.servers.map((server) => `${server.name} ${old.includes(server) ? "kept" : "created"}`),
      ...old.filter(({ phase }) => phase === "closing").map(({ name }) => `${name} ended`),
    ]).toEqual(outcomes);
    expect(supervisor.servers.map(({ definition }) => definition)).toEqual(next.servers);
  });
});

test.each([
  ["withheld", "server_not_trusted", "withheld is not started: it was refused."],
  ["removed", "server_removed", "The server removed was removed from the configuration."],
  ["both", "server_not_trusted", "both is not started: it waits."],
  ["x", "unknown_server", "No server named x is configured."],
])("get(%s) -> %s", (name, code, message) => {
  const { supervisor, edit } = open();
  edit({ a: {}, removed: {}, both: {} });
  const withheld = [
    ["withheld", "it was refused"],
    ["both", "it waits"],
  ] as const;
  edit({ a: {} }, new Map(withheld));
  expect(supervisor.names).toEqual(["a", "withheld", "both", "removed"]);
  const known = code === "server_not_trusted" ? {} : { known: ["a"] };
  expect(() => supervisor.get(name)).toThrow(
    expect.objectContaining({ code, message, data: expect.objectContaining(known) }),
  );
});

describe("settleTools", () => {
  test("no server learns its tools -> at once", async () => {
    const { supervisor, edit } = open();
    edit({ a: {} });
    expect(await supervisor.settleTools({ timeoutMs: 60_000 }, never())).toEqual([]);
  });

  test("servers that learn -> settled when the last one has connected or failed", async () => {
    const { supervisor, edit, openingOf } = open();
    edit({ a: {}, b: {} });
    supervisor.restoreAndConnect({});
    let pending: string[] | undefined;
    const settled = supervisor.settleTools({ timeoutMs: 60_000 }, never()).then((names) => {
      pending = names;
    });
    await settle();
    openingOf("a").open();
    await settle();
    expect(pending).toBeUndefined();
    openingOf("b").fail(new Error("no"));
    await settled;
    expect(pending).toEqual([]);
  });

  test("only a named one is waited for", async () => {
    const { start, supervisor, openingOf } = open();
    await start({ a: {}, b: {} });
    const settled = supervisor.settleTools({ timeoutMs: 60_000, servers: ["a"] }, never());
    openingOf("a").open();
    expect(await settled).toEqual([]);
    expect(supervisor.get("b").learning).toBe(true);
  });

  test("cancelled before it waits -> names of those that still learn, at once", async () => {
    const { start, supervisor } = open();
    await start({ a: {} });
    expect(await supervisor.settleTools({ timeoutMs: 60_000 }, AbortSignal.abort())).toEqual(["a"]);
  });

  test("too late, or cancelled -> names of those that still learn", async () => {
    const { start, supervisor } = open();
    await start({ a: {} });
    expect(await supervisor.settleTools({ timeoutMs: 1 }, never())).toEqual(["a"]);
    const controller = new AbortController();
    const settled = supervisor.settleTools({ timeoutMs: 60_000 }, controller.signal);
    controller.abort();
    expect(await settled).toEqual(["a"]);
  });
});

describe("reconnect", () => {
  test("all -> each enabled one anew; settles though one fails", async () => {
    const { supervisor, edit, asked, openingOf } = open();
    edit({ a: {}, off: { enabled: false }, b: {} });
    const done = supervisor.reconnect(undefined);
    await settle();
    expect(asked()).toEqual(["a", "b"]);
    openingOf("a").fail(new Error("no"));
    openingOf("b").open();
    await done;
    expect(supervisor.servers.map(({ phase }) => phase)).toEqual(["failed", "disabled", "connected"]);
  });

  test("a named one that fails -> settles: its status says so; one that is disabled -> refused", async () => {
    const { supervisor, edit, openingOf } = open();
    edit({ a: {}, off: { enabled: false } });
    const done = supervisor.reconnect("a");
    await settle();
    openingOf("a").fail(new Error("no"));
    await done;
    await expect(supervisor.reconnect("off")).rejects.toMatchObject({ code: "server_disabled" });
    await expect(supervisor.reconnect("x")).rejects.toMatchObject({ code: "unknown_server" });
  });

  test("the end of a turn -> eager servers that were dropped connect, no other", async () => {
    const { start, supervisor, openingOf, asked } = open();
    const entries = { eager: { lifecycle: "eager" }, lazy: {}, well: { lifecycle: "eager" } };
    await start(entries);
    const connections = Object.keys(entries).map((name) => openingOf(name).open());
    await settle();
    connections[0]?.end();
    connections[1]?.end();
    const since = asked().length;
    await supervisor.reconnectDropped();
    await settle();
    expect(asked().slice(since)).toEqual(["eager"]);
  });

  test("the end of a turn -> servers to which someone has signed in elsewhere, but no lazy one whose tools are known", async () => {
    const signedIn = new Set<string>();
    const auth = {
      of: () => undefined,
      forTrial: () => undefined,
      status: () => undefined,
      hasOther: async (name: string) => signedIn.has(name),
    };
    const { supervisor, edit, openingOf, asked } = open({ auth });
    edit({ eager: { lifecycle: "eager" }, unknown: {}, empty: {}, known: {} });
    const known = { tools: [{ name: "known" }] };
    supervisor.restoreAndConnect({ eager: known, empty: { tools: [] }, known });
    supervisor
      .get("known")
      .connect("call")
      .catch(() => undefined);
    await settle();
    const names = ["eager", "unknown", "empty", "known"];
    for (const name of names) openingOf(name).fail(new ThreadsError("needs_auth", `${name}: sign in.`));
    await settle();
    const since = asked().length;
    await supervisor.reconnectDropped();
    await settle();
    expect(asked().slice(since)).toEqual([]);
    for (const name of names) signedIn.add(name);
    await supervisor.reconnectDropped();
    await settle();
    expect(asked().slice(since)).toEqual(["eager", "unknown", "empty"]);
  });

  test("the end of a turn -> servers that have failed are tried again, but no lazy one whose tools are known", async () => {
    vi.useFakeTimers();
    const { supervisor, edit, openingOf, asked } = open();
    edit({ eager: { lifecycle: "eager" }, unknown: {}, known: {} });
    const known = { tools: [{ name: "known" }] };
    supervisor.restoreAndConnect({ eager: known, known });
    supervisor
      .get("known")
      .connect("call")
      .catch(() => undefined);
    await settle();
    for (const name of ["eager", "unknown", "known"]) openingOf(name).fail(new Error("no"));
    await settle();
    const since = asked().length;
    await supervisor.reconnectDropped();
    await settle();
    expect(asked().slice(since)).toEqual([]);
    await vi.advanceTimersByTimeAsync(LIMITS.retrySoonestMs);
    await supervisor.reconnectDropped();
    await settle();
    expect(asked().slice(since)).toEqual(["eager", "unknown"]);
  });
});

test("close -> settles when every server is closed, also one that had left", async () => {
  const { start, supervisor, edit, openingOf } = open();
  await start({ a: {}, b: {} });
  const closing = Promise.withResolvers<void>();
  openingOf("a").open({ close: () => closing.promise });
  const b = openingOf("b").open();
  await settle();
  edit({ b: {} });
  let isClosed = false;
  const closed = supervisor.close().then(() => {
    isClosed = true;
  });
  await settle();
  expect([b.closes.length, isClosed]).toEqual([1, false]);
  closing.resolve();
  await closed;
});

test.each<[string, Entries]>([
  ["replaced", { a: { args: ["other"] } }],
  ["removed", {}],
])("close, a call of a server that was %s is open -> its connection ends at once", async (_how, entries) => {
  const { start, supervisor, edit, openingOf } = open();
  await start({ a: {} });
  const a = openingOf("a").open({ callTool: () => new Promise(() => undefined) });
  void call(supervisor, "a");
  await settle();
  edit(entries);
  await settle();
  expect(a.closes).toEqual([]);
  const closed = supervisor.close();
  await settle();
  expect(a.closes).toEqual([{ ...SHUTDOWN_TIMES, leave: "now" }]);
  await closed;
});

test("the tools of a server that was listed -> reported with its name", async () => {
  const { start, openingOf, lists } = open();
  await start({ a: {} });
  openingOf("a").open();
  await settle();
  expect(lists).toEqual(["a"]);
});
