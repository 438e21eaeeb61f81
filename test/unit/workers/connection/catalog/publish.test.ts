/** Owns: which changes between two publications are removals only, when publications run, and which servers one that cannot be published whole leaves out. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  type CatalogSettings,
  DEFAULT_CATALOG_SETTINGS,
} from "../../../../../src/shared/protocol/session.ts";
import type { PublishLimits } from "../../../../../workers/connection/catalog/cache-worker.ts";
import {
  isNothing,
  PublishLoop,
  publishApart,
  removedSince,
  withoutToolsOf,
} from "../../../../../workers/connection/catalog/publish.ts";
import type {
  CatalogServer,
  PublishedTool,
  PublishResult,
  PublishTask,
} from "../../../../../workers/shared/tasks.ts";
import { settle } from "../servers/support.ts";

const SCHEMA = { type: "object" };
const tool = (name: string, more: Partial<PublishedTool> = {}): PublishedTool => ({
  name,
  inputSchema: SCHEMA,
  direct: false,
  ...more,
});
const server = (name: string, tools: PublishedTool[], more: Partial<CatalogServer> = {}): CatalogServer => ({
  name,
  project: false,
  toolsKnown: true,
  tools,
  ...more,
});
const [read, write, list] = [tool("read"), tool("write"), tool("list")] as const;
const before = [server("a", [read, write, list]), server("b", [read]), server("c", [])];
const [a, b, c] = before as [CatalogServer, CatalogServer, CatalogServer];

const since = (servers: CatalogServer[], settings: CatalogSettings = DEFAULT_CATALOG_SETTINGS) =>
  removedSince({ servers: before, settings: DEFAULT_CATALOG_SETTINGS }, { servers, settings });

describe("removedSince", () => {
  test.each<[string, CatalogServer[], string[], string[]]>([
    ["the same", [a, b, c], [], []],
    ["the same in new objects", [server("a", [read, write, list]), { ...b }, c], [], []],
    ["the first server gone", [b, c], ["a"], []],
    ["the last two gone", [a], ["b", "c"], []],
    ["all gone", [], ["a", "b", "c"], []],
    ["tools gone", [server("a", [write]), b, c], [], ["a/read", "a/list"]],
    ["a server and a tool gone", [server("a", [read, list]), c], ["b"], ["a/write"]],
  ])("%s", (_, servers, gone, tools) => {
    const removed = since(servers);
    expect(removed?.servers).toEqual(gone);
    expect(removed?.tools.map((one) => `${one.server}/${one.tool}`)).toEqual(tools);
    expect(removed && isNothing(removed)).toBe(gone.length + tools.length === 0);
  });

  test.each<[string, CatalogServer[]]>([
    ["a new server", [...before, server("d", [])]],
    ["a new server in place of another", [server("d", []), b, c]],
    ["another order of servers", [b, a, c]],
    ["a new tool", [a, server("b", [read, write]), c]],
    ["another order of tools", [server("a", [write, read, list]), b, c]],
    ["a tool that is direct now", [server("a", [{ ...read, direct: true }, write, list]), b, c]],
    ["a tool in a new object", [server("a", [{ ...read, inputSchema: { ...SCHEMA } }, write, list]), b, c]],
    ["another description", [{ ...a, description: "d" }, b, c]],
    ["another prefix", [{ ...a, prefix: "mcp" }, b, c]],
    ["tools no longer known", [{ ...a, toolsKnown: false }, b, c]],
  ])("%s -> not only removals", (_, servers) => {
    expect(since(servers)).toBeUndefined();
  });

  test("another setting -> not only removals", () => {
    expect(since([a, b, c], { ...DEFAULT_CATALOG_SETTINGS, proxyTool: true })).toBeUndefined();
    expect(since([b], { ...DEFAULT_CATALOG_SETTINGS, search: "weighted" })).toBeUndefined();
  });
});

describe("servers that say what they list", () => {
  const listing = (name: string, listed: string, tools?: PublishedTool[]): CatalogServer =>
    Object.defineProperty(server(name, [], { listed }), "tools", {
      enumerable: true,
      get: () => {
        if (!tools) throw new Error("a tool is read");
        return tools;
      },
    });
  const between = (one: CatalogServer[], other: CatalogServer[]) =>
    removedSince(
      { servers: one, settings: DEFAULT_CATALOG_SETTINGS },
      { servers: other, settings: DEFAULT_CATALOG_SETTINGS },
    );

  test("the same lists -> nothing is removed, and no tool is read", () => {
    const same = between([listing("a", "1"), listing("b", "2")], [listing("a", "1"), listing("b", "2")]);
    expect(same && isNothing(same)).toBe(true);
    expect(between([listing("a", "1"), listing("b", "2")], [listing("b", "2")])?.servers).toEqual(["a"]);
  });

  test("another list -> its tools tell", () => {
    const removed = between([listing("a", "1", [read, write])], [listing("a", "2", [write])]);
    expect(removed?.tools).toEqual([{ server: "a", tool: "read" }]);
    expect(between([listing("a", "1", [read])], [listing("a", "2", [write])])).toBeUndefined();
  });

  test("without the tools of some -> another list for those, the others unread", () => {
    const task = { servers: [listing("a", "1"), listing("b", "2")], settings: DEFAULT_CATALOG_SETTINGS };
    const [one, other] = withoutToolsOf(task, new Set(["b"])).servers;
    expect(one).toBe(task.servers[0]);
    expect(other).toMatchObject({ name: "b", listed: "", tools: [] });
  });
});

const sized = (name: string, tools = 1): CatalogServer =>
  server(
    name,
    Array.from({ length: tools }, (_, i) => ({ name: `${name}${i}`, direct: false })),
  );
const RESULT: PublishResult = { checksum: 1, problems: [], notices: [], repairs: [], threadId: 1 };
const TIMES = { wholeMs: 1, aloneMs: 2, slowMs: 3, finishMs: 4 };

/** `fails`: whether a task fails, by the names of the servers that have tools in it. */
async function publishing(
  servers: CatalogServer[],
  fails: (names: string[], limits: PublishLimits) => boolean,
  signal = new AbortController().signal,
) {
  const tried: string[] = [];
  const publish = async (task: PublishTask, limits: PublishLimits): Promise<PublishResult | undefined> => {
    const names = task.servers.filter(({ tools }) => tools.length > 0).map(({ name }) => name);
    tried.push(`${names.join("+")} ${limits.limitMs}${task.stored ? " stored" : ""}`);
    return fails(names, limits) ? undefined : RESULT;
  };
  const stored = { path: "/x", checksum: 5 };
  const task = { servers, settings: DEFAULT_CATALOG_SETTINGS, stored };
  const { result, leftOut } = await publishApart(task, { publish }, TIMES, signal);
  return { result, leftOut, tried };
}

const ALL = ["a", "b", "c"].map((name) => sized(name));

describe("publishApart", () => {
  test("nothing fails -> tried once", async () => {
    expect(await publishing(ALL, () => false)).toEqual({
      result: RESULT,
      leftOut: [],
      tried: ["a+b+c 1 stored"],
    });
  });

  test("one server fails -> left out, the others are published", async () => {
    expect(await publishing(ALL, (names) => names.includes("b"))).toEqual({
      result: RESULT,
      leftOut: ["b"],
      tried: ["a+b+c 1 stored", " 2", "a 2", "b 2", "c 2", "a+c 3 stored"],
    });
  });

  test("each fails -> all left out", async () => {
    const { result, leftOut } = await publishing(ALL, (names) => names.length > 0);
    expect([result, leftOut]).toEqual([RESULT, ["a", "b", "c"]]);
  });

  test("a catalog without servers fails, too -> no server is to blame", async () => {
    expect(await publishing(ALL, () => true)).toEqual({
      result: undefined,
      leftOut: [],
      tried: ["a+b+c 1 stored", " 2"],
    });
  });

  test("only too slow together -> given more time", async () => {
    const { result, leftOut } = await publishing(
      ALL,
      (names, { limitMs }) => names.length > 1 && limitMs === 1,
    );
    expect([result, leftOut]).toEqual([RESULT, []]);
  });

  test("too much together -> the largest are left out until the rest can be published", async () => {
    const servers = [sized("small"), sized("big", 90), sized("medium", 60), sized("tiny")];
    const sizes = new Map(servers.map(({ name, tools }) => [name, tools.length]));
    const { result, leftOut } = await publishing(
      servers,
      (names) => names.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0) > 100,
    );
    expect([result, leftOut]).toEqual([RESULT, ["big"]]);
  });

  test("nobody waits any longer -> no further attempt", async () => {
    const controller = new AbortController();
    const { result, tried } = await publishing(
      ALL,
      (names) => {
        if (names.includes("a")) controller.abort();
        return true;
      },
      controller.signal,
    );
    expect([result, tried]).toEqual([undefined, ["a+b+c 1 stored"]]);
  });
});

/** Publications that the test ends, in order. */
function open() {
  const running: PromiseWithResolvers<void>[] = [];
  let most = 0;
  let now = 0;
  const loop = new PublishLoop(async () => {
    const one = Promise.withResolvers<void>();
    running.push(one);
    most = Math.max(most, ++now);
    await one.promise.finally(() => now--);
  });
  const end = async (index: number): Promise<void> => {
    running[index]?.resolve();
    await settle();
  };
  return { loop, count: () => running.length, mostAtATime: () => most, end };
}

/** Whether the promise has settled. */
function watch(promise: Promise<void>): { settled: boolean } {
  const state = { settled: false };
  void promise.then(() => {
    state.settled = true;
  });
  return state;
}

describe("PublishLoop", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a burst of changes -> one publication, after the delay from the first", async () => {
    const { loop, count } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(60);
    loop.request();
    await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs - 61);
    expect(count()).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect([count(), loop.isRunning]).toEqual([1, true]);
  });

  test("changes while one runs -> one more when it has ended, never two at a time", async () => {
    const { loop, count, end, mostAtATime } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs);
    for (let i = 0; i < 3; i++) {
      loop.request();
      await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs);
    }
    expect(count()).toBe(1);
    await end(0);
    expect(count()).toBe(2);
    await end(1);
    expect([count(), loop.isRunning, mostAtATime()]).toEqual([2, false, 1]);
  });

  test("flush -> at once, without the delay; nothing requested -> settles at once", async () => {
    const { loop, count, end } = open();
    await loop.flush();
    loop.request();
    const flushed = watch(loop.flush());
    expect(count()).toBe(1);
    await end(0);
    expect(flushed.settled).toBe(true);
  });

  test("flush while one runs that began before the change -> waits for the next one", async () => {
    const { loop, end } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs);
    loop.request();
    const flushed = watch(loop.flush());
    await end(0);
    expect(flushed.settled).toBe(false);
    await end(1);
    expect(flushed.settled).toBe(true);
  });

  test("changes after the flush was asked for -> not waited for", async () => {
    const { loop, end, count } = open();
    loop.request();
    const flushed = watch(loop.flush());
    loop.request();
    await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs);
    await end(0);
    expect([flushed.settled, count()]).toEqual([true, 2]);
  });

  test.each([
    [true, 1],
    [false, 0],
  ])("finish, what waits is worth it: %s -> %i publications", async (isWorthIt, publications) => {
    const { loop, count, end } = open();
    loop.request();
    const finished = watch(loop.finish(isWorthIt));
    await end(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([finished.settled, count()]).toEqual([true, publications]);
  });

  test("finish while one runs -> settles when it has ended", async () => {
    const { loop, end } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(LIMITS.catalogDebounceMs);
    const finished = watch(loop.finish(true));
    await settle();
    expect(finished.settled).toBe(false);
    await end(0);
    expect(finished.settled).toBe(true);
  });
});
