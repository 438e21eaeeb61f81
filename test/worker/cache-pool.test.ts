/**
 * Owns: a real cache worker that one server's tools break. The tools of the other servers are published, a notice names
 * the faulty server, and tasks that ran beside the faulty one on the same thread still complete.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { catalogFrom } from "../../src/catalog/catalog.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../src/shared/protocol/session.ts";
import { type CacheWorker, createCacheWorker } from "../../workers/connection/catalog/cache-worker.ts";
import { CatalogPublisher } from "../../workers/connection/catalog/catalog.ts";
import { parseEntry } from "../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS } from "../../workers/connection/config/entry/settings.ts";
import type { Server } from "../../workers/connection/servers/server.ts";
import { LONG_TEST_MS } from "../support/patience.ts";
import { tempFolder } from "../unit/temp-folder.ts";
import { recordingLog } from "../unit/workers/recording-log.ts";
import { fixtures } from "./support.ts";

const FILE = join(fixtures, "workers", "breakable-cache.mjs");
/** The heap is small, so that it fills soon. The thread itself needs a part of it. */
const OPTIONS = { file: FILE, heapMebibytes: 96 };
/** A new thread starts for each attempt, so the limits leave time for a start on a busy machine. */
const TIMES = { wholeMs: 2_000, aloneMs: 4_000, slowMs: 40_000, finishMs: 5_000 };
const NO_FILES: readonly string[] = [];

const pools: CacheWorker[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

/** A server with only the properties that the catalog reads. */
function server(name: string, tool: string): Server {
  const { definition } = parseEntry(name, { command: "c" }, { file: "/m.json", origin: "user" });
  const lists = {
    tools: [{ name: tool }],
    get held() {
      return this.tools;
    },
  };
  return Object.assign(lists, { name, definition }) as unknown as Server;
}

function open(folder: string, servers: Server[], times = TIMES) {
  const { log, lines } = recordingLog();
  const pool = createCacheWorker(log, undefined, OPTIONS);
  pools.push(pool);
  const events: WorkerEvent[] = [];
  const publications: string[] = [];
  const cache: CacheWorker = {
    ...pool,
    publish: (...task) => {
      publications.push(JSON.stringify(task[0]));
      return pool.publish(...task);
    },
  };
  const catalog = new CatalogPublisher({
    cachePath: join(folder, "mcp-cache.json"),
    snapshotPath: () => join(folder, "snapshots", "x.bin"),
    knownChecksum: undefined,
    servers: () => servers,
    settings: () => DEFAULT_SETTINGS,
    configFiles: () => NO_FILES,
    hashOf: (name) => `hash of ${name}`,
    cache,
    log,
    emit: (event) => events.push(event),
    times,
  });
  return {
    catalog,
    pool,
    lines,
    publications: () => publications,
    notices: () => events.flatMap((event) => (event.type === "notice" ? [event.text] : [])),
    tools: () =>
      events
        .flatMap((event) => (event.type === "catalog" ? [catalogFrom(event.snapshot)] : []))
        .map((sent) => sent?.tools.map(({ name }) => name)),
  };
}

/** The publications that give the tools of the faulty server to the cache worker. */
const withHang = (publications: readonly string[]): string[] =>
  publications.filter((task) => task.includes('"name":"hang"'));

describe("a server whose tools break the cache worker", () => {
  /** Publishes the tools of two servers beside a third one whose tools break the worker. */
  async function publishBeside(way: string, reason: string) {
    const folder = await tempFolder();
    const servers = [server("good", "read"), server("bad", way), server("other", "write")];
    const first = open(folder, servers);
    for (const one of servers) first.catalog.changed(one);
    await first.catalog.flush();
    expect(first.tools()).toEqual([["good__read", "other__write"]]);
    expect(first.notices()).toEqual([
      expect.stringMatching(/^MCP server bad: its tools are left out, .*reconnect bad/),
    ]);
    expect(first.lines.join("\n")).toContain(reason);
    return { folder, servers, first };
  }

  test.each([
    ["oom", "memory"],
    ["exit", "worker exited with code: 7"],
    ["fail", "broken by a test"],
  ])(
    "%s -> the other servers are published, one notice names the faulty server",
    async (way, reason) => {
      await (await publishBeside(way, reason)).first.catalog.finish();
    },
    LONG_TEST_MS,
  );

  test(
    "hang -> the other servers are published, one notice names the faulty server, later publications do not wait for it",
    async () => {
      const { folder, servers, first } = await publishBeside("hang", "aborted due to timeout");
      const before = first.publications().length;
      Object.assign(servers[0] as Server, { tools: [{ name: "list" }] });
      first.catalog.changed(servers[0]);
      await first.catalog.flush();
      expect(first.tools().at(-1)).toEqual(["good__list", "other__write"]);
      // How many tasks that takes is a matter of time: a thread that starts slowly is given up, and each server tried alone.
      expect(withHang(first.publications().slice(0, before))).not.toEqual([]);
      expect(withHang(first.publications().slice(before))).toEqual([]);
      expect(first.notices()).toHaveLength(1);
      await first.catalog.finish();

      // The next start reads the stored files of the first one.
      const next = open(folder, servers);
      next.catalog.changed();
      await next.catalog.flush();
      expect(next.tools()).toEqual([["good__list", "other__write"]]);
      expect(withHang(next.publications())).toEqual([]);
      expect(next.notices()).toHaveLength(1);
      await next.catalog.finish();
    },
    LONG_TEST_MS,
  );

  test("the user retries the server after its tools were repaired -> published", async () => {
    const folder = await tempFolder();
    const servers = [server("good", "read"), server("bad", "fail")];
    const { catalog, tools } = open(folder, servers);
    catalog.changed();
    await catalog.flush();
    Object.assign(servers[1] as Server, { tools: [{ name: "works" }] });
    catalog.changed(servers[1]);
    await catalog.flush();
    expect(tools()).toEqual([["good__read"]]);
    catalog.retry("bad");
    await catalog.flush();
    expect(tools().at(-1)).toEqual(["good__read", "bad__works"]);
    await catalog.finish();
  });
});

/** Counts the threads that start from now on. */
function countThreads(): () => number {
  let threads = 0;
  const count = (): void => void threads++;
  process.on("worker", count);
  onTestFinished(() => void process.off("worker", count));
  return () => threads;
}

/** More than runs outside of the thread. */
const LARGE = "x".repeat(2 * 1024 * 1024);

test.each([
  ["small ones -> done here, without another thread", "", 1],
  ["a large one among them -> that one is done on the next thread", LARGE, 2],
])("tasks beside one that never ends, %s", async (_case, description, starts) => {
  const folder = await tempFolder();
  const { pool, lines } = open(folder, []);
  const threads = countThreads();
  const task = {
    servers: [{ name: "bad", project: false, toolsKnown: true, tools: [{ name: "hang", direct: false }] }],
    settings: DEFAULT_CATALOG_SETTINGS,
  };
  const publishing = pool.publish(task, { limitMs: 1_500 });
  const path = join(folder, "mcp-cache.json");
  const entryOf = (i: number) => ({
    configHash: "h",
    tools: [{ name: "t", ...(i === 0 ? { description } : {}) }],
    cachedAt: Date.now(),
  });
  const [published, ...stored] = await Promise.all([
    publishing,
    // Beside a publication the thread stores. These are more tasks than run at once, so some wait in line.
    ...Array.from({ length: 6 }, (_, i) =>
      pool.storeEntries({ path, entries: { [`s${i}`]: entryOf(i) }, used: {} }),
    ),
  ]);
  expect(published).toBeUndefined();
  expect(stored).toEqual([true, true, true, true, true, true]);
  expect(threads()).toBe(starts);
  const { servers } = JSON.parse(await readFile(path, "utf8")) as { servers: object };
  expect(Object.keys(servers).sort()).toEqual(["s0", "s1", "s2", "s3", "s4", "s5"]);
  expect(lines.filter((line) => line.startsWith("error"))).toHaveLength(1);
});

test("the session ends while a publication never does -> what was listed is stored all the same", async () => {
  const folder = await tempFolder();
  const bad = server("bad", "hang");
  const { catalog, publications } = open(folder, [bad], { ...TIMES, wholeMs: LONG_TEST_MS, finishMs: 1 });
  const threads = countThreads();
  catalog.changed(bad);
  void catalog.flush();
  await expect.poll(threads).toBe(1);
  await catalog.finish();
  const { servers } = JSON.parse(await readFile(join(folder, "mcp-cache.json"), "utf8")) as {
    servers: object;
  };
  expect([Object.keys(servers), publications().length, threads()]).toEqual([["bad"], 1, 1]);
});

test("the session ends while the thread is about to start -> no thread, and nothing to log", async () => {
  const { log, lines } = recordingLog();
  const threads = countThreads();
  const ended = createCacheWorker(log, undefined, OPTIONS);
  ended.warm();
  await ended.close();
  // Its thread would have started before this one.
  const next = createCacheWorker(log, undefined, OPTIONS);
  pools.push(next);
  next.warm();
  await expect.poll(threads).toBeGreaterThan(0);
  expect(threads()).toBe(1);
  expect(lines).toEqual([]);
});

test("a worker that cannot be loaded -> tasks give empty answers, and the pool closes", async () => {
  const { log, lines } = recordingLog();
  const pool = createCacheWorker(log, undefined, { file: join(fixtures, "workers", "nowhere.ts") });
  expect(await pool.hashDefinitions([{}])).toEqual([]);
  expect(
    await pool.publish({ servers: [], settings: DEFAULT_CATALOG_SETTINGS }, { limitMs: 20_000 }),
  ).toBeUndefined();
  expect(lines.length).toBeGreaterThan(0);
  await pool.close();
});
