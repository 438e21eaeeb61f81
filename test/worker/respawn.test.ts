/**
 * Owns: a worker that crashes, ends, hangs or runs out of memory, and a cache worker that cannot start: the session
 * continues.
 */
import { execFileSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { describe, expect, it, test, vi } from "vitest";
import { readCatalog } from "../../src/catalog/store.ts";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { ServerState, ServerStatus } from "../../src/shared/protocol/session.ts";
import { answerWell, serve } from "../support/http-server.ts";
import { family, sized } from "../support/long.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import {
  breakable,
  breaksOnMessage,
  configure,
  createPlace,
  fixture,
  forRows,
  newestCatalog,
  type Place,
  readIfThere,
  type Started,
  start,
  tellWorker,
  textOf,
  until,
  type Way,
} from "./support.ts";

const spawnedPids = (at: Started): number[] =>
  at.events.flatMap((event) => (event.type === "spawned" ? [event.pid] : []));

const inState =
  (name: string, state: ServerState) =>
  ({ status }: { status: ServerStatus }): boolean =>
    status.name === name && status.state === state;

/** Three servers, one of each lifecycle, and one that ignores the end of its stdin. */
async function startBreakable(): Promise<Started> {
  const at = await start(
    {
      lazy: fixture("noisy.mjs"),
      eager: fixture("noisy.mjs", {}, { lifecycle: "eager" }),
      alive: fixture("noisy.mjs", {}, { lifecycle: "keep-alive" }),
      stubborn: fixture("ignores-end.mjs"),
    },
    { workerUrl: breakable, limits: { respawnMs: [100], respawnsAMinute: 20 } },
  );
  expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  // The next worker knows stored tools without a connect, so the tests wait until they are stored.
  const cache = join(at.agentDir, "mcp-cache.json");
  await until(async () => (await readIfThere(cache)).includes('"stubborn"') || undefined);
  return at;
}

/** A session with one server, which ignores the end of its stdin, and a call that it never answers. */
async function startStubborn(): Promise<{ at: Started; open: Promise<ThreadsError> }> {
  const at = await start({ stubborn: fixture("ignores-end.mjs") }, { workerUrl: breakable });
  await at.settled("stubborn");
  return { at, open: at.failedCall("stubborn", "work") };
}

/** Waits until the worker has seen what `tellWorker` told. */
const hasSeen = ({ agentDir }: Place): Promise<unknown> =>
  until(async () => (await readIfThere(join(agentDir, "mcp-threads.log.break"))) === "" || undefined);

describe("a connection worker that breaks", () => {
  /** One session: each test breaks the worker that followed the one of the test before. */
  const session = forRows(startBreakable);
  /** The session with all its servers connected, and their processes. */
  async function connected(): Promise<{ at: Started; before: number[] }> {
    const at = await session();
    const pids = async (): Promise<number[]> =>
      (await at.runtime.ask("status", {})).servers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
    if ((await pids()).length < 4) await at.runtime.ask("reconnect", { server: "stubborn" });
    const before = await pids();
    expect(before).toHaveLength(4);
    return { at, before };
  }

  it.each<[Way, RegExp]>([
    ["crash", /broken by a test/],
    ["exit", /exit code 7/],
    ["hang", /did not answer for 5 s/],
    ["oom", /memory/i],
  ])(
    "%s -> open calls fail with a remedy, its servers are gone, requests meanwhile wait for the next worker",
    async (way, reason) => {
      const { at, before } = await connected();
      const crashes = at.crashes.length;
      const open = Array.from({ length: 5 }, () => at.failedCall("stubborn", "work"));
      await tellWorker(at, way);
      for (const error of await Promise.all(open)) {
        expect(error.code).toBe("runtime_restarted");
        expect(error.remedy).toMatch(/repeat it only if that does no harm/);
        expect(error.data?.exitCode).toBeTypeOf("number");
      }
      await at.crash(crashes + 1);
      const since = at.events.length;
      // No worker runs now.
      const [lazy, eager, status, settled] = await Promise.all([
        at.call("lazy", "work"),
        at.call("eager", "work"),
        at.runtime.ask("status", {}),
        at.runtime.settleTools({ timeoutMs: 40_000 }, undefined),
      ]);
      expect([textOf(lazy), textOf(eager)]).toEqual(["through the noise", "through the noise"]);
      expect(status.servers).toHaveLength(4);
      expect(settled).toEqual([]);
      expect(await waitGone(before)).toEqual([]);

      for (const name of ["eager", "alive"]) await at.event("server", inState(name, "connected"), since);
      const running = (await processesWithMarker(at.agentDir)).map(({ pid }) => pid);
      const { servers } = await at.runtime.ask("status", {});
      expect(servers.map(({ name, state }) => [name, state])).toEqual([
        ["lazy", "connected"],
        ["eager", "connected"],
        ["alive", "connected"],
        ["stubborn", "idle"],
      ]);
      expect(running.sort()).toEqual(servers.flatMap(({ pid }) => (pid === undefined ? [] : [pid])).sort());
      expect(at.crashes.slice(crashes)).toEqual([{ reason: expect.stringMatching(reason), givenUp: false }]);
    },
  );

  // No test after this one can use the session.
  test("stopped in the pause after a crash -> settles, no process is left", async () => {
    const { at } = await connected();
    const crashes = at.crashes.length;
    await tellWorker(at, "crash");
    await at.crash(crashes + 1);
    await at.runtime.stop();
    expect(await waitGone(spawnedPids(at))).toEqual([]);
  });

  test("more often than allowed in a minute -> not started again; each request fails and says how to continue", {
    tags: "thorough",
  }, async () => {
    const allowed = sized(2, LIMITS.respawnsAMinute);
    const limits = { respawnMs: [10], respawnsAMinute: allowed };
    // Without a server: one that connects or talks may be blamed for a crash, which then does not count.
    const at = await start({}, { workerUrl: breakable, limits });
    for (let count = 1; count <= allowed + 1; count++) {
      await tellWorker(at, "crash");
      expect(await at.crash(count)).toMatchObject({ givenUp: count > allowed });
      if (count <= allowed) expect((await at.runtime.ask("status", {})).servers).toEqual([]);
    }
    const error = await at.failedCall("s", "show");
    expect(error).toMatchObject({ code: "runtime_stopped", remedy: expect.stringContaining("/reload") });
    const words = `crashed ${allowed + 1} times within a minute \\(.*broken by a test`;
    expect(error.message).toMatch(new RegExp(words));
    await expect(at.runtime.ask("status", {})).rejects.toMatchObject({ code: "runtime_stopped" });
  });

  test("while servers connect -> no process of the first worker is left, the next worker connects all", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    const names = Array.from({ length: sized(5, 10) }, (_, i) => `s${i}`);
    const servers = Object.fromEntries(names.map((name) => [name, fixture("ignores-end.mjs")]));
    const starting = start(servers, { place, workerUrl: breakable });
    await tellWorker(place, "crash");
    const at = await starting;
    await at.crash(1);
    const pending = await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    expect(pending).toEqual([]);
    const { servers: statuses } = await at.runtime.ask("status", {});
    expect(statuses.map(({ state }) => state)).toEqual(names.map(() => "connected"));
    const pids = statuses.map(({ pid }) => pid).sort();
    await until(async () => (await processesWithMarker(place.agentDir)).length <= names.length || undefined);
    expect((await processesWithMarker(place.agentDir)).map(({ pid }) => pid).sort()).toEqual(pids);
  });

  test("stopped while the worker is in a loop without an end -> settles, no process is left", async () => {
    const { at, open } = await startStubborn();
    // A wait looks like a loop to everyone outside of the thread, and costs no processor time.
    await tellWorker(at, sized<Way>("hang", "loop"));
    await hasSeen(at);
    await at.runtime.stop();
    expect((await open).code).toMatch(/^(runtime_stopped|runtime_restarted)$/);
    expect(await waitGone(spawnedPids(at))).toEqual([]);
  });

  test.skipIf(process.platform === "win32")(
    "stopped while the worker is in native code, which cannot be interrupted -> settles, no process is left",
    { tags: "thorough" },
    async () => {
      const { at, open } = await startStubborn();
      const fifo = join(at.agentDir, "mcp-threads.log.fifo");
      execFileSync("mkfifo", [fifo]);
      await tellWorker(at, "stuck");
      await hasSeen(at);
      await at.runtime.stop();
      expect(await open).toMatchObject({ code: "runtime_stopped" });
      expect(await waitGone(spawnedPids(at))).toEqual([]);
      // The thread is still in native code; this write lets it continue and end.
      closeSync(openSync(fifo, "w"));
      expect(at.crashes).toEqual([]);
    },
  );
});

describe("a server whose message ends the worker", () => {
  const say =
    (name: string, state: ServerState) =>
    ({ status }: { status: ServerStatus }): boolean =>
      status.name === name && status.state === state && status.error?.code === "server_died";

  /** The first worker has ended because of `bad`. The next one connects `good` only, and says why `bad` is held back. */
  async function expectHeldBack(at: Started, reason: RegExp): Promise<void> {
    expect(await at.crash(1)).toEqual({ reason: expect.any(String), givenUp: false, heldBack: ["bad"] });
    const { status } = await at.event("server", say("bad", "failed"));
    expect(status.error?.message).toMatch(
      /^bad: the connection worker ended while it handled a message of this server .*The server is no longer connected by itself\.$/,
    );
    expect(status.error?.message).toMatch(reason);
    expect(status.error?.remedy).toBe("A call of one of its tools or /mcp reconnect bad connects it.");
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
    at.runtime.post("turnEnded", {});
    expect(await at.settled("bad")).toMatchObject({ state: "failed" });
    expect(at.crashes).toHaveLength(1);
  }

  // Whom main suspects, and that no lifecycle connects a server that is held back, is proven by unit tests.
  it.each(
    family<[string, Record<string, unknown>, RegExp]>([
      ["hangs", { lifecycle: "eager", env: { WAY: "hang" } }, /\(it did not answer for 5 s\)/],
      ["exits", { lifecycle: "keep-alive" }, /\(exit code 9\)/],
      ["exits", {}, /\(exit code 9\)/],
      ["runs out of memory", { lifecycle: "eager", env: { WAY: "oom" } }, /\(.*(memory|5 s)/],
    ]),
  )(
    "the worker %s, %j -> the next worker connects the other servers only, and names the held-back one",
    async (_name, { env, ...more }, reason) => {
      const bad = fixture("breaks-worker.mjs", env as Record<string, string> | undefined, more);
      const good = fixture("noisy.mjs", {}, { lifecycle: "eager" });
      await expectHeldBack(await start({ bad, good }, { workerUrl: breaksOnMessage }), reason);
    },
  );

  test("over HTTP -> held back too", async () => {
    const server = await serve((asked, response) => {
      if (asked.message.method !== "tools/list") return answerWell(asked, response);
      const tools = [{ name: "work", description: "break-the-worker:exit" }];
      const message = { jsonrpc: "2.0", id: asked.message.id, result: { tools } };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
    });
    const at = await start({ bad: { url: server.url, lifecycle: "eager" } }, { workerUrl: breaksOnMessage });
    expect(await at.crash(1)).toMatchObject({ heldBack: ["bad"] });
    await at.event("server", say("bad", "failed"));
    expect(server.log.filter((line) => line === "POST tools/list")).toHaveLength(1);
  });

  test("the worker exits, held back, the user reconnects the server -> connected, ends the worker, held back again", async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "record");
    const starts = async (): Promise<number> => (await readIfThere(RECORD)).split("\n").length - 1;
    const bad = fixture("breaks-worker.mjs", { RECORD }, { lifecycle: "eager" });
    const good = fixture("noisy.mjs", {}, { lifecycle: "eager" });
    const at = await start({ bad, good }, { place, workerUrl: breaksOnMessage });
    await expectHeldBack(at, /\(exit code 9\)/);
    expect(await starts()).toBe(1);
    const since = at.events.length;
    await expect(at.runtime.ask("reconnect", { server: "bad" })).rejects.toMatchObject({
      code: "runtime_restarted",
    });
    expect(await at.crash(2)).toMatchObject({ heldBack: ["bad"], givenUp: false });
    await at.event("server", say("bad", "failed"), since);
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(await starts()).toBe(2);
  });

  test("a call breaks the worker, then the server's definition is edited -> the server is connected again", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    const bad = fixture("breaks-worker.mjs", { CALL: "1" }, { lifecycle: "eager" });
    const at = await start({ bad }, { place, workerUrl: breaksOnMessage });
    expect(await at.settled("bad")).toMatchObject({ state: "connected" });
    expect(await at.failedCall("bad", "work")).toMatchObject({ code: "runtime_restarted" });
    await at.event("server", say("bad", "failed"));
    const since = at.events.length;
    await configure(place, { bad: { ...bad, args: [...(bad.args as string[]), "edited"] } });
    await at.event("server", inState("bad", "connected"), since);
    expect(at.crashes).toHaveLength(1);
  });
});

describe("the packed workers (built)", () => {
  /** Copies the packed workers, so that a test can break and delete them. `code`: an own folder for code. */
  async function copyOfWorkers(place: Place): Promise<{ folder: string; code: string; workerUrl: URL }> {
    const folder = join(place.cwd, "..", "package");
    const code = join(place.agentDir, "mcp-code");
    await rm(code);
    await mkdir(code, { mode: 0o700 });
    await cp(join(import.meta.dirname, "../../dist/workers"), folder, { recursive: true });
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    // The copy runs the real worker and ends the thread once the trigger file exists.
    await rename(join(folder, "connection.js"), join(folder, "real.js"));
    const trigger = JSON.stringify(join(place.agentDir, "mcp-threads.log.break"));
    const lines = [
      'import { existsSync, rmSync } from "node:fs";',
      'import "./real.js";',
      `setInterval(() => { if (existsSync(${trigger})) { rmSync(${trigger}); process.exit(9); } }, 20);`,
    ];
    await writeFile(join(folder, "connection.js"), lines.join("\n"));
    return { folder, code, workerUrl: pathToFileURL(join(folder, "connection.js")) };
  }

  test("deleted during the session, then code is needed that was not loaded, then the worker ends -> restarts each time, has the code", async () => {
    const place = await createPlace();
    const { folder, code, workerUrl } = await copyOfWorkers(place);
    const at = await start({ s: fixture("noisy.mjs") }, { place, workerUrl });
    await at.settled("s");
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    await rm(folder, { recursive: true });
    await expect(at.runtime.ask("diagnose", {})).rejects.toMatchObject({ code: "runtime_restarted" });
    expect(await at.crash(1)).toEqual({ reason: "exit code 1", givenUp: false });
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    expect(await at.runtime.ask("diagnose", {})).toMatchObject({ servers: [{ name: "s" }] });
    await tellWorker(place, "exit");
    expect(await at.crash(2)).toEqual({ reason: "exit code 9", givenUp: false });
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    await at.runtime.stop();
    expect(await at.log()).toContain("a file of pi-mcp-threads is gone, as after an update");
    // Node's own compile cache is also in this folder.
    expect((await readdir(code)).filter((name) => name.startsWith("pi-mcp-threads"))).toHaveLength(1);
  });

  test.each<[string, (folder: string) => Promise<void>]>([
    ["deleted", (folder) => rm(join(folder, "heavy.js"))],
    [
      "replaced by that of another version, whose other files have other names",
      async (folder) => {
        await writeFile(join(folder, "heavy.js"), "throw new Error('another version')");
        await rm(join(folder, "worker.js"));
      },
    ],
    ["deleted with the whole package", (folder) => rm(folder, { recursive: true })],
  ])(
    "the file of the thread for long messages is %s -> kept files read them, no worker ends, an open call is answered",
    { tags: "thorough" },
    async (_name, change) => {
      const place = await createPlace();
      const { folder, code, workerUrl } = await copyOfWorkers(place);
      const servers = { s: fixture("big-line.mjs"), other: fixture("waits.mjs") };
      const at = await start(servers, { place, workerUrl });
      for (const name of ["s", "other"]) await at.settled(name);
      // The last task of the cache worker: it needs no file that goes now.
      await until(async () => readCatalog(place.agentDir, { cwd: place.cwd }).count === 2 || undefined);
      const received = async (): Promise<string> =>
        textOf(await at.call("s", "work", { bytes: 1024 * 1024 }));
      await change(folder);
      const go = { file: join(place.cwd, "go") };
      const open = at.call("other", "work", go);
      // Main can write no copy: this message fails alone.
      await chmod(code, 0o777);
      vi.stubEnv("TMPDIR", join(place.cwd, "gone"));
      try {
        await expect(received()).rejects.toMatchObject({ code: "message_too_large" });
      } finally {
        vi.unstubAllEnvs();
      }
      await chmod(code, 0o700);
      for (const text of await Promise.all([received(), received()])) expect(text).toMatch(/^xx/);
      await writeFile(go.file, "");
      expect(textOf(await open)).toBe(JSON.stringify(go));
      expect(at.crashes).toEqual([]);
      await at.runtime.stop();
      expect((await readdir(code)).filter((name) => name.startsWith("pi-mcp-threads"))).toHaveLength(1);
    },
  );

  /**
   * Adds a server after the change, whose tools the cache worker has to index, until it is `enough`: its thread ends soon after
   * its last task, and the next one is loaded from its files.
   */
  async function addServers(
    change: (folder: string) => Promise<unknown>,
    enough: (at: Started, added: number) => boolean,
  ): Promise<Started> {
    const place = await createPlace();
    const { folder, workerUrl } = await copyOfWorkers(place);
    const servers: Record<string, ReturnType<typeof fixture>> = {
      s: fixture("noisy.mjs", {}, { lifecycle: "eager" }),
    };
    // On a busy machine a start takes longer than a hang may.
    const limits = { heartbeatMs: 60_000 };
    const at = await start({ ...servers }, { place, workerUrl, limits });
    await at.settled("s");
    await at.event("catalog");
    await change(folder);
    for (let added = 1; !enough(at, added); added++) {
      servers[`s${added}`] = fixture("noisy.mjs", { ADDED: String(added) }, { lifecycle: "eager" });
      await configure(place, servers);
      const name = `s${added}__work`;
      await until(async () => newestCatalog(at).tools.some((tool) => tool.name === name) || undefined);
      await sleep(1_500);
    }
    return at;
  }

  test("the cache worker's file is replaced by that of another version -> its own makes each index, no worker ends", {
    tags: "thorough",
  }, async () => {
    const another = (folder: string) => writeFile(join(folder, "cache.js"), "throw new Error('another')");
    const at = await addServers(another, (_at, added) => added > 2);
    expect(at.crashes).toEqual([]);
    await at.runtime.stop();
    expect(await at.log()).not.toContain("cache worker failed");
  });

  test.each(
    family<[string, (folder: string) => Promise<unknown>]>([
      ["the file of its thread", (folder) => rm(join(folder, "worker.js"))],
      ["the whole package", (folder) => rm(folder, { recursive: true })],
    ]),
  )("the cache worker needs what is gone, %s -> another worker makes the index", async (_what, change) => {
    const at = await addServers(change, ({ crashes }) => crashes.length > 0);
    expect(at.crashes).toMatchObject([{ reason: "exit code 1", givenUp: false }]);
  });

  test("an edit needs code that an update has taken away -> another worker applies it", async () => {
    const place = await createPlace();
    const { folder, workerUrl } = await copyOfWorkers(place);
    const server = fixture("noisy.mjs", {}, { lifecycle: "eager" });
    const limits = { heartbeatMs: 60_000 };
    const at = await start({ stays: server, goes: fixture("noisy.mjs") }, { place, workerUrl, limits });
    await at.settled("stays");
    const hashed = (await readdir(folder)).filter((name) => /-[A-Z0-9]{8}\.js$/.test(name));
    for (const name of hashed) await rename(join(folder, name), join(folder, `next-${name}`));
    // Packages of Pi may bring servers: what reads them is loaded when there are some.
    await writeFile(join(place.agentDir, "settings.json"), '{"packages":["npm:some-package"]}');
    await configure(place, { stays: server });
    expect(await at.crash(1)).toEqual({ reason: "exit code 1", givenUp: false });
    const { servers } = await at.runtime.ask("status", {});
    expect(servers.map(({ name }) => name)).toEqual(["stays"]);
  });

  test("the cache worker cannot start -> servers connect, calls work, the log has the failure", async () => {
    const place = await createPlace();
    const { folder, workerUrl } = await copyOfWorkers(place);
    await rm(join(folder, "cache.js"));
    const at = await start({ s: fixture("noisy.mjs") }, { place, workerUrl });
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    expect((await at.runtime.ask("status", {})).servers).toMatchObject([{ name: "s", state: "connected" }]);
    await at.runtime.stop();
    expect(await at.log()).toMatch(/cache worker failed: .*cache\.js/);
    expect(await readFile(join(place.agentDir, "mcp.json"), "utf8")).toContain("noisy.mjs");
  });
});
