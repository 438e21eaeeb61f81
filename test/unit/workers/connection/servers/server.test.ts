/** Owns: what one server does with connections that open, fail, end and are replaced; the connections are fakes. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ErrorCode, type ErrorData, ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { Connection, ListedResources } from "../../../../../workers/connection/mcp/connection.ts";
import type { CallToolResult } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { callTool as callOf } from "../../../../../workers/connection/servers/call.ts";
import { Server } from "../../../../../workers/connection/servers/server.ts";
import { takenBackError } from "../../../../../workers/connection/servers/status.ts";
import { createGate } from "../../../../../workers/shared/pace/pace.ts";
import { definitionOf, settle, setup } from "./support.ts";

const CLOSE = { termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs };
const SHUTDOWN = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };

/** A promise that the test settles, and the same as a method of a connection. */
const pending = <T>() => Promise.withResolvers<T>();

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("connecting", () => {
  test("twenty calls and others at once -> one attempt, each gets its answer; later calls use the connection", async () => {
    const { server, openings, opening, call, states, lists } = setup();
    const calls = Array.from({ length: 20 }, () => call());
    const others = [server.connect("background"), server.connect("user")];
    await settle();
    expect(openings).toHaveLength(1);
    const connection = opening(0).open();
    expect(await Promise.all(others)).toEqual([connection, connection]);
    const texts = (await Promise.all(calls)).map(({ content }) => content);
    expect(texts).toEqual(Array.from({ length: 20 }, () => [{ type: "text", text: "work" }]));
    await call();
    expect(openings).toHaveLength(1);
    expect([states, lists()]).toEqual([["connecting", "connected"], 1]);
  });

  test("the machine has slept, while which a thread's clock stands still -> a server that connects then is up since then", async () => {
    vi.setSystemTime(Date.now() + 8 * 3_600_000);
    const { server, connected } = setup();
    await connected();
    vi.advanceTimersByTime(60_000);
    expect(Date.now() - (server.connectedAt ?? 0)).toBeCloseTo(60_000, -2);
  });

  test("the options of the connection -> those of the server and the session", async () => {
    const { opening, connected, server, events, lines } = setup(
      {},
      { settings: { maxMessageBytes: 5 }, context: { talkers: { of: (name) => () => void name } } },
    );
    await connected();
    const { options } = opening(0);
    expect(options).toMatchObject({
      definition: server.definition,
      cwd: "/cwd",
      npxCacheFile: "/npx",
      maxMessageBytes: 5,
    });
    expect(options.reader?.onBytes).toBeInstanceOf(Function);
    options.onSpawn(3);
    options.onExit(3);
    expect(events).toEqual([
      { type: "spawned", pid: 3, server: "s" },
      { type: "exited", pid: 3, server: "s" },
    ]);
    options.onNote("printed a line");
    options.onLogMessage({ level: "error", data: "full" });
    expect(lines).toEqual([
      expect.stringMatching(/^info s connected over stdio, pid 7 in \d+ ms, 1 tool, MCP 2025-11-25$/),
      "info s printed a line",
      "error s error: full",
    ]);
  });

  test("an attempt that fails -> its error without secrets, in the state and in the log; calls are refused for ten times as long", async () => {
    const { failing, opening, openings, call, server, lines } = setup();
    const { error } = await failing();
    const { options, fail } = opening(0);
    options.onSecrets({ values: ["s3cr3t-value"], named: [] });
    vi.advanceTimersByTime(3_000);
    fail(new ThreadsError("connect_failed", "s did not take s3cr3t-value.", { data: { server: "s" } }));
    expect(await error).toMatchObject({ code: "connect_failed", message: "s did not take [redacted]." });
    expect(server.status()).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(lines).toEqual(["error s did not take [redacted]."]);
    await expect(call()).rejects.toMatchObject({
      code: "connect_failed",
      remedy: "It is tried again in 30 s; /mcp reconnect s tries now.",
      data: { retryInMs: 30_000 },
    });
    server.connect("user").catch(() => undefined);
    await settle();
    expect(openings).toHaveLength(2);
    opening(1).fail(new ThreadsError("connect_failed", "s did not start."));
    await settle();
    await expect(call()).rejects.toMatchObject({ data: { retryInMs: 1_000 } });
    vi.advanceTimersByTime(1_000);
    call().catch(() => undefined);
    await settle();
    expect(openings).toHaveLength(3);
  });

  test.each<[unknown, object]>([
    [
      new ThreadsError("spawn_failed", "s: s3cr3t-value.", { remedy: "Mend it.", data: { server: "s" } }),
      { code: "spawn_failed", message: "s: [redacted].", remedy: "Mend it." },
    ],
    [new TypeError("x is undefined"), { code: "internal", message: "s: x is undefined" }],
    [new Error("s3cr3t-value"), { code: "internal", message: "s: [redacted]" }],
    [new Error("s broke"), { code: "internal", message: "s broke" }],
    ["thrown", { code: "internal", message: "s: thrown" }],
    [
      Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" }),
      { code: "internal", remedy: expect.stringContaining("raise the limit (ulimit)") },
    ],
  ])("an attempt that fails with %s -> %o", async (thrown, shown) => {
    const { failing, opening } = setup();
    const { error } = await failing();
    opening(0).options.onSecrets({ values: ["s3cr3t-value"], named: [] });
    opening(0).fail(thrown);
    expect(await error).toMatchObject(shown);
  });

  test("while its lists are asked for -> the connection is held, and the server is not connected", async () => {
    const { server, opening } = setup();
    const list = pending<[]>();
    const wanted = server.connect("user");
    await settle();
    const connection = opening(0).open({ listTools: () => list.promise });
    await settle();
    expect(server.status()).toMatchObject({ state: "connecting", pid: 7 });
    expect(server.ifConnected(async () => "done")).toBeUndefined();
    list.resolve([]);
    expect(await wanted).toBe(connection);
    expect(await server.ifConnected(async () => "done")).toBe("done");
  });

  test("its tools cannot be listed -> the connection is closed at once, the server failed", async () => {
    const { failing, opening, server } = setup();
    const { error } = await failing();
    const connection = opening(0).open({
      listTools: () => Promise.reject(new ThreadsError("connect_timeout", "s is slow.")),
    });
    expect(await error).toMatchObject({ code: "connect_timeout" });
    expect(connection.closes).toEqual([{ ...SHUTDOWN, leave: "retire" }]);
    expect(server.phase).toBe("failed");
    expect(server.status()).not.toHaveProperty("pid");
  });

  test("a connection that ends while its tools are being listed -> the list's error alone is reported", async () => {
    const { failing, opening, lines, states } = setup();
    const list = pending<never>();
    const { error } = await failing();
    const connection = opening(0).open({ listTools: () => list.promise });
    await settle();
    connection.end();
    list.reject(new ThreadsError("connect_failed", "s did not list its tools."));
    expect(await error).toMatchObject({ code: "connect_failed" });
    expect(states).toEqual(["connecting", "failed"]);
    expect(lines).toEqual(["error s did not list its tools."]);
  });

  test("more background connects than the gate lets in -> they wait; one that a call wants does not", async () => {
    const gate = createGate(1);
    const first = setup({}, { context: { gate } });
    const second = setup({}, { context: { gate } });
    const third = setup({}, { context: { gate } });
    for (const { server } of [first, second, third]) void server.connect("background");
    await settle();
    expect([first, second, third].map(({ openings }) => openings.length)).toEqual([1, 0, 0]);
    const called = third.call();
    await settle();
    expect([first, second, third].map(({ openings }) => openings.length)).toEqual([1, 0, 1]);
    third.opening(0).open();
    await called;
    first.opening(0).open();
    await settle();
    expect(second.openings).toHaveLength(1);
  });

  test("its permission is taken back while it waits for the connects of others -> nothing is opened", async () => {
    const gate = createGate(1);
    let isTakenBack = false;
    const first = setup({}, { context: { gate } });
    const second = setup(
      {},
      { context: { gate, takenBack: () => (isTakenBack ? takenBackError("s") : undefined) } },
    );
    void first.server.connect("background");
    const waiting = second.server.connect("background").catch((error: unknown) => error);
    await settle();
    isTakenBack = true;
    first.opening(0).open();
    expect(await waiting).toMatchObject({ code: takenBackError("s").code });
    expect(second.openings).toHaveLength(0);
  });

  test("held back -> not connected in the background, the reason in its status; a call connects it", async () => {
    const { server, openings, call, opening } = setup();
    server.holdBack("It was at work when the worker died");
    await expect(server.connect("background")).rejects.toMatchObject({ code: "server_died" });
    expect(openings).toHaveLength(0);
    expect(server.status().error?.message).toBe(
      "s: It was at work when the worker died. The server is no longer connected by itself.",
    );
    const called = call();
    await settle();
    opening(0).open();
    await called;
    expect(server.phase).toBe("connected");
  });

  test("disabled -> every wish is refused, and nothing is opened", async () => {
    const { server, call, openings } = setup({ enabled: false });
    expect(server.phase).toBe("disabled");
    await expect(call()).rejects.toMatchObject({ code: "server_disabled" });
    await expect(server.reconnect()).rejects.toMatchObject({ code: "server_disabled" });
    expect(openings).toEqual([]);
  });
});

describe("a connection that ends", () => {
  test("by itself -> idle with the reason without secrets; the next call connects again", async () => {
    const { server, connected, opening, openings, call, lines } = setup();
    const connection = await connected({ whyClosed: () => "s wrote s3cr3t-value and exited." });
    opening(0).options.onSecrets({ values: ["s3cr3t-value"], named: [] });
    connection.end();
    expect(server.status()).toMatchObject({
      state: "idle",
      toolsKnown: true,
      error: { code: "server_died", message: "s wrote [redacted] and exited.", data: { server: "s" } },
    });
    expect(server.status()).not.toHaveProperty("pid");
    expect(lines.at(-1)).toBe("warn s wrote [redacted] and exited. The next call connects again.");
    const called = call();
    await settle();
    opening(1).open();
    await called;
    expect(openings).toHaveLength(2);
    expect(server.status().error).toBeUndefined();
  });

  test("its credentials are refused in mid-session -> needs a sign-in at once, open calls are finished first", async () => {
    const { server, connected, opening, call, lines } = setup();
    const answer = pending<CallToolResult>();
    const connection = await connected({ callTool: () => answer.promise });
    const open = call();
    await settle();
    const error = new ThreadsError("needs_auth", "s: it needs a sign-in.");
    opening(0).options.onAuthLost?.(error);
    opening(0).options.onAuthLost?.(error);
    expect(server.status()).toMatchObject({ state: "needs-auth", error: { code: "needs_auth" } });
    expect(lines.filter((line) => line === "warn s: it needs a sign-in.")).toHaveLength(1);
    const later = pending<CallToolResult>();
    const next = call();
    await settle();
    opening(1).open({ callTool: () => later.promise });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.phase).toBe("connected");
    expect(connection.closes).toEqual([]);
    answer.resolve({ content: [] });
    expect((await open).content).toEqual([]);
    await settle();
    // Whatever runs over the connection in its place.
    expect(connection.closes).toEqual([CLOSE]);
    later.resolve({ content: [] });
    await next;
  });

  test.each([
    ["the user reconnects", false],
    ["the user has signed in for more rights", true],
  ])("%s -> another connection at once; calls that are open go on: %s", async (_why, isGentle) => {
    const { server, connected, opening, call } = setup();
    const answer = pending<CallToolResult>();
    const connection = await connected({ callTool: () => answer.promise });
    const open = call();
    await settle();
    const again = server.reconnect(isGentle);
    await settle();
    opening(1).open();
    await again;
    expect(server.phase).toBe("connected");
    expect(connection.closes).toHaveLength(isGentle ? 0 : 1);
    answer.resolve({ content: [] });
    await open;
    await settle();
    expect(connection.closes).toHaveLength(1);
  });

  test("its credentials are refused, and the server is closed -> its connection ends with it", async () => {
    const { server, connected, opening, call } = setup();
    const connection = await connected({ callTool: () => pending<CallToolResult>().promise });
    call().catch(() => undefined);
    await settle();
    opening(0).options.onAuthLost?.(new ThreadsError("needs_auth", "s: it needs a sign-in."));
    await server.close();
    expect(connection.closes).toEqual([CLOSE]);
  });

  test("after it was replaced -> nothing is reported", async () => {
    const { server, connected, opening, states, lines } = setup();
    const old = await connected();
    const reconnected = server.reconnect();
    await settle();
    expect(old.closes).toEqual([{ ...CLOSE, leave: "end" }]);
    opening(1).open();
    await reconnected;
    const before = [states.length, lines.length];
    old.end();
    expect([states.length, lines.length]).toEqual(before);
    expect(server.phase).toBe("connected");
  });

  test("again and again, soon after each connect, keep-alive -> connects by itself, ever later", async () => {
    const { server, connected, openings, opening, lines } = setup({ lifecycle: "keep-alive" });
    (await connected()).end();
    expect(server.phase).toBe("idle");
    expect(lines.at(-1)).toMatch(/^warn s exited with code 1\./);
    await vi.advanceTimersByTimeAsync(LIMITS.reconnectMs);
    const second = opening(1).open();
    await settle();
    second.end();
    expect(server.status().error?.message).toBe(
      "s exited with code 1. That was 2 times in a row, each within 60 s of the connect.",
    );
    await vi.advanceTimersByTimeAsync(2 * LIMITS.reconnectMs - 1);
    expect(openings).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(openings).toHaveLength(3);
  });

  test("keep-alive, a call connects it as remembered, and its request fails -> connects by itself", async () => {
    const { server, connected, openings, opening, failing } = setup({ lifecycle: "keep-alive" });
    (await connected()).end();
    const { error } = await failing();
    const gone = new ThreadsError("server_died", "s answered 503.");
    const remembered = opening(1).open({ isFromMemory: () => true, callTool: () => Promise.reject(gone) });
    expect(await error).toBe(gone);
    await settle();
    expect([server.phase, remembered.closes]).toEqual(["idle", [CLOSE]]);
    await vi.advanceTimersByTimeAsync(LIMITS.reconnectMs);
    expect(openings).toHaveLength(3);
    opening(2).open();
    await settle();
    await vi.advanceTimersByTimeAsync(LIMITS.reconnectLongestMs);
    expect([server.phase, openings.length]).toEqual(["connected", 3]);
  });

  test("limits of the session -> the pause before the next connect and the times of a close are theirs", async () => {
    const limits = { ...LIMITS, reconnectMs: 5, closeTermMs: 1, closeKillMs: 2 };
    const { server, connected, openings, opening } = setup(
      { lifecycle: "keep-alive" },
      { context: { limits } },
    );
    const first = await connected();
    first.end();
    expect(first.closes).toEqual([{ termMs: 1, killMs: 2, leave: "retire" }]);
    await vi.advanceTimersByTimeAsync(5);
    expect(openings).toHaveLength(2);
    const second = opening(1).open();
    await settle();
    second.end();
    expect(server.status().error?.data).toMatchObject({ failures: 2, retryInMs: 10 });
  });

  test.each(["lazy", "eager"])("%s -> does not connect by itself", async (lifecycle) => {
    const { connected, openings } = setup({ lifecycle });
    (await connected()).end();
    await vi.advanceTimersByTimeAsync(LIMITS.reconnectLongestMs * 2);
    expect(openings).toHaveLength(1);
  });
});

describe("beside an open connection", () => {
  test.each([
    ["lazy", undefined, 10],
    ["lazy", 2, 2],
    ["eager", 2, 2],
  ])(
    "%s, %s minutes of its own: nothing uses it for %i minutes -> closed, without an error",
    async (lifecycle, idleTimeout, minutes) => {
      const { server, connected, lines } = setup({ lifecycle, idleTimeout });
      const connection = await connected();
      await vi.advanceTimersByTimeAsync(minutes * 60_000 - 1);
      expect(server.phase).toBe("connected");
      await vi.advanceTimersByTimeAsync(1);
      expect(server.phase).toBe("idle");
      expect(connection.closes).toEqual([{ ...CLOSE, leave: "keep" }]);
      expect(server.status().error).toBeUndefined();
      expect(lines.at(-1)).toBe("info s is closed: nothing used it");
    },
  );

  test.each([
    ["lazy", 0],
    ["eager", undefined],
    ["keep-alive", undefined],
  ])("%s, %s minutes of its own -> never closed for being idle", async (lifecycle, idleTimeout) => {
    const { server, connected } = setup({ lifecycle, idleTimeout });
    await connected();
    await vi.advanceTimersByTimeAsync(100 * 60_000);
    expect(server.phase).toBe("connected");
  });

  test("a call longer than the idle time -> the time counts from the call's end", async () => {
    const { server, connected, call } = setup({ idleTimeout: 1 });
    const answer = pending<{ content: [] }>();
    await connected({ callTool: () => answer.promise });
    const called = call();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(server.phase).toBe("connected");
    answer.resolve({ content: [] });
    await called;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.phase).toBe("idle");
  });

  test("a definition with another idle time -> it holds at once", async () => {
    const { server, connected } = setup({ idleTimeout: 10 });
    await connected();
    server.update(definitionOf("s", { idleTimeout: 1 }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.phase).toBe("idle");
  });

  test("its process ends between its last list and the phase connected -> dropped with the reason", async () => {
    const { server, opening, lines } = setup();
    const connected = server.connect("user");
    await settle();
    const listTools = async () => {
      opening(0).options.onClosed();
      return [{ name: "work" }];
    };
    opening(0).open({ listTools });
    await connected;
    expect(server.phase).toBe("idle");
    expect(lines.at(-1)).toContain("s exited with code 1. The next call connects again.");
  });

  test("keep-alive, a ping without an answer -> dropped with the reason; connects by itself", async () => {
    const { server, connected, openings } = setup({ lifecycle: "keep-alive" });
    const connection = await connected({ ping: () => Promise.reject(new Error("s: no pong.")) });
    await vi.advanceTimersByTimeAsync(LIMITS.healthCheckMs);
    expect(server.status().error?.message).toBe("s did not answer its health check: no pong.");
    expect(connection.closes).toEqual([{ ...CLOSE, leave: "retire" }]);
    await vi.advanceTimersByTimeAsync(LIMITS.reconnectMs);
    expect(openings).toHaveLength(2);
  });

  test("keep-alive -> asked every 30 s with 10 s to answer, until it is closed", async () => {
    const ping = vi.fn(async (_timeoutMs: number) => undefined);
    const { server, connected } = setup({ lifecycle: "keep-alive" });
    await connected({ ping });
    await vi.advanceTimersByTimeAsync(90_000);
    await server.close();
    await vi.advanceTimersByTimeAsync(90_000);
    expect(ping.mock.calls).toEqual([[10_000], [10_000], [10_000]]);
  });

  test("keep-alive, a call is open -> not asked, and no answer to an earlier ping says nothing; asked again afterwards", async () => {
    const pong = pending<void>();
    const ping = vi.fn(() => pong.promise);
    const answer = pending<{ content: [] }>();
    const { server, connected, call } = setup({ lifecycle: "keep-alive" });
    await connected({ ping, callTool: () => answer.promise });
    await vi.advanceTimersByTimeAsync(LIMITS.healthCheckMs);
    const called = call();
    await settle();
    pong.reject(new Error("no pong"));
    await vi.advanceTimersByTimeAsync(3 * LIMITS.healthCheckMs);
    expect([server.phase, ping.mock.calls.length]).toEqual(["connected", 1]);
    answer.resolve({ content: [] });
    await called;
    await vi.advanceTimersByTimeAsync(LIMITS.healthCheckMs);
    expect([server.phase, ping.mock.calls.length]).toEqual(["idle", 2]);
  });

  test("keep-alive, a ping of a connection that was replaced meanwhile -> says nothing of the new one", async () => {
    const { reconnected, server, connected } = setup({ lifecycle: "keep-alive" });
    const pong = pending<void>();
    await connected({ ping: () => pong.promise });
    await vi.advanceTimersByTimeAsync(LIMITS.healthCheckMs);
    await reconnected();
    pong.reject(new Error("no pong"));
    await settle();
    expect(server.phase).toBe("connected");
  });

  describe("a call that ran into its time limit", () => {
    const late = () =>
      Promise.reject(new ThreadsError("call_timeout", "late", { data: { timeoutMs: 5_000 } }));
    /** A server whose call has failed. `bytes`: how many it has sent so far. */
    async function afterLate({ during = 0, hears = true, entry = {} } = {}) {
      const pong = pending<void>();
      const ping = vi.fn((_timeoutMs: number) => pong.promise);
      const bytes = { sent: 100 };
      const at = setup({ idleTimeout: 0, ...entry });
      const callTool: Connection["callTool"] = async () => {
        bytes.sent += during;
        return await late();
      };
      const connection = await at.connected({
        ping,
        callTool,
        ...(hears ? { heard: () => bytes.sent } : {}),
      });
      const { error } = await at.failing();
      expect(await error).toMatchObject({ code: "call_timeout" });
      return { ...at, ping, pong, bytes, connection };
    }

    test("no byte came, nor for a ping -> dropped with the reason; a call that waits gets a new process", async () => {
      const { server, ping, pong, connection, call, opening, openings, lines } = await afterLate();
      expect(ping.mock.calls).toEqual([[LIMITS.healthAnswerMs]]);
      const next = call();
      await settle();
      expect([server.phase, openings.length]).toEqual(["connected", 1]);
      pong.reject(new Error("no pong"));
      await settle();
      const hung = "s is hung: it answered neither a call within 5 s nor a ping within 10 s.";
      expect(connection.closes).toEqual([{ ...CLOSE, leave: "retire" }]);
      expect(lines).toContain(`warn ${hung} The next call connects again.`);
      await vi.advanceTimersByTimeAsync(0);
      opening(1).open();
      expect(await next).toMatchObject({ content: [{ text: "work" }] });
    });

    test("it is hung, and nobody calls -> the status says so", async () => {
      const { server, pong } = await afterLate();
      pong.reject(new Error("no pong"));
      await settle();
      expect(server.status()).toMatchObject({
        state: "idle",
        error: { code: "server_died", message: expect.stringMatching(/^s is hung: /) },
      });
    });

    test("the ping is answered -> the server stays, and a call that waits is sent", async () => {
      const { server, ping, pong, bytes, openings, failing } = await afterLate();
      const next = await failing();
      bytes.sent += 40;
      pong.resolve();
      expect(await next.error).toMatchObject({ code: "call_timeout" });
      expect([server.phase, openings.length, ping.mock.calls.length]).toEqual(["connected", 1, 2]);
    });

    test("no pong, but a message of another call meanwhile -> the server stays", async () => {
      const { server, pong, bytes } = await afterLate();
      bytes.sent += 1;
      pong.reject(new Error("no pong"));
      await settle();
      expect(server.phase).toBe("connected");
    });

    test.each([
      ["a message came while the call was open", { during: 1 }],
      ["each request has a connection of its own, as over HTTP", { hears: false }],
    ])("%s -> not asked", async (_when, options) => {
      const { server, ping } = await afterLate(options);
      expect([server.phase, ping.mock.calls.length]).toEqual(["connected", 0]);
    });

    test("the user reconnects meanwhile -> the ping says nothing of the new connection", async () => {
      const { server, pong, reconnected } = await afterLate();
      await reconnected();
      pong.reject(new Error("closed"));
      await settle();
      expect(server.phase).toBe("connected");
    });
  });

  test("a connection that ended -> its idle time no longer runs", async () => {
    const { connected, lines } = setup({ idleTimeout: 1 });
    (await connected()).end();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lines).not.toContain("info s is closed: nothing used it");
  });

  test("lazy -> never pinged", async () => {
    const ping = vi.fn(async () => undefined);
    const { connected } = setup({ idleTimeout: 0 });
    await connected({ ping });
    await vi.advanceTimersByTimeAsync(10 * LIMITS.healthCheckMs);
    expect(ping).not.toHaveBeenCalled();
  });

  test("the server says that its lists changed, often -> listed once more; the new tools are reported", async () => {
    const { server, connected, opening, lists } = setup();
    const listed = [[{ name: "work" }], [{ name: "work" }, { name: "new" }]];
    const listTools = vi.fn(async () => listed.shift() ?? []);
    await connected({ listTools });
    for (let i = 0; i < 5; i++) opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    expect(listTools).toHaveBeenCalledTimes(2);
    expect(server.tools?.map(({ name }) => name)).toEqual(["work", "new"]);
    expect(lists()).toBe(2);
  });

  test("a change while the server is being connected -> listed once more when it is connected", async () => {
    const { server, opening } = setup();
    const prompts = pending<[]>();
    const listed = [[{ name: "work" }], [{ name: "work" }, { name: "new" }]];
    const listTools = vi.fn(async () => listed.shift() ?? []);
    const wanted = server.connect("user");
    await settle();
    opening(0).open({ listTools, listPrompts: () => prompts.promise });
    await settle();
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(LIMITS.refreshDelayMs);
    expect(server.phase).toBe("connecting");
    prompts.resolve([]);
    await wanted;
    expect(server.tools).toEqual([{ name: "work" }]);
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    expect(server.tools?.map(({ name }) => name)).toEqual(["work", "new"]);
    await vi.advanceTimersByTimeAsync(10 * LIMITS.refreshLongestMs);
    expect(listTools).toHaveBeenCalledTimes(2);
  });

  test("lists that fail for a while -> asked for after longer and longer pauses until they come", async () => {
    const { server, connected, opening } = setup({ idleTimeout: 0 });
    let isDown = false;
    const listTools = vi.fn<Connection["listTools"]>(async () => {
      if (isDown) throw new Error("s did not list its tools.");
      return [{ name: "work" }, { name: "new" }];
    });
    await connected({ listTools });
    isDown = true;
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(10 * LIMITS.refreshLongestMs);
    // After 0, 1, 3, 7, 15, 31 and 63 s, and then each minute.
    expect(listTools.mock.calls.length - 1).toBe(15);
    isDown = false;
    await vi.advanceTimersByTimeAsync(LIMITS.refreshLongestMs);
    const calls = listTools.mock.calls.length;
    expect(server.tools?.map(({ name }) => name)).toEqual(["work", "new"]);
    await vi.advanceTimersByTimeAsync(10 * LIMITS.refreshLongestMs);
    expect(listTools).toHaveBeenCalledTimes(calls);
  });

  test("lists that fail as the connection ends -> not asked for again, and not told beside that end", async () => {
    const { connected, opening, lines } = setup();
    const second = pending<never>();
    const listTools = vi.fn<Connection["listTools"]>(async () => [{ name: "work" }]);
    const connection = await connected({ listTools });
    listTools.mockReturnValueOnce(second.promise);
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    connection.end();
    second.reject(new Error("closed"));
    await vi.advanceTimersByTimeAsync(10 * LIMITS.refreshLongestMs);
    expect(listTools).toHaveBeenCalledTimes(2);
    expect(lines.join("\n")).not.toContain("could not be listed");
  });

  test("lists that fail the second time -> a line of the log; the tools stay", async () => {
    const { server, connected, opening, lines } = setup();
    const listTools = vi.fn<Connection["listTools"]>(async () => [{ name: "work" }]);
    await connected({ listTools });
    listTools.mockRejectedValueOnce(new Error("s did not list its tools."));
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    expect(lines.at(-1)).toBe("warn s: its tools could not be listed again: it did not list its tools.");
    expect(server.tools).toEqual([{ name: "work" }]);
  });

  test("a known server that refuses each list for 60 s -> asked once a minute; what was not listed is not told as listed", async () => {
    const { server, connected, opening, lists } = setup({ idleTimeout: 0 });
    server.restore({ tools: [{ name: "known" }] });
    const busy = (retryAfterMs: number): ThreadsError =>
      new ThreadsError("connect_failed", "s: tools/list was refused.", {
        data: { reason: "busy", retryAfterMs },
      });
    const listTools = vi.fn<Connection["listTools"]>(async () => [{ name: "work" }]);
    listTools.mockRejectedValueOnce(busy(60_000)).mockRejectedValueOnce(busy(3_600_000));
    await connected({ listTools });
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(59_900);
    expect([listTools.mock.calls.length, lists()]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([listTools.mock.calls.length, lists()]).toEqual([2, 0]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([listTools.mock.calls.length, lists()]).toEqual([3, 1]);
    expect(server.tools).toEqual([{ name: "work" }]);
  });

  test("resources of a known server come late, its tools not at all -> not told as listed", async () => {
    const busy = new ThreadsError("connect_failed", "s: refused.", { data: { reason: "busy" } });
    const { server, connected, lists } = setup();
    server.restore({ tools: [{ name: "known" }] });
    const resources = pending<ListedResources>();
    const connecting = connected({
      listTools: () => Promise.reject(busy),
      listResources: () => resources.promise,
    });
    await vi.advanceTimersByTimeAsync(LIMITS.resourcesWaitMs);
    await connecting;
    resources.resolve({ resources: [], templates: [] });
    await settle();
    expect([server.phase, server.resources, lists()]).toEqual([
      "connected",
      { resources: [], templates: [] },
      0,
    ]);
  });

  test.each<[Connection["transport"], string, string]>([
    ["http", "connected", "connected"],
    ["sse", "connected", "connected"],
    ["stdio", "failed", "connect_timeout"],
  ])(
    "a known server over %s that does not list its tools in time -> %s",
    async (transport, phase, outcome) => {
      const slow = new ThreadsError("connect_timeout", "s did not list its tools within 30 s.");
      const { server, opening } = setup();
      server.restore({ tools: [{ name: "known" }] });
      const connecting = server.connect("call").then(
        () => "connected",
        ({ code }) => code,
      );
      await settle();
      opening(0).open({ transport, listTools: () => Promise.reject(slow) });
      expect([await connecting, server.phase]).toEqual([outcome, phase]);
      expect(server.tools).toEqual([{ name: "known" }]);
    },
  );

  test("a known server that is too busy to list its tools as it connects -> the known ones can be called, and are listed later", async () => {
    const busy = new ThreadsError("connect_failed", "s: tools/list failed: status 503.", {
      data: { server: "s", status: 503, reason: "busy" },
    });
    const { server, connected, call, lines } = setup();
    server.restore({ tools: [{ name: "known" }] });
    const listTools = vi.fn<Connection["listTools"]>(async () => [{ name: "work" }]);
    listTools.mockRejectedValueOnce(busy);
    await connected({ listTools });
    expect([server.phase, server.tools]).toEqual(["connected", [{ name: "known" }]]);
    expect((await call("known")).content).toEqual([{ type: "text", text: "known" }]);
    expect(lines).toContainEqual(expect.stringContaining("cannot list its tools now"));
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    expect(server.tools).toEqual([{ name: "work" }]);
    const { failing, opening } = setup();
    const { error } = await failing();
    opening(0).open({ listTools: () => Promise.reject(busy) });
    expect(await error).toMatchObject({ code: "connect_failed", data: { reason: "busy" } });
  });

  test("a second list that comes when its connection is replaced -> does not count", async () => {
    const { reconnected, server, connected, opening } = setup();
    const second = pending<{ name: string }[]>();
    const listTools = vi.fn<Connection["listTools"]>(async () => [{ name: "work" }]);
    await connected({ listTools });
    listTools.mockReturnValueOnce(second.promise);
    opening(0).options.onListChanged();
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    await reconnected();
    second.resolve([{ name: "of the old connection" }]);
    await settle();
    expect(server.tools).toEqual([{ name: "work" }]);
  });
});

describe("a call", () => {
  test("cancelled while the server connects -> given up at once; the attempt goes on", async () => {
    const { server, call, opening } = setup();
    const controller = new AbortController();
    const cancelled = call("work", controller.signal).catch((error: unknown) => error);
    await settle();
    controller.abort();
    expect(await cancelled).toMatchObject({ code: "cancelled", message: "s/work was cancelled." });
    expect(server.phase).toBe("connecting");
    opening(0).open();
    await settle();
    expect(server.phase).toBe("connected");
  });

  test("its time limit -> the definition's, else the default", async () => {
    const callTool = vi.fn<Connection["callTool"]>(async () => ({ content: [] }));
    const { connected, call, server } = setup();
    await connected({ callTool });
    await call();
    server.update(definitionOf("s", { requestTimeoutMs: 5 }));
    await call();
    const limits = callTool.mock.calls.map(([{ timeoutMs }]) => timeoutMs);
    expect(limits).toEqual([LIMITS.requestTimeoutMs, 5]);
  });

  test("of a tool that the rules hide -> tool_excluded, not sent", async () => {
    const callTool = vi.fn<Connection["callTool"]>();
    const { connected, call, server } = setup({ excludeTools: ["work"] });
    await connected({ callTool });
    expect(server.excludes("work")).toBe(true);
    await expect(call()).rejects.toMatchObject({ code: "tool_excluded" });
    expect(callTool).not.toHaveBeenCalled();
  });

  test("of a tool that its server keeps for its own pages -> tool_app_only, not sent", async () => {
    const callTool = vi.fn<Connection["callTool"]>();
    const listTools = async () => [{ name: "work", _meta: { ui: { visibility: ["app"] as ["app"] } } }];
    const { connected, call } = setup({ directTools: true });
    await connected({ callTool, listTools });
    await expect(call()).rejects.toMatchObject({
      code: "tool_app_only",
      message: "s offers work only to its own pages (MCP Apps), which are not shown here.",
    });
    expect(callTool).not.toHaveBeenCalled();
  });

  test("of a template that makes the address of a page -> tool_app_only, not read", async () => {
    const readResource = vi.fn<Connection["readResource"]>(async () => ({ content: [] }));
    const templates = [{ name: "any", uriTemplate: "{+uri}" }];
    const listResources: Connection["listResources"] = async () => ({ resources: [], templates });
    const { connected, server } = setup({ exposeResources: true });
    await connected({ listResources, readResource });
    const read = (uri: string) =>
      callOf(server, {
        callId: "1",
        tool: "get_any",
        args: { uri },
        signal: new AbortController().signal,
        onProgress: () => undefined,
      });
    await expect(read("ui://page")).rejects.toMatchObject({ code: "tool_app_only" });
    await expect(read("Ui://page")).rejects.toMatchObject({ code: "tool_app_only" });
    expect(readResource).not.toHaveBeenCalled();
    await read("x://page");
    expect(readResource).toHaveBeenCalledTimes(1);
  });

  test.each<[string, object, boolean]>([
    ["no rules", {}, false],
    ["excluded by the server's name for it", { excludeTools: ["work"] }, true],
    ["excluded by the name in Pi", { excludeTools: ["s__work"] }, true],
    ["another tool included", { includeTools: ["other"] }, true],
  ])("excludes: %s -> %s", (_case, entry, excluded) => {
    expect(setup(entry).server.excludes("work")).toBe(excluded);
  });

  test("of a tool that the server does not offer -> unknown_tool with those it offers", async () => {
    const { connected, call } = setup();
    await connected();
    await expect(call("gone")).rejects.toMatchObject({
      code: "unknown_tool",
      data: { server: "s", known: ["work"] },
    });
  });

  test("of a tool that reads a resource -> the resource; not offered without exposeResources", async () => {
    const resources = [{ name: "note", uri: "x://note" }];
    const listResources: Connection["listResources"] = async () => ({ resources, templates: [] });
    const { connected, call, server } = setup({ exposeResources: true });
    await connected({ listResources });
    expect(await call("get_note")).toEqual({ content: [{ type: "text", text: "x://note" }] });
    expect(server.status()).toMatchObject({ toolCount: 1, resourceCount: 1 });
    server.update(definitionOf("s", { exposeResources: false }));
    await expect(call("get_note")).rejects.toMatchObject({ code: "unknown_tool" });
  });

  test.each<[string, ErrorCode, ErrorData, lists: number]>([
    ["as wrong parameters", "call_rejected", { rpcCode: -32602 }, 2],
    ["as an unknown method", "call_rejected", { rpcCode: -32601 }, 2],
    ["by an error of its own", "call_rejected", { rpcCode: -32000 }, 1],
    ["after it had begun", "call_rejected", { rpcCode: -32602, begun: true }, 1],
    ["with a status", "call_rejected", { status: 404 }, 1],
    ["by silence", "call_timeout", {}, 1],
  ])(
    "that the server refuses %s -> a list that is older than a minute is asked for once more: %s",
    async (_how, code, data, lists) => {
      const { connected, call, server } = setup({ lifecycle: "eager" }, { settings: { idleTimeout: 60 } });
      let listed = 0;
      await connected({
        listTools: async () => [{ name: listed++ === 0 ? "work" : "renamed" }],
        callTool: () => Promise.reject(new ThreadsError(code, "No such tool.", { data })),
      });
      await expect(call()).rejects.toMatchObject({ code });
      await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
      expect(listed).toBe(1);
      await vi.advanceTimersByTimeAsync(LIMITS.refreshLongestMs);
      await expect(call()).rejects.toMatchObject({ code });
      await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
      expect(listed).toBe(lists);
      expect(server.tools).toEqual([{ name: lists === 1 ? "work" : "renamed" }]);
    },
  );

  test("that fails -> not repeated", async () => {
    const callTool = vi.fn<Connection["callTool"]>(() =>
      Promise.reject(new ThreadsError("server_died", "no")),
    );
    const { connected, call } = setup();
    await connected({ callTool });
    await expect(call()).rejects.toMatchObject({ code: "server_died" });
    expect(callTool).toHaveBeenCalledTimes(1);
  });
});

describe("a new connection in place of one that still ends", () => {
  const sharing = () => ({ sessions: 2 }) as never;
  test.each<[string, Partial<Connection>, waits: boolean]>([
    ["of a process of its own", {}, true],
    ["of a process that sessions share", { sharing }, false],
    ["over HTTP", { transport: "http", pid: undefined }, false],
  ])("%s -> waits for its end: $2", async (_name, over, waits) => {
    const { server, connected, openings } = setup();
    const end = pending<void>();
    await connected({ ...over, close: () => end.promise });
    void server.reconnect();
    await settle();
    expect(openings).toHaveLength(waits ? 1 : 2);
    end.resolve();
    await settle();
    expect(openings).toHaveLength(2);
  });

  test("of a process that does not end -> not waited for longer than until it is killed", async () => {
    const { server, connected, openings } = setup();
    await connected({ close: () => new Promise(() => undefined) });
    void server.reconnect();
    await vi.advanceTimersByTimeAsync(LIMITS.closeKillMs - 1);
    expect(openings).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(openings).toHaveLength(2);
  });
});

describe("an edit that keeps the connection", () => {
  test("resources wanted from now on -> listed over the open connection", async () => {
    const listResources = vi.fn<Connection["listResources"]>(async () => ({
      resources: [{ name: "note", uri: "x://note" }],
      templates: [],
    }));
    const { connected, server, openings } = setup({ exposeResources: false });
    await connected({ listResources });
    expect(listResources).not.toHaveBeenCalled();
    server.update(definitionOf("s", { exposeResources: true }));
    await settle();
    expect(server.status()).toMatchObject({ resourceCount: 1 });
    expect(openings).toHaveLength(1);
  });

  test("the same while the server is being connected -> listed when it is connected", async () => {
    const prompts = pending<[]>();
    const listResources: Connection["listResources"] = async () => ({
      resources: [{ name: "note", uri: "x://note" }],
      templates: [],
    });
    const { server, opening } = setup({ exposeResources: false });
    const wanted = server.connect("user");
    await settle();
    opening(0).open({ listResources, listPrompts: () => prompts.promise });
    await settle();
    server.update(definitionOf("s", { exposeResources: true }));
    prompts.resolve([]);
    await wanted;
    await vi.advanceTimersByTimeAsync(LIMITS.refreshIntervalMs);
    expect(server.status()).toMatchObject({ resourceCount: 1 });
  });

  test("the same without a connection -> connects to learn them", async () => {
    const { server, openings } = setup({ exposeResources: false });
    server.update(definitionOf("s", { exposeResources: true }));
    await settle();
    expect(openings).toHaveLength(1);
  });
});

describe("the tools of a server", () => {
  test("from the cache -> known at once, also to its status; a connection lists them anew", async () => {
    const { server, connected } = setup();
    expect(server.status()).toMatchObject({ toolsKnown: false, toolCount: 0 });
    server.restore({ tools: [{ name: "cached" }], instructions: "Use it." });
    expect(server.status()).toMatchObject({ state: "idle", toolsKnown: true, toolCount: 1 });
    expect(server.instructions).toBe("Use it.");
    await connected({ instructions: "Other." });
    expect([server.tools, server.instructions]).toEqual([[{ name: "work" }], "Other."]);
  });

  test("of a server that replaces another -> the old one's until its own are listed, which ToolSearch waits for", async () => {
    const old = setup();
    await old.connected({ listTools: async () => [{ name: "old" }] });
    const { server, opening, shared } = setup();
    const successor = new Server(server.definition, shared);
    successor.inherit(old.server);
    expect([successor.tools, successor.learning]).toEqual([[{ name: "old" }], false]);
    const connected = successor.connect("background");
    await settle();
    expect(successor.learning).toBe(true);
    opening(0).open();
    await connected;
    expect([successor.tools, successor.learning]).toEqual([[{ name: "work" }], false]);
  });
});

describe("close", () => {
  test("while connected -> the connection is closed; settles only when it is", async () => {
    const { server, connected } = setup();
    const closing = pending<void>();
    const connection = await connected({ close: () => closing.promise });
    let isClosed = false;
    const closed = server.close().then(() => {
      isClosed = true;
    });
    await settle();
    expect([connection.closes, isClosed]).toEqual([[{ ...SHUTDOWN, leave: "now" }], false]);
    closing.resolve();
    await closed;
    expect(server.phase).toBe("closing");
  });

  test("while connecting -> the attempt is given up, its caller freed; nothing is logged as an error", async () => {
    const { failing, server, call, lines, opening } = setup();
    const { error } = await failing();
    await server.close();
    expect(opening(0).options.signal.aborted).toBe(true);
    expect(await error).toBeInstanceOf(ThreadsError);
    expect(lines).toEqual([]);
    await expect(call()).rejects.toMatchObject({ code: "server_died", message: "s is being closed." });
  });

  test("while its tools are being listed -> cancelled, the connection closed", async () => {
    const { failing, server, opening } = setup();
    const { error } = await failing();
    const connection = opening(0).open({
      listTools: (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    await settle();
    await server.close();
    expect(await error).toMatchObject({
      code: "cancelled",
      message: "s was closed while it was being connected.",
    });
    expect(connection.closes).toContainEqual({ ...SHUTDOWN, leave: "now" });
  });

  test("a connection that cannot be closed -> a line of the log; the server is closed all the same", async () => {
    const { server, connected, lines } = setup();
    await connected({ close: () => Promise.reject(new Error("busy")) });
    await server.close();
    expect(lines.at(-1)).toBe("error s: closing failed: busy");
  });

  test.each([
    ["answered", 9_000],
    ["not answered in time", 1_000],
  ])("closeWhenIdle, an open call that is %s -> closed then", async (outcome, maxMs) => {
    const { server, connected, call } = setup();
    const answer = pending<{ content: [] }>();
    const connection = await connected({ callTool: () => answer.promise });
    const called = call();
    await settle();
    const closed = server.closeWhenIdle(maxMs, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(999);
    expect(connection.closes).toEqual([]);
    if (outcome === "answered") answer.resolve({ content: [] });
    await vi.advanceTimersByTimeAsync(1);
    expect(connection.closes).toEqual([{ ...SHUTDOWN, leave: "now" }]);
    answer.resolve({ content: [] });
    await Promise.all([called, closed]);
  });
});
