/**
 * Owns: when servers start, end, reconnect or stay as they are, and what the user sees; with real threads and
 * processes.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test, vi } from "vitest";
import { inputSchemaOf } from "../../src/catalog/catalog.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { ServerState, ServerStatus } from "../../src/shared/protocol/session.ts";
import { configFacts, loadConfig } from "../../workers/connection/config/merge/merge.ts";
import { plan } from "../../workers/connection/config/plan/plan.ts";
import { Supervisor } from "../../workers/connection/servers/supervisor.ts";
import { createLog } from "../../workers/shared/log.ts";
import { waitGone } from "../support/processes.ts";
import {
  configure,
  createPlace,
  currentCatalog,
  endAll,
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

const recordOf = (place: Place, name: string): string => join(place.cwd, `${name}.record`);
const countsEntry = (place: Place, name: string, more: Entry = {}): Entry =>
  fixture("counts.mjs", { RECORD: recordOf(place, name) }, more);

/** How often the server's fixture wrote the line. */
const count = async (place: Place, name: string, line: "start" | "list" | "call"): Promise<number> =>
  (await readIfThere(recordOf(place, name))).split("\n").filter((found) => found === line).length;

/** One session with a server for each test. An earlier session has learned the tools of `known` and of `knownEager`. */
const session = forRows(async () => {
  const place = await createPlace();
  const eager = (name: string): Entry => countsEntry(place, name, { lifecycle: "eager" });
  const known = { known: countsEntry(place, "known"), knownEager: eager("knownEager") };
  const earlier = await start(known, { place });
  expect(await earlier.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  // A shared server would still run.
  await endAll(earlier);
  const idle = { idleTimeout: SHORT_IDLE };
  const unknown = {
    unused: fixture("noisy.mjs", {}, idle),
    busy: fixture("waits.mjs", {}, idle),
    goes: fixture("noisy.mjs", {}, idle),
    stays: fixture("noisy.mjs", {}, { idleTimeout: 0 }),
    cancelled: fixture("waits.mjs", {}, idle),
    told: eager("told"),
    called: eager("called"),
    early: countsEntry(place, "early"),
    parent: fixture("with-child.mjs", { RECORD: join(place.cwd, "child"), CHILD_STDIO: "ignore" }),
    stubborn: fixture("ignores-end.mjs"),
    off: fixture("noisy.mjs", {}, { enabled: false }),
    progresses: fixture("progresses.mjs", {}, { requestTimeoutMs: 1_000 }),
    late: fixture("waits.mjs", {}, { requestTimeoutMs: 1_500 }),
    many: fixture("waits.mjs"),
  };
  const limits = { closeTermMs: 100, closeKillMs: 300 };
  const at = await start({ ...known, ...unknown }, { place, limits });
  // The session has just begun, so this server is connecting.
  await at.runtime.ask("reconnect", { server: "early" });
  return at;
});

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
    const at = await session();
    expect(await at.settled("known")).toMatchObject({ state: "idle", toolsKnown: true, toolCount: 1 });
    expect(await count(at, "known", "start")).toBe(1);
    const calls = Array.from({ length: 20 }, (_, i) => at.call("known", "work", { i }));
    const texts = (await Promise.all(calls)).map(textOf);
    expect(texts).toEqual(Array.from({ length: 20 }, (_, i) => `{"i":${i}}`));
    expect(await count(at, "known", "start")).toBe(2);
    expect(at.events.filter((event) => event.type === "spawned" && event.server === "known")).toHaveLength(1);
    expect(await statusOf(at, "known")).toMatchObject({ state: "connected" });
  });

  test("unused -> closed after its idle timeout, its tools stay; the next call connects again", async () => {
    const at = await session();
    const { pid } = await connectedPid(at, "unused");
    await at.event("server", unused("unused"));
    expect(await waitGone([pid])).toEqual([]);
    const status = await statusOf(at, "unused");
    expect(status).toMatchObject({ state: "idle", toolsKnown: true, toolCount: 1 });
    expect(status?.error).toBeUndefined();
    expect(textOf(await at.call("unused", "work"))).toBe("through the noise");
    expect(await at.log()).toContain("unused is closed: nothing used it");
  });

  test("a call in flight for longer than the idle timeout -> not closed before it is answered", async () => {
    const at = await session();
    const file = join(at.cwd, "go");
    const called = at.call("busy", "work", { file });
    await at.event("server", inState("busy", "connected"));
    let since = 0;
    // The other server's idle timeout ends twice meanwhile; without the open call this one's would end too.
    for (let round = 0; round < 2; round++) {
      since = at.events.length;
      await at.runtime.ask("reconnect", { server: "goes" });
      await at.event("server", unused("goes"), since);
    }
    expect(await statusOf(at, "busy")).toMatchObject({ state: "connected" });
    await writeFile(file, "");
    expect(JSON.parse(textOf(await called))).toEqual({ file });
    await at.event("server", unused("busy"), since);
  });

  test("idleTimeout 0 -> stays connected while another server is closed again and again", async () => {
    const at = await session();
    const { pid } = await at.settled("stays");
    for (let round = 0; round < 3; round++) {
      const since = at.events.length;
      await at.call("goes", "work");
      await at.event("server", unused("goes"), since);
    }
    expect(await statusOf(at, "stays")).toMatchObject({ state: "connected", pid });
  });

  test("a cancelled call that the server never answers -> no longer counts as use", async () => {
    const at = await session();
    const controller = new AbortController();
    const arrived = join(at.cwd, "arrived");
    const file = join(at.cwd, "never");
    const failed = at.failedCall("cancelled", "work", { file, arrived }, controller.signal);
    await until(async () => (await readIfThere(arrived)) || undefined);
    const since = at.events.length;
    controller.abort();
    expect(await failed).toMatchObject({ code: "cancelled" });
    await at.event("server", inState("cancelled", "idle"), since);
  });
});

describe("an eager server", () => {
  test("tools known -> still connects at the session's start", async () => {
    const at = await session();
    await at.event("server", inState("knownEager", "connected"));
    expect(await count(at, "knownEager", "start")).toBe(2);
  });

  test("dropped -> its status says why; connected again once, at the end of a turn", async () => {
    const at = await session();
    await at.settled("told");
    await killServer(at, "told");
    const dropped = await statusOf(at, "told");
    expect(dropped).toMatchObject({ state: "idle", toolsKnown: true, error: { code: "server_died" } });
    expect(dropped?.error?.message).toMatch(/^told was ended by SIGKILL/);
    const since = at.events.length;
    for (let i = 0; i < 3; i++) at.runtime.post("turnEnded", {});
    const { status } = await at.event("server", inState("told", "connected"), since);
    expect(status.error).toBeUndefined();
    expect(await count(at, "told", "start")).toBe(2);
  });

  test("dropped -> connected again at the next call", async () => {
    const at = await session();
    await at.settled("called");
    await killServer(at, "called");
    expect(textOf(await at.call("called", "work", { a: 1 }))).toBe('{"a":1}');
    expect(await count(at, "called", "start")).toBe(2);
  });

  test("a turn ends while the eager servers are connected and a lazy one is idle -> nothing starts", async () => {
    const at = await session();
    await at.settled("knownEager");
    await until(async () => ((await statusOf(at, "goes"))?.state === "idle" ? true : undefined));
    const since = at.events.length;
    at.runtime.post("turnEnded", {});
    await at.runtime.ask("status", {});
    const started = at.events.slice(since).filter((event) => {
      return event.type === "spawned" || (event.type === "server" && event.status.state === "connecting");
    });
    expect(started).toEqual([]);
  });
});

describe("a keep-alive server", () => {
  const keptAlive = forRows(async () => {
    const place = await createPlace();
    const more = { lifecycle: "keep-alive" };
    const env = (name: string) => ({ RECORD: recordOf(place, name), READY: join(place.cwd, "ready") });
    const servers = {
      dies: fixture("dies-soon.mjs", env("dies"), more),
      fails: fixture("fails-until.mjs", env("fails"), more),
      killed: countsEntry(place, "killed", more),
    };
    return start(servers, { place, limits: { reconnectMs: 500 } });
  });

  test("ends soon after each connect -> connected again after longer and longer pauses, its status says so", async () => {
    const at = await keptAlive();
    const dropped = (failures: number) =>
      at.event("server", ({ status: { name, state, error } }) => {
        return (
          name === "dies" &&
          state === "idle" &&
          error !== undefined &&
          (error.data?.failures ?? 1) === failures
        );
      });
    expect((await dropped(1)).status.error?.message).toBe("dies exited with code 5.");
    expect((await dropped(2)).status.error).toMatchObject({
      code: "server_died",
      message: "dies exited with code 5. That was 2 times in a row, each within 60 s of the connect.",
      remedy: "It is connected again after 1 s; /mcp reconnect dies tries now.",
      data: { server: "dies", failures: 2, retryInMs: 1_000 },
    });
    const third = await dropped(3);
    expect(third.status.error?.data).toMatchObject({ retryInMs: 2_000 });
    const before = at.events.slice(0, at.events.indexOf(third));
    expect(before.filter((event) => event.type === "spawned" && event.server === "dies")).toHaveLength(3);
    // A reconnect by the user does not wait and resets the count.
    const since = at.events.length;
    await at.runtime.ask("reconnect", { server: "dies" });
    const again = await at.event("server", inState("dies", "idle"), since);
    expect(again.status.error?.data?.failures).toBeUndefined();
  });

  test("its process is killed twice -> connected again each time without a call, as another process", async () => {
    const at = await keptAlive();
    await at.settled("killed");
    const pids = new Set<number | undefined>();
    for (let round = 0; round < 2; round++) {
      const since = at.events.length;
      pids.add(await killServer(at, "killed"));
      const { status } = await at.event("server", inState("killed", "connected"), since);
      pids.add(status.pid);
    }
    expect(pids.size).toBe(3);
    expect(await count(at, "killed", "start")).toBe(3);
    expect(textOf(await at.call("killed", "work", { a: 1 }))).toBe('{"a":1}');
  });

  test("cannot connect -> tried again without a call, connected once possible", {
    tags: "thorough",
  }, async () => {
    const at = await keptAlive();
    const first = await at.event("server", inState("fails", "failed"));
    await at.event("server", inState("fails", "failed"), at.events.indexOf(first) + 1);
    await writeFile(join(at.cwd, "ready"), "");
    await at.event("server", inState("fails", "connected"));
    expect(await count(at, "fails", "start")).toBeGreaterThanOrEqual(3);
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
    const supervisor = new Supervisor({
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

// Windows has no SIGSTOP.
test.skipIf(process.platform === "win32")(
  "servers that hang, each in its way -> the next call has a new process, the log says why; one that is slow stays",
  { tags: "thorough" },
  async () => {
    const names = ["blocks", "deaf", "stopped", "slow"];
    const at = await start(
      Object.fromEntries(names.map((name) => [name, fixture("shared.mjs", { NAME: name }, { timeout: 5 })])),
    );
    const work = async (name: string, deed: string) => textOf(await at.call(name, "work", { do: deed }));
    const pidsOf = () => Promise.all(names.map(async (name) => Number(await work(name, "pid"))));
    const before = await pidsOf();
    await work("deaf", "deaf");
    process.kill(before[names.indexOf("stopped")] ?? 0, "SIGSTOP");
    const deeds = { blocks: "block", deaf: "pid", stopped: "pid", slow: "hang" };
    const failures = Object.entries(deeds).map(async ([name, deed]) => {
      const error = await at.failedCall(name, "work", { do: deed });
      expect(error).toMatchObject({ code: "call_timeout" });
      expect(error.remedy).toMatch(new RegExp(`; /mcp reconnect ${name} starts it anew if it hangs\\.$`));
    });
    await Promise.all(failures);
    const after = await pidsOf();
    const isNew = names.filter((_, index) => before[index] !== after[index]);
    expect(isNew).toEqual(["blocks", "deaf", "stopped"]);
    expect(await waitGone(before.slice(0, 3))).toEqual([]);
    const log = await at.log();
    for (const name of isNew)
      expect(log).toContain(
        `${name} is hung: it answered neither a call within 5 s nor a ping within 10 s. The next call connects again.`,
      );
    expect(log).not.toContain("slow is hung");
  },
);

describe("a connect that fails", () => {
  /** The pause after a failure is at least a second. */
  const RETRY_LOOK_MS = 200;
  const names = ["calls", "byName", "again", "byAll"] as const;
  const readyOf = ({ cwd }: Place, name: string): string => join(cwd, `${name}.ready`);
  async function startOf(names: readonly string[]) {
    const place = await createPlace();
    const servers = names.map((name) => {
      const env = { READY: readyOf(place, name), RECORD: recordOf(place, name) };
      return [name, fixture("fails-until.mjs", env)];
    });
    return start(Object.fromEntries(servers), { place });
  }
  const session = forRows(() => startOf(names));
  async function failing(name: (typeof names)[number]) {
    const at = await session();
    expect(await at.settled(name)).toMatchObject({ state: "failed" });
    return { at, repair: () => writeFile(readyOf(at, name), "") };
  }

  test("it works again -> a call starts it, soon and without a person", async () => {
    const { at, repair } = await failing("calls");
    const error = await at.failedCall("calls", "work");
    expect(error).toMatchObject({ code: "connect_failed", data: { server: "calls" } });
    expect(error.message).toMatch(/exited with code 3.*not ready/s);
    const started = await count(at, "calls", "start");
    await repair();
    await until(() => at.call("calls", "work").then(textOf, () => undefined), RETRY_LOOK_MS);
    expect(await count(at, "calls", "start")).toBe(started + 1);
  });

  test("it works again, and nobody knows its tools -> the end of a turn starts it", {
    tags: "thorough",
  }, async () => {
    const at = await startOf(["turns"]);
    expect(await at.settled("turns")).toMatchObject({ state: "failed" });
    await writeFile(readyOf(at, "turns"), "");
    const connected = await until(async () => {
      at.runtime.post("turnEnded", {});
      const status = await statusOf(at, "turns");
      return status?.state === "connected" ? status : undefined;
    }, RETRY_LOOK_MS);
    expect(connected).toMatchObject({ toolCount: 1 });
    expect(await count(at, "turns", "start")).toBe(2);
  });

  test("reconnect that fails too -> the status says so, with a new pause", async () => {
    const { at } = await failing("again");
    await at.runtime.ask("reconnect", { server: "again" });
    const error = { code: "connect_failed" };
    expect(await statusOf(at, "again")).toMatchObject({ state: "failed", error });
    expect(await count(at, "again", "start")).toBe(2);
  });

  // The last row reconnects the servers of the other tests, too.
  test.each([
    ["byName", "byName"],
    [undefined, "byAll"],
  ] as const)("reconnect %s -> tried at once; then calls work", async (server, name) => {
    const { at, repair } = await failing(name);
    await repair();
    await at.runtime.ask("reconnect", { server });
    expect(await statusOf(at, name)).toMatchObject({ state: "connected", toolCount: 1 });
    expect(textOf(await at.call(name, "work"))).toBe("ready");
    expect(await count(at, name, "start")).toBe(2);
  });
});

describe("reconnect", () => {
  test("a server that is connecting -> waits for the same attempt", async () => {
    const at = await session();
    expect(await statusOf(at, "early")).toMatchObject({ state: "connected" });
    expect(await count(at, "early", "start")).toBe(1);
  });

  test("a connected server -> another process; the old one and its child are gone", async () => {
    const at = await session();
    const { pid = 0 } = await at.settled("parent");
    const child = Number(await until(async () => (await readIfThere(join(at.cwd, "child"))) || undefined));
    await at.runtime.ask("reconnect", { server: "parent" });
    expect((await statusOf(at, "parent"))?.pid).not.toBe(pid);
    expect(await waitGone([pid, child])).toEqual([]);
  });

  test("a server that ignores SIGTERM and the end of stdin -> another process; the old one is gone", async () => {
    const at = await session();
    const { pid = 0 } = await at.settled("stubborn");
    await at.runtime.ask("reconnect", { server: "stubborn" });
    expect(await statusOf(at, "stubborn")).toMatchObject({ state: "connected" });
    expect((await statusOf(at, "stubborn"))?.pid).not.toBe(pid);
    expect(await waitGone([pid])).toEqual([]);
  });

  test("an unknown server -> unknown_server with the names of the known servers", async () => {
    const at = await session();
    const known = (await at.runtime.ask("status", {})).servers.map(({ name }) => name);
    expect(known).toContain("early");
    const failed = at.runtime.ask("reconnect", { server: "nope" });
    await expect(failed).rejects.toMatchObject({ code: "unknown_server", data: { known } });
  });

  test("a disabled server, by name -> server_disabled", async () => {
    const failed = (await session()).runtime.ask("reconnect", { server: "off" });
    await expect(failed).rejects.toMatchObject({ code: "server_disabled" });
  });
});

describe("servers beside each other", () => {
  test("twelve servers hang in initialize -> a call to a healthy lazy one returns, ten connect at a time", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `hangs${i}`);
    // A program that answers nothing, and starts sooner than node.
    const hangs = process.platform === "win32" ? fixture("hangs.mjs") : { command: "sleep", args: ["600"] };
    const hanging = Object.fromEntries(names.map((name) => [name, hangs]));
    const at = await start({ ...hanging, healthy: fixture("noisy.mjs") });
    expect(textOf(await at.call("healthy", "work"))).toBe("through the noise");
    const { servers } = await at.runtime.ask("status", {});
    const waiting = servers.filter(({ name }) => name !== "healthy");
    expect(new Set(waiting.map(({ state }) => state))).toEqual(new Set(["connecting"]));
    const spawned = at.events.filter(({ type }) => type === "spawned");
    expect(spawned.length).toBeLessThanOrEqual(11);
    expect(await at.runtime.settleTools({ timeoutMs: 1 }, undefined)).toEqual(names);
  });

  test("the session ends before a server has answered -> its process is gone, and SIGTERM comes first", async () => {
    const place = await createPlace();
    const record = join(place.cwd, "record");
    const { runtime, event } = await start(
      { slow: fixture("hears-term.mjs", { RECORD: record }) },
      { place },
    );
    await expect.poll(() => readIfThere(record)).toBe("start\n");
    const { pid } = await event("spawned");
    await runtime.stop();
    expect(await waitGone([pid])).toEqual([]);
    // On a busy machine the process may not run between the two signals; transport.test.ts holds their order.
    expect(await readIfThere(record)).toMatch(/^start\n(?:SIGTERM\n)?$/);
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
  const refreshIntervalMs = 200;
  /** One worker whose servers have lists that change, or odd ones. */
  const listed = forRows(() =>
    start(
      {
        tools: fixture("grows.mjs"),
        resources: fixture("grows.mjs"),
        flood: fixture("grows.mjs"),
        endless: fixture("endless-cursors.mjs"),
        slow: fixture("endless-cursors.mjs", { DELAY_MS: "50" }, { startupTimeoutMs: 500 }),
        silent: fixture("never-lists.mjs", {}, { startupTimeoutMs: 500 }),
        exits: fixture("exits-at-list.mjs"),
        s: fixture("odd-tools.mjs"),
        healthy: fixture("noisy.mjs"),
      },
      { limits: { refreshIntervalMs } },
    ),
  );

  it.each(["tools", "resources"])(
    "notifications/%s/list_changed -> the new tool is found and can be called",
    async (server) => {
      const at = await listed();
      await at.settled(server);
      await currentCatalog(at);
      const since = at.events.length;
      await at.call(server, "grow", { method: `notifications/${server}/list_changed`, ms: 0 });
      await at.event("server", ({ status }) => status.name === server && status.toolCount === 2, since);
      const grown = await until(async () => newestCatalog(at).get(`${server}__grown1`));
      expect(grown.tool).toBe("grown1");
      expect((await at.call(server, "grown1")).isError).toBe(false);
    },
  );

  test("a flood of list_changed over three intervals -> one list per interval, and the last change is not lost", async () => {
    const at = await listed();
    await at.settled("flood");
    const since = at.events.length;
    const flood = { method: "notifications/tools/list_changed", ms: 3 * refreshIntervalMs };
    const { tookMs } = JSON.parse(textOf(await at.call("flood", "grow", flood)));
    await at.event("server", ({ status }) => status.name === "flood" && status.toolCount === 2, since);
    const { lists } = JSON.parse(textOf(await at.call("flood", "grown1")));
    // One list at the connect, one per interval during the flood, one for the last change.
    expect(lists).toBeGreaterThanOrEqual(3);
    expect(lists).toBeLessThanOrEqual(3 + Math.ceil(tookMs / refreshIntervalMs));
  });

  test("a new list each time, each with 1,000 notifications -> listed after longer pauses; the last list arrives", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    const entry = fixture("changes-always.mjs", { RECORD: join(place.cwd, "record"), LISTS: "5" });
    const at = await start({ s: entry }, { place, limits: { refreshIntervalMs } });
    await until(async () => (newestTool(at) === "s__tool5" ? true : undefined));
    const lists = (await readIfThere(join(place.cwd, "record"))).trim().split("\n").map(Number);
    // Notifications that a busy machine delivers after the list that they belong to cost one more.
    expect(lists.length).toBeLessThanOrEqual(6);
    // The lists come at the connect, soon after it, and then after 1, 2 and 4 intervals.
    expect((lists[4] ?? 0) - (lists[0] ?? 0)).toBeGreaterThan(1_390);
    // One catalog for each list, and one before the first list.
    expect(at.events.filter(({ type }) => type === "catalog").length).toBeLessThanOrEqual(lists.length + 1);
  });

  test("cursors without end -> the first 200 pages, a line of the log, and the server works", async () => {
    const at = await listed();
    expect(await at.settled("endless")).toMatchObject({ state: "connected", toolCount: LIMITS.listPages });
    expect(textOf(await at.call("endless", "tool199"))).toBe("tool199");
    const cut = "endless lists its tools on more than 200 pages; further pages were not asked for";
    expect((await at.log()).split(cut)).toHaveLength(2);
  });

  test("slow pages without end -> connect_timeout, the process is gone", async () => {
    const at = await listed();
    const status = await at.settled("slow");
    const { pid } = await at.event("spawned", ({ server }) => server === "slow");
    expect(await waitGone([pid])).toEqual([]);
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
    expect(await waitGone([pid])).toEqual([]);
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

describe("calls under way", () => {
  test("progress for longer than the timeout -> the call continues; the user sees at most 10 steps a second", async () => {
    const at = await session();
    const { progress, tookMs } = JSON.parse(textOf(await at.call("progresses", "work", { ms: 2_500 })));
    expect(tookMs).toBeGreaterThan(2_000);
    const messages = at.events.flatMap((event) => (event.type === "progress" ? [event.message] : []));
    expect(messages[0]).toBe("step 1");
    expect(messages.length).toBeGreaterThanOrEqual(3);
    expect(messages.length).toBeLessThanOrEqual(Math.min(progress, Math.ceil(tookMs / 100) + 1));
    const steps = messages.map((message) => Number(message.replace("step ", "")));
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
  });

  test("no progress until the timeout -> call_timeout, the server stays and answers the next call", async () => {
    const at = await session();
    const { pid } = await at.settled("late");
    const error = await at.failedCall("late", "work", { file: join(at.cwd, "never") });
    expect(error).toMatchObject({ code: "call_timeout", data: { server: "late", timeoutMs: 1_500 } });
    expect(error.remedy).toContain("timeout");
    expect(textOf(await at.call("late", "work", { file: at.cwd }))).toContain(at.cwd);
    expect(await statusOf(at, "late")).toMatchObject({ state: "connected", pid });
  });

  test("fifty calls at once and a cancelled call without an answer -> each of the fifty gets its own answer", async () => {
    const at = await session();
    const file = join(at.cwd, "go");
    const controller = new AbortController();
    const cancelled = at.failedCall("many", "work", { file: join(at.cwd, "never") }, controller.signal);
    const calls = Array.from({ length: 50 }, (_, i) => at.call("many", "work", { file, i }));
    controller.abort();
    expect(await cancelled).toMatchObject({ code: "cancelled" });
    await writeFile(file, "");
    const answers = (await Promise.all(calls)).map((result) => JSON.parse(textOf(result)).i);
    expect(answers).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });
});
