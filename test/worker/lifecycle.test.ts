/**
 * Owns: when servers start, end, reconnect or stay as they are, and what the user sees; with real threads and
 * processes.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test, vi } from "vitest";
import { inputSchemaOf } from "../../src/catalog/known.ts";
import type { WorkerEvent } from "../../src/shared/protocol/events.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { ServerState, ServerStatus } from "../../src/shared/protocol/status.ts";
import { configFacts, loadConfig } from "../../workers/connection/config/merge/merge.ts";
import { plan } from "../../workers/connection/config/plan/changes.ts";
import { createSupervisor } from "../../workers/connection/servers/supervisor.ts";
import { createLog } from "../../workers/shared/log.ts";
import { waitGone } from "../support/processes.ts";
import {
  configure,
  createPlace,
  currentCatalog,
  fixture,
  forRows,
  newestCatalog,
  onCleanup,
  type Place,
  readIfThere,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

type Entry = Record<string, unknown>;

/** An idle timeout of 300 ms, in minutes. */
const SHORT_IDLE = 0.005;

const countsEntry = (place: Place, more: Entry = {}): Entry =>
  fixture("counts.mjs", { RECORD: join(place.cwd, "record") }, more);

/** How often the fixture wrote the line. */
const count = async (place: Place, line: "start" | "list" | "call"): Promise<number> =>
  (await readIfThere(join(place.cwd, "record"))).split("\n").filter((found) => found === line).length;

/** Creates a place where an earlier session has learned the tools of these servers. */
async function learned(servers: (place: Place) => Record<string, Entry>): Promise<Place> {
  const place = await createPlace();
  const first = await start(servers(place), { place });
  expect((await first.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).pending).toEqual([]);
  await first.runtime.stop();
  return place;
}

const inState =
  (name: string, state: ServerState) =>
  ({ status }: { status: ServerStatus }): boolean =>
    status.name === name && status.state === state;

/** Matches the status of a server that is idle and whose tools are known, as after a connection. */
const unused =
  (name: string) =>
  ({ status }: { status: ServerStatus }): boolean =>
    status.name === name && status.state === "idle" && status.toolsKnown;

/** The pid of the server's first connection, even if that connection is closed by now. */
async function connectedPid(at: Started, name: string): Promise<{ pid: number }> {
  const { status } = await at.event("server", inState(name, "connected"));
  return { pid: status.pid ?? 0 };
}

const statusOf = async (at: Started, name: string): Promise<ServerStatus | undefined> =>
  (await at.runtime.ask("status", {})).servers.find((server) => server.name === name);

/** Kills the server's process, and settles when the worker has seen it. */
async function killServer(at: Started, name: string): Promise<number> {
  const { pid = 0 } = (await statusOf(at, name)) ?? {};
  const since = at.events.length;
  process.kill(pid, "SIGKILL");
  await at.event("server", inState(name, "idle"), since);
  return pid;
}

describe("a lazy server", () => {
  test("tools known -> connects at the first call, once for many calls", async () => {
    const servers = (place: Place) => ({ s: countsEntry(place) });
    const place = await learned(servers);
    const at = await start(servers(place), { place });
    expect(await at.settled("s")).toMatchObject({ state: "idle", toolsKnown: true, toolCount: 1 });
    expect(await count(place, "start")).toBe(1);
    const calls = Array.from({ length: 20 }, (_, i) => at.call("s", "work", { i }));
    const texts = (await Promise.all(calls)).map(textOf);
    expect(texts).toEqual(Array.from({ length: 20 }, (_, i) => `{"i":${i}}`));
    expect(await count(place, "start")).toBe(2);
    expect(at.events.filter(({ type }) => type === "spawned")).toHaveLength(1);
    expect(await statusOf(at, "s")).toMatchObject({ state: "connected" });
  });

  test("unused -> closed after its idle timeout, its tools stay; the next call connects again", async () => {
    const at = await start({ s: fixture("noisy.mjs", {}, { idleTimeout: SHORT_IDLE }) });
    const { pid } = await connectedPid(at, "s");
    await at.event("server", unused("s"));
    expect(await waitGone([pid], 10_000)).toEqual([]);
    const status = await statusOf(at, "s");
    expect(status).toMatchObject({ state: "idle", toolsKnown: true, toolCount: 1 });
    expect(status?.error).toBeUndefined();
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    expect(await at.log()).toContain("s is closed: nothing used it");
  });

  test("a call in flight for longer than the idle timeout -> not closed before it is answered", async () => {
    const place = await createPlace();
    const file = join(place.cwd, "go");
    const idle = { idleTimeout: SHORT_IDLE };
    const at = await start(
      { busy: fixture("waits.mjs", {}, idle), unused: fixture("waits.mjs", {}, idle) },
      { place },
    );
    const called = at.call("busy", "work", { file });
    // The other server's idle timeout ends twice meanwhile; without the open call this one's would end too.
    await at.event("server", unused("unused"));
    const since = at.events.length;
    await at.settled("busy");
    await at.runtime.ask("reconnect", { server: "unused" });
    await at.event("server", unused("unused"), since);
    expect(await statusOf(at, "busy")).toMatchObject({ state: "connected" });
    await writeFile(file, "");
    expect(JSON.parse(textOf(await called))).toEqual({ file });
    await at.event("server", unused("busy"), since);
  });

  test("idleTimeout 0 -> stays connected while another server is closed again and again", async () => {
    const at = await start({
      stays: fixture("noisy.mjs", {}, { idleTimeout: 0 }),
      goes: fixture("noisy.mjs", {}, { idleTimeout: SHORT_IDLE }),
    });
    const { pid } = await at.settled("stays");
    for (let round = 0; round < 3; round++) {
      const since = at.events.length;
      await at.call("goes", "work");
      await at.event("server", unused("goes"), since);
    }
    expect(await statusOf(at, "stays")).toMatchObject({ state: "connected", pid });
  });

  test("a cancelled call that the server never answers -> no longer counts as use", async () => {
    const place = await createPlace();
    const at = await start({ s: fixture("waits.mjs", {}, { idleTimeout: SHORT_IDLE }) }, { place });
    const controller = new AbortController();
    const arrived = join(place.cwd, "arrived");
    const file = join(place.cwd, "never");
    const failed = at.failedCall("s", "work", { file, arrived }, controller.signal);
    await until(async () => (await readIfThere(arrived)) || undefined);
    const since = at.events.length;
    controller.abort();
    expect(await failed).toMatchObject({ code: "cancelled" });
    await at.event("server", inState("s", "idle"), since);
  });
});

describe("an eager server", () => {
  test("tools known -> still connects at the session's start", async () => {
    const servers = (place: Place) => ({ s: countsEntry(place, { lifecycle: "eager" }) });
    const place = await learned(servers);
    const at = await start(servers(place), { place });
    await at.event("server", inState("s", "connected"));
    expect(await count(place, "start")).toBe(2);
  });

  test("dropped -> its status says why; connected again once, at the end of a turn", async () => {
    const place = await createPlace();
    const at = await start({ s: countsEntry(place, { lifecycle: "eager" }) }, { place });
    await at.settled("s");
    await killServer(at, "s");
    const dropped = await statusOf(at, "s");
    expect(dropped).toMatchObject({ state: "idle", toolsKnown: true, error: { code: "server_died" } });
    expect(dropped?.error?.message).toMatch(/^s was ended by SIGKILL/);
    const since = at.events.length;
    for (let i = 0; i < 3; i++) at.runtime.post("turnEnded", {});
    const { status } = await at.event("server", inState("s", "connected"), since);
    expect(status.error).toBeUndefined();
    expect(await count(place, "start")).toBe(2);
  });

  test("dropped -> connected again at the next call", async () => {
    const place = await createPlace();
    const at = await start({ s: countsEntry(place, { lifecycle: "eager" }) }, { place });
    await at.settled("s");
    await killServer(at, "s");
    expect(textOf(await at.call("s", "work", { a: 1 }))).toBe('{"a":1}');
    expect(await count(place, "start")).toBe(2);
  });

  test("a turn ends while the eager server is connected and a lazy one is idle -> nothing starts", async () => {
    const place = await createPlace();
    const at = await start(
      {
        eager: countsEntry(place, { lifecycle: "eager" }),
        lazy: fixture("noisy.mjs", {}, { idleTimeout: SHORT_IDLE }),
      },
      { place },
    );
    await at.settled("eager");
    await at.event("server", unused("lazy"));
    const since = at.events.length;
    at.runtime.post("turnEnded", {});
    await at.runtime.ask("status", {});
    // The event for the end of the idle server's process may follow its state.
    expect(at.events.slice(since).filter(({ type }) => type !== "exited")).toEqual([]);
  });
});

describe("a keep-alive server", () => {
  test("its process is killed twice -> connected again each time without a call, as another process", async () => {
    const place = await createPlace();
    const entry = countsEntry(place, { lifecycle: "keep-alive" });
    const at = await start({ s: entry }, { place, limits: { reconnectMs: 100 } });
    await at.settled("s");
    const pids = new Set<number | undefined>();
    for (let round = 0; round < 2; round++) {
      const since = at.events.length;
      pids.add(await killServer(at, "s"));
      const { status } = await at.event("server", inState("s", "connected"), since);
      pids.add(status.pid);
    }
    expect(pids.size).toBe(3);
    expect(await count(place, "start")).toBe(3);
    expect(textOf(await at.call("s", "work", { a: 1 }))).toBe('{"a":1}');
  });

  test("ends soon after each connect -> connected again after longer and longer pauses, its status says so", async () => {
    const place = await createPlace();
    const entry = fixture(
      "dies-soon.mjs",
      { RECORD: join(place.cwd, "record") },
      { lifecycle: "keep-alive" },
    );
    const at = await start({ s: entry }, { place, limits: { reconnectMs: 500 } });
    const dropped = async (failures: number): Promise<ServerStatus> => {
      const { status } = await at.event("server", ({ status }) => {
        const { error } = status;
        return status.state === "idle" && error !== undefined && (error.data?.failures ?? 1) === failures;
      });
      return status;
    };
    expect((await dropped(1)).error?.message).toBe("s exited with code 5.");
    const second = await dropped(2);
    expect(second.error).toMatchObject({
      code: "server_died",
      message: "s exited with code 5. That was 2 times in a row, each within 60 s of the connect.",
      remedy: "It is connected again after 1 s; /mcp reconnect s tries now.",
      data: { server: "s", failures: 2, retryInMs: 1_000 },
    });
    expect((await dropped(3)).error?.data).toMatchObject({ retryInMs: 2_000 });
    expect(await count(place, "start")).toBe(3);
    // A reconnect by the user does not wait and resets the count.
    const since = at.events.length;
    await at.runtime.ask("reconnect", { server: "s" });
    const again = await at.event("server", inState("s", "idle"), since);
    expect(again.status.error?.data?.failures).toBeUndefined();
  });

  test("cannot connect -> tried again without a call, connected once possible", async () => {
    const place = await createPlace();
    const READY = join(place.cwd, "ready");
    const RECORD = join(place.cwd, "record");
    const entry = fixture("fails-until.mjs", { READY, RECORD }, { lifecycle: "keep-alive" });
    const at = await start({ s: entry }, { place, limits: { reconnectMs: 100 } });
    await at.event("server", inState("s", "failed"));
    const since = at.events.length;
    await at.event("server", inState("s", "failed"), since);
    await writeFile(READY, "");
    await at.event("server", inState("s", "connected"));
    expect(await count(place, "start")).toBeGreaterThanOrEqual(3);
  });

  test("fails its health check -> dropped with the reason, then connected again", async () => {
    const place = await createPlace();
    await configure(place, { s: fixture("rejects-ping.mjs", {}, { lifecycle: "keep-alive" }) });
    const { servers, settings } = await loadConfig(configFacts({ ...place, projectTrusted: true }));
    const statuses: ServerStatus[] = [];
    const events: WorkerEvent[] = [];
    // Only the health check uses intervals: its 30 s pass at once, all other timers are real.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onCleanup(async () => vi.useRealTimers());
    const supervisor = createSupervisor({
      cwd: place.cwd,
      npxCacheFile: join(place.agentDir, "mcp-npx-cache.json"),
      log: createLog({ file: join(place.agentDir, "mcp-threads.log"), label: "test" }),
      emit: (event) => events.push(event),
      approvals: { of: () => undefined },
      settings: () => settings,
      onStatus: (server) => statuses.push(server.status()),
      onTools: () => undefined,
    });
    onCleanup(() => supervisor.close());
    supervisor.carryOut(plan({ servers: [], settings }, { servers, settings }));
    supervisor.restoreAndConnect({});
    const stateCount = (state: ServerState): number =>
      statuses.filter((status) => status.state === state).length;
    await until(async () => stateCount("connected") > 0 || undefined);
    vi.advanceTimersByTime(LIMITS.healthCheckMs);
    await until(async () => stateCount("idle") > 0 || undefined);
    const dropped = statuses.find(({ state, error }) => state === "idle" && error);
    expect(dropped?.error?.message).toMatch(/^s did not answer its health check: .*out of memory/);
    await until(async () => stateCount("connected") > 1 || undefined);
    expect(events.filter(({ type }) => type === "spawned")).toHaveLength(2);
    await until(async () => events.some(({ type }) => type === "exited") || undefined);
  });
});

describe("a connect that fails", () => {
  async function failing(more: Entry = {}) {
    const place = await createPlace();
    const READY = join(place.cwd, "ready");
    const entry = fixture("fails-until.mjs", { READY, RECORD: join(place.cwd, "record") }, more);
    const at = await start({ s: entry }, { place });
    expect(await at.settled("s")).toMatchObject({ state: "failed" });
    return { at, place, repair: () => writeFile(READY, "") };
  }

  test("calls within 60 s -> not tried again; the error tells the time of the next attempt and how to try now", async () => {
    const { at, place, repair } = await failing();
    await repair();
    for (let i = 0; i < 3; i++) {
      const error = await at.failedCall("s", "work");
      expect(error).toMatchObject({ code: "connect_failed", data: { server: "s" } });
      expect(error.message).toMatch(/exited with code 3.*not ready/s);
      expect(error.remedy).toMatch(/tried again in \d+ s; \/mcp reconnect s tries now/);
      expect(error.data?.retryInMs).toBeGreaterThan(0);
      expect(error.data?.retryInMs).toBeLessThanOrEqual(60_000);
    }
    expect(await count(place, "start")).toBe(1);
  });

  test("an eager server, turns end within 60 s -> not tried again", async () => {
    const { at, place } = await failing({ lifecycle: "eager" });
    for (let i = 0; i < 3; i++) at.runtime.post("turnEnded", {});
    await at.runtime.ask("status", {});
    expect(await count(place, "start")).toBe(1);
  });

  test.each(["s", undefined])("reconnect %s -> tried at once; then calls work", async (name) => {
    const { at, place, repair } = await failing();
    await repair();
    await at.runtime.ask("reconnect", { server: name });
    expect(await statusOf(at, "s")).toMatchObject({ state: "connected", toolCount: 1 });
    expect(textOf(await at.call("s", "work"))).toBe("ready");
    expect(await count(place, "start")).toBe(2);
  });

  test("reconnect that fails too -> the status says so, with a new pause", async () => {
    const { at, place } = await failing();
    await at.runtime.ask("reconnect", { server: "s" });
    expect(await statusOf(at, "s")).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(await count(place, "start")).toBe(2);
  });
});

describe("reconnect", () => {
  test("a connected server -> another process; the old one and its child are gone", async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "child");
    const at = await start({ s: fixture("with-child.mjs", { RECORD, CHILD_STDIO: "ignore" }) }, { place });
    const { pid = 0 } = await at.settled("s");
    const child = Number(await until(async () => (await readIfThere(RECORD)) || undefined));
    await at.runtime.ask("reconnect", { server: "s" });
    expect((await statusOf(at, "s"))?.pid).not.toBe(pid);
    expect(await waitGone([pid, child], 10_000)).toEqual([]);
  });

  test("a server that ignores SIGTERM and the end of stdin -> another process; the old one is gone", async () => {
    const limits = { closeTermMs: 100, closeKillMs: 300 };
    const at = await start({ s: fixture("ignores-end.mjs") }, { limits });
    const { pid = 0 } = await at.settled("s");
    await at.runtime.ask("reconnect", { server: "s" });
    expect(await statusOf(at, "s")).toMatchObject({ state: "connected" });
    expect((await statusOf(at, "s"))?.pid).not.toBe(pid);
    expect(await waitGone([pid], 10_000)).toEqual([]);
  });

  test("an unknown server -> unknown_server with the names of the known servers", async () => {
    const at = await start({ s: fixture("noisy.mjs") });
    const failed = at.runtime.ask("reconnect", { server: "nope" });
    await expect(failed).rejects.toMatchObject({ code: "unknown_server", data: { known: ["s"] } });
  });

  test("a disabled server, by name -> server_disabled", async () => {
    const at = await start({ s: fixture("noisy.mjs", {}, { enabled: false }) });
    await expect(at.runtime.ask("reconnect", { server: "s" })).rejects.toMatchObject({
      code: "server_disabled",
    });
  });

  test("a server that is connecting -> waits for the same attempt", async () => {
    const place = await createPlace();
    const at = await start({ s: countsEntry(place) }, { place });
    await at.runtime.ask("reconnect", { server: "s" });
    expect(await statusOf(at, "s")).toMatchObject({ state: "connected" });
    expect(await count(place, "start")).toBe(1);
  });
});

describe("servers beside each other", () => {
  test("twelve servers hang in initialize -> a call to a healthy lazy one returns, ten connect at a time", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `hangs${i}`);
    const hanging = Object.fromEntries(names.map((name) => [name, fixture("hangs.mjs")]));
    const at = await start({ ...hanging, healthy: fixture("noisy.mjs") });
    expect(textOf(await at.call("healthy", "work"))).toBe("through the noise");
    const { servers } = await at.runtime.ask("status", {});
    const waiting = servers.filter(({ name }) => name !== "healthy");
    expect(new Set(waiting.map(({ state }) => state))).toEqual(new Set(["connecting"]));
    const spawned = at.events.filter(({ type }) => type === "spawned");
    expect(spawned.length).toBeLessThanOrEqual(11);
    expect((await at.runtime.settleTools({ timeoutMs: 1 }, undefined)).pending).toEqual(names);
  });

  test("the session ends before a server has answered -> it gets SIGTERM at once, its process is gone", async () => {
    const place = await createPlace();
    const record = join(place.cwd, "record");
    const { runtime, events } = await start(
      { slow: fixture("hears-term.mjs", { RECORD: record }) },
      { place },
    );
    await expect.poll(() => readIfThere(record)).toBe("start\n");
    const spawned = events.find((event) => event.type === "spawned");
    await runtime.stop();
    expect(spawned?.pid).toBeGreaterThan(0);
    expect(await waitGone(spawned ? [spawned.pid] : [], 10_000)).toEqual([]);
    expect(await readIfThere(record)).toBe("start\nSIGTERM\n");
  });

  test("two calls to a server that hangs, the second cancelled -> it ends at once, the first still waits", async () => {
    const at = await start({ s: fixture("hangs.mjs") });
    const controller = new AbortController();
    const first = at.failedCall("s", "work");
    const second = at.failedCall("s", "work", {}, controller.signal);
    controller.abort();
    expect(await second).toMatchObject({ code: "cancelled" });
    expect(await statusOf(at, "s")).toMatchObject({ state: "connecting" });
    await at.runtime.stop();
    expect((await first).code).toMatch(/^(cancelled|server_died|runtime_stopped|runtime_restarted)$/);
  });
});

/** Name of the first tool in main's newest catalog. */
const newestTool = (at: Started): string | undefined =>
  at.events.some(({ type }) => type === "catalog") ? newestCatalog(at).tools[0]?.name : undefined;

describe("tool lists", () => {
  it.each(["notifications/tools/list_changed", "notifications/resources/list_changed"])(
    "%s -> the new tool is found and can be called",
    async (method) => {
      const at = await start({ s: fixture("grows.mjs") });
      await at.settled("s");
      await currentCatalog(at);
      const since = at.events.length;
      await at.call("s", "grow", { method, ms: 0 });
      await at.event("server", ({ status }) => status.toolCount === 2, since);
      await at.event("catalog", () => true, since);
      expect(newestCatalog(at).get("s__grown1")?.tool).toBe("grown1");
      expect((await at.call("s", "grown1")).isError).toBe(false);
    },
  );

  test("a flood of list_changed over three intervals -> one list per interval, and the last change is not lost", async () => {
    const refreshIntervalMs = 200;
    const at = await start({ s: fixture("grows.mjs") }, { limits: { refreshIntervalMs } });
    await at.settled("s");
    const since = at.events.length;
    const method = "notifications/tools/list_changed";
    const { tookMs } = JSON.parse(textOf(await at.call("s", "grow", { method, ms: 3 * refreshIntervalMs })));
    await at.event("server", ({ status }) => status.toolCount === 2, since);
    const { lists } = JSON.parse(textOf(await at.call("s", "grown1")));
    // One list at the connect, one per interval during the flood, one for the last change.
    expect(lists).toBeGreaterThanOrEqual(3);
    expect(lists).toBeLessThanOrEqual(3 + Math.ceil(tookMs / refreshIntervalMs));
  });

  test("a new list each time, each with 1,000 notifications -> listed after longer pauses; the last list arrives", async () => {
    const place = await createPlace();
    const entry = fixture("changes-always.mjs", { RECORD: join(place.cwd, "record"), LISTS: "5" });
    const at = await start({ s: entry }, { place, limits: { refreshIntervalMs: 200 } });
    await until(async () => (newestTool(at) === "s__tool5" ? true : undefined));
    const lists = (await readIfThere(join(place.cwd, "record"))).trim().split("\n").map(Number);
    expect(lists).toHaveLength(5);
    // The lists come at the connect, soon after it, and then after 1, 2 and 4 intervals.
    expect((lists[4] ?? 0) - (lists[0] ?? 0)).toBeGreaterThan(1_390);
    // One catalog for each list, and one before the first list.
    expect(at.events.filter(({ type }) => type === "catalog").length).toBeLessThanOrEqual(6);
  });

  /** One worker whose servers have odd lists. */
  const listed = forRows(() =>
    start({
      endless: fixture("endless-cursors.mjs"),
      slow: fixture("endless-cursors.mjs", { DELAY_MS: "50" }, { startupTimeoutMs: 500 }),
      silent: fixture("never-lists.mjs", {}, { startupTimeoutMs: 500 }),
      exits: fixture("exits-at-list.mjs"),
      s: fixture("odd-tools.mjs"),
      healthy: fixture("noisy.mjs"),
    }),
  );

  test("cursors without end -> the first 200 pages, and the server works", async () => {
    const at = await listed();
    expect(await at.settled("endless")).toMatchObject({ state: "connected", toolCount: LIMITS.listPages });
    expect(textOf(await at.call("endless", "tool199"))).toBe("tool199");
  });

  test("slow pages without end -> connect_timeout, the process is gone", async () => {
    const at = await listed();
    const status = await at.settled("slow");
    const { pid } = await at.event("spawned", ({ server }) => server === "slow");
    expect(await waitGone([pid], 10_000)).toEqual([]);
    expect(status).toMatchObject({
      state: "failed",
      error: { code: "connect_timeout", data: { server: "slow", timeoutMs: 500 } },
    });
  });

  test("a server that never answers tools/list -> connect_timeout, its process is gone; other servers work", async () => {
    const at = await listed();
    const status = await at.settled("silent");
    expect(await at.settled("healthy")).toMatchObject({ state: "connected" });
    const { pid } = await at.event("spawned", ({ server }) => server === "silent");
    expect(await waitGone([pid], 10_000)).toEqual([]);
    expect(status).toMatchObject({
      state: "failed",
      toolsKnown: false,
      error: { code: "connect_timeout", data: { server: "silent", timeoutMs: 500 } },
    });
    expect(status.error?.remedy).toContain("startupTimeoutMs");
  });

  test("a server that exits at tools/list -> connect_failed with its exit code and its stderr", async () => {
    const at = await listed();
    const status = await at.settled("exits");
    expect(status).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(status.error?.message).toMatch(/exited with code 6.*index is corrupt/s);
  });

  test("two tools with one name, a tool without a schema, one with a wrong schema -> each once, all callable", async () => {
    const at = await listed();
    expect(await at.settled("s")).toMatchObject({ state: "connected", toolCount: 3 });
    const catalog = await currentCatalog(at);
    const tools = catalog.tools.filter(({ server }) => server.name === "s");
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ["s__twin", "First."],
      ["s__bare", "bare of s"],
      ["s__wrong", "Does wrong."],
    ]);
    for (const tool of tools) {
      if (tool.tool !== "twin") expect(inputSchemaOf(tool)).toEqual({ type: "object", properties: {} });
      const called = textOf(await at.call("s", tool.tool, { a: 1 }));
      expect(JSON.parse(called)).toMatchObject({ name: tool.tool, arguments: { a: 1 } });
    }
  });
});

describe("messages of 64 MiB", () => {
  test("exactly the limit -> arrives, cut for the model", async () => {
    const at = await start({ s: fixture("big-line.mjs") });
    const text = textOf(await at.call("s", "work", { bytes: LIMITS.messageBytes }));
    expect(text.length).toBeLessThan(60_000);
    expect(/\[\.\.\..*?left out here\./.exec(text)?.[0]).toMatch(/^\[\.\.\. 67,\d{3},\d{3} bytes of /);
  });

  test("one byte more -> message_too_large with the limit; the process is gone, the next call works", async () => {
    const at = await start({ s: fixture("big-line.mjs") });
    const { pid = 0 } = await at.settled("s");
    const error = await at.failedCall("s", "work", { bytes: LIMITS.messageBytes + 1 });
    expect(await waitGone([pid], 10_000)).toEqual([]);
    expect(textOf(await at.call("s", "work", { bytes: 100 }))).toMatch(/^x+$/);
    expect(error.message).toContain("64 MiB");
    expect(error).toMatchObject({
      code: "message_too_large",
      data: { server: "s", limitBytes: LIMITS.messageBytes },
    });
  });
});

describe("calls under way", () => {
  test("progress for longer than the timeout -> the call continues; the user sees at most 10 steps a second", async () => {
    const at = await start({ s: fixture("progresses.mjs", {}, { requestTimeoutMs: 1_000 }) });
    const { progress, tookMs } = JSON.parse(textOf(await at.call("s", "work", { ms: 2_500 })));
    expect(tookMs).toBeGreaterThan(2_000);
    const messages = at.events.flatMap((event) => (event.type === "progress" ? [event.message] : []));
    expect(messages[0]).toBe("step 1");
    expect(messages.length).toBeGreaterThanOrEqual(3);
    expect(messages.length).toBeLessThanOrEqual(Math.min(progress, Math.ceil(tookMs / 100) + 1));
    const steps = messages.map((message) => Number(message.replace("step ", "")));
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
  });

  test("no progress until the timeout -> call_timeout, the server stays and answers the next call", async () => {
    const place = await createPlace();
    const at = await start({ s: fixture("waits.mjs", {}, { requestTimeoutMs: 300 }) }, { place });
    const { pid } = await at.settled("s");
    const error = await at.failedCall("s", "work", { file: join(place.cwd, "never") });
    expect(error).toMatchObject({ code: "call_timeout", data: { server: "s", timeoutMs: 300 } });
    expect(error.remedy).toContain("timeout");
    expect(textOf(await at.call("s", "work", { file: place.cwd }))).toContain(place.cwd);
    expect(await statusOf(at, "s")).toMatchObject({ state: "connected", pid });
  });

  test("fifty calls at once and a cancelled call without an answer -> each of the fifty gets its own answer", async () => {
    const place = await createPlace();
    const at = await start({ s: fixture("waits.mjs") }, { place });
    const file = join(place.cwd, "go");
    const controller = new AbortController();
    const cancelled = at.failedCall("s", "work", { file: join(place.cwd, "never") }, controller.signal);
    const calls = Array.from({ length: 50 }, (_, i) => at.call("s", "work", { file, i }));
    controller.abort();
    expect(await cancelled).toMatchObject({ code: "cancelled" });
    await writeFile(file, "");
    const answers = (await Promise.all(calls)).map((result) => JSON.parse(textOf(result)).i);
    expect(answers).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });
});
