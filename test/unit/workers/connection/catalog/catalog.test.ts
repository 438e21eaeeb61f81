/** Owns: what is published, what is stored, and that neither waits for the other; which settings reach main. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../../src/shared/protocol/session.ts";
import type { CacheWorker, PublishLimits } from "../../../../../workers/connection/catalog/cache-worker.ts";
import { type CatalogOptions, CatalogPublisher } from "../../../../../workers/connection/catalog/catalog.ts";
import { catalogSettings, publishTask } from "../../../../../workers/connection/catalog/publish.ts";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../../../workers/connection/config/entry/settings.ts";
import type { Server } from "../../../../../workers/connection/servers/server.ts";
import type { CachedTool } from "../../../../../workers/shared/listed.ts";
import type { KeepTask, PublishResult, PublishTask, StoreTask } from "../../../../../workers/shared/tasks.ts";
import { recordingLog } from "../../recording-log.ts";

const NO_FILES: readonly string[] = [];

/** A server with only those members that the catalog reads. */
function server(name: string, entry: object = {}, tools: CachedTool[] = [{ name: "t" }]): Server {
  const { definition } = parseEntry(name, { command: "c", ...entry }, { file: "/m.json", origin: "user" });
  const lists = {
    tools,
    get held() {
      return this.tools;
    },
  };
  return Object.assign(lists, { name, instructions: "Use it.", definition }) as unknown as Server;
}

interface SetupOptions {
  used?: Record<string, string>;
  keep?: () => Promise<unknown>;
  knownChecksum?: number;
  /** The stored snapshot was made of the same things. */
  isStored?: boolean;
  /** Runs while a publication is made; answers special members of its result, or undefined if it fails. */
  publish?: (limits: PublishLimits, count: number) => Promise<Partial<PublishResult> | undefined>;
}

function setup(
  store: (task: StoreTask) => Promise<boolean>,
  {
    used = {},
    keep = async () => undefined,
    knownChecksum,
    isStored = false,
    publish = async () => ({}),
  }: SetupOptions = {},
) {
  const stored: StoreTask[] = [];
  const kept: KeepTask[] = [];
  const published: PublishTask[] = [];
  const events: WorkerEvent[] = [];
  const { log, lines } = recordingLog();
  const servers = [server("a"), server("b")] as const;
  const configured: Server[] = [...servers];
  const cache: CacheWorker = {
    warm: () => undefined,
    hashDefinitions: async () => [],
    readCache: async () => ({ entries: {}, used: {} }),
    storeEntries: (task) => {
      stored.push(task);
      return store(task);
    },
    publish: async (task, limits) => {
      published.push(task);
      const special = await publish(limits, published.length);
      return (
        special && {
          checksum: isStored ? (task.stored?.checksum ?? 0) : published.length,
          ...(isStored ? {} : { snapshot: new Uint8Array(1) }),
          problems: [],
          notices: [],
          repairs: [],
          threadId: 1,
          ...special,
        }
      );
    },
    keepSnapshot: async (task) => {
      await keep();
      kept.push(task);
    },
    close: async () => undefined,
  };
  const options: CatalogOptions = {
    cachePath: "/cache",
    snapshotPath: () => "/snapshot",
    knownChecksum,
    servers: () => configured,
    hashOf: (name) => `hash of ${name}`,
    settings: () => DEFAULT_SETTINGS,
    configFiles: () => NO_FILES,
    cache,
    log,
    emit: (event) => events.push(event),
    times: { wholeMs: 1_000, aloneMs: 1_000, slowMs: 1_000, finishMs: 50 },
  };
  const catalog = new CatalogPublisher(options);
  catalog.noteUsed(used);
  const publishNow = async (of?: Server): Promise<void> => {
    catalog.changed(of);
    await catalog.flush();
  };
  return { publishNow, catalog, servers, configured, stored, kept, published, events, lines };
}

/** Changes the server as if it had listed these tools or had been given this definition. */
const change = (of: Server, what: Partial<Pick<Server, "tools" | "definition">>): Server =>
  Object.assign(of, what);

const names = (task: StoreTask | undefined): string[] => Object.keys(task?.entries ?? {});

describe("CatalogPublisher", () => {
  test("servers that listed their tools -> one snapshot, one task with their entries", async () => {
    const { catalog, servers, stored, published, events } = setup(async () => true);
    for (const one of servers) catalog.changed(one);
    await catalog.flush();
    expect([published.length, events.length]).toEqual([1, 1]);
    await catalog.finish();
    const entry = {
      tools: [{ name: "t" }],
      instructions: "Use it.",
      signs: true,
      cachedAt: expect.any(Number),
    };
    expect(stored).toEqual([
      {
        path: "/cache",
        entries: {
          a: { ...entry, configHash: "hash of a" },
          b: { ...entry, configHash: "hash of b" },
        },
        used: {},
      },
    ]);
  });

  test("nothing listed -> nothing stored; entries in use -> their use is written down once", async () => {
    const idle = setup(async () => true);
    await idle.publishNow();
    await idle.catalog.finish();
    expect(idle.stored).toEqual([]);

    const { publishNow, catalog, stored } = setup(async () => true, { used: { a: "h" } });
    for (let i = 0; i < 2; i++) {
      await publishNow();
    }
    await catalog.finish();
    expect(stored).toEqual([{ path: "/cache", entries: {}, used: { a: "h" } }]);
  });

  test("a change that main would not see -> not published again; a new list, a hidden tool, a description -> published", async () => {
    const { publishNow, servers, published } = setup(async () => true);
    const [one] = servers;
    const publications = async (what: Parameters<typeof change>[1]): Promise<number> => {
      change(one, what);
      const before = published.length;
      await publishNow();
      return published.length - before;
    };
    const { definition } = one;
    expect(await publications({})).toBe(1);
    expect(await publications({})).toBe(0);
    expect(await publications({ definition: { ...definition, requestTimeoutMs: 1 } })).toBe(0);
    expect(await publications({ tools: [{ name: "t", description: "other" }] })).toBe(1);
    expect(await publications({ definition: { ...definition, excludeTools: ["t"] } })).toBe(1);
    expect(await publications({ definition: { ...definition, description: "other" } })).toBe(1);
    expect(await publications({ definition: { ...definition, description: "other" } })).toBe(0);
  });

  test("a store that waits for a lock -> the snapshots go out, the next store waits, the end waits for both", async () => {
    const { promise: unlocked, resolve: unlock } = Promise.withResolvers<boolean>();
    const { publishNow, catalog, servers, stored, events } = setup(() => unlocked);
    for (const one of servers) {
      await publishNow(change(one, { tools: [{ name: "new" }] }));
    }
    expect(events).toHaveLength(2);
    expect(stored.map(names)).toEqual([["a"]]);
    let finished = false;
    const end = catalog.finish().then(() => {
      finished = true;
    });
    await new Promise(setImmediate);
    expect(finished).toBe(false);
    unlock(true);
    await end;
    expect(stored.map(names)).toEqual([["a"], ["b"]]);
  });

  test("a store that waits takes along what a server lists meanwhile -> the end publishes that all the same", async () => {
    const { promise: unlocked, resolve: unlock } = Promise.withResolvers<boolean>();
    const { publishNow, catalog, servers, stored, published } = setup(() => unlocked);
    const [a, b] = servers;
    await publishNow(change(a, { tools: [{ name: "first" }] }));
    // Its store waits for the one before.
    await publishNow(change(b, { tools: [{ name: "first" }] }));
    catalog.changed(change(a, { tools: [{ name: "last" }] }));
    unlock(true);
    await expect.poll(() => stored.length).toBe(2);
    await catalog.finish();
    expect(names(stored[1])).toEqual(["b", "a"]);
    expect(published.at(-1)?.servers[0]?.tools).toMatchObject([{ name: "last" }]);
  });

  test("a disk that is slow -> the snapshots go out; the end waits for their files, in their order", async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>();
    const { publishNow, catalog, servers, kept, events } = setup(async () => true, { keep: () => written });
    for (const one of servers) {
      await publishNow(change(one, { tools: [{ name: "new" }] }));
    }
    expect([events.length, kept.length]).toEqual([2, 0]);
    const end = catalog.finish();
    write();
    await end;
    const snapshot = new Uint8Array(1);
    expect(kept).toEqual([
      { path: "/snapshot", snapshot, isNew: true },
      { path: "/snapshot", snapshot, isNew: true },
    ]);
  });

  test("a snapshot that main has already -> not sent; its file is kept", async () => {
    const { publishNow, catalog, kept, events } = setup(async () => true, { knownChecksum: 1 });
    await publishNow();
    await catalog.finish();
    expect(events).toEqual([]);
    expect(kept).toEqual([{ path: "/snapshot", snapshot: new Uint8Array(1), isNew: false }]);
  });

  test("the stored snapshot was made of the same -> nothing sent or reported; its use is noted", async () => {
    const { publishNow, catalog, kept, published, events } = setup(async () => true, {
      knownChecksum: 7,
      isStored: true,
    });
    await publishNow();
    expect(published[0]?.stored).toEqual({ path: "/snapshot", checksum: 7 });
    expect([catalog.checksum, events]).toEqual([7, []]);
    await catalog.finish();
    expect(kept).toEqual([{ path: "/snapshot", isNew: false }]);
  });

  test("a store that failed -> its entries are stored with the next change", async () => {
    let attempts = 0;
    const { publishNow, catalog, servers, stored } = setup(async () => ++attempts > 1);
    for (const one of servers) {
      await publishNow(one);
      await new Promise(setImmediate);
    }
    await catalog.finish();
    expect(stored.map((task) => names(task).sort())).toEqual([["a"], ["a", "b"]]);
  });

  test("a server removed -> its removal is sent at once, then the snapshot without it", async () => {
    const { publishNow, catalog, configured, published, events } = setup(async () => true);
    expect(catalog.withdraw()).toBe(false);
    await publishNow();
    configured.shift();
    expect(catalog.withdraw()).toBe(true);
    expect(events.slice(1)).toEqual([{ type: "removed", servers: ["a"], tools: [] }]);
    // Main has less than every snapshot so far, so an unchanged catalog must be sent, too.
    expect(catalog.withdraw()).toBe(false);
    configured.unshift(server("a"));
    await publishNow();
    expect(published.map(({ stored }) => stored)).toEqual([undefined, undefined]);
    expect(events.slice(2).map(({ type }) => type)).toEqual(["catalog"]);
  });

  test("a change that main would not see -> main is up to date; a tool excluded -> its removal is sent", async () => {
    const { publishNow, catalog, servers, events } = setup(async () => true);
    await publishNow();
    const [one] = servers;
    change(one, { definition: { ...one.definition, requestTimeoutMs: 1 } });
    expect(catalog.withdraw()).toBe(true);
    expect(events).toHaveLength(1);
    change(one, { definition: { ...one.definition, excludeTools: ["t"] } });
    expect(catalog.withdraw()).toBe(true);
    expect(events.slice(1)).toEqual([{ type: "removed", servers: [], tools: [{ server: "a", tool: "t" }] }]);
  });

  test("a publication that runs would bring a removed server back -> the removal is not sent before it", async () => {
    const { publishNow, catalog, configured, events } = setup(async () => true);
    await publishNow();
    change(configured[1] as Server, { tools: [{ name: "new" }] });
    catalog.changed();
    const flushed = catalog.flush();
    configured.shift();
    expect(catalog.withdraw()).toBe(false);
    await flushed;
    expect(events.map(({ type }) => type)).toEqual(["catalog", "catalog"]);
  });

  test("a server removed while another is new -> the removal is not sent alone", async () => {
    const { publishNow, catalog, configured } = setup(async () => true);
    await publishNow();
    configured.splice(0, 1, server("c"));
    expect(catalog.withdraw()).toBe(false);
  });

  test("a server that changes its tools during each publication -> flush waits for the earlier changes only", async () => {
    const { publishNow, catalog, servers, published } = setup(async () => true, {
      publish: async () => {
        catalog.changed(change(servers[0], { tools: [{ name: `t${published.length}` }] }));
        // Long enough for the next publication to be requested meanwhile.
        await sleep(2 * LIMITS.catalogDebounceMs);
        return {};
      },
    });
    await publishNow();
    expect(published.length).toBeLessThan(3);
    await catalog.finish();
  });

  test("a publication that does not end -> given up at the end of the session", async () => {
    const { catalog, servers, stored, published } = setup(async () => true, {
      publish: ({ signal }) =>
        new Promise((resolve) => signal?.addEventListener("abort", () => resolve(undefined), { once: true })),
    });
    catalog.changed(servers[0]);
    await sleep(2 * LIMITS.catalogDebounceMs);
    await catalog.finish();
    expect([published.length, stored.length]).toEqual([1, 1]);
  });

  test("a server with new name conflicts each time -> three notices, then one that points to the log", async () => {
    const { publishNow, servers, events, lines } = setup(async () => true, {
      publish: async (_limits, count) => ({
        notices: [{ server: "a", text: `names that are taken: t${count}` }],
        repairs: [{ server: "b", text: `schemas repaired: t${count}` }],
      }),
    });
    for (let i = 0; i < 8; i++) {
      await publishNow(change(servers[0], { tools: [{ name: `t${i}` }] }));
    }
    const texts = events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
    expect(texts).toEqual([
      ...[1, 2, 3].map((count) => `MCP tools of a: names that are taken: t${count}`),
      "MCP server a: further notices about its tools are in the log",
    ]);
    expect(lines.filter((line) => line.includes("names that are taken"))).toHaveLength(8);
    expect(lines.filter((line) => line.startsWith("warn b: schemas repaired"))).toHaveLength(8);
  });
});

test.each<[Partial<Settings>, object]>([
  [{}, {}],
  [{ search: "weighted" }, { search: "weighted" }],
  [
    { catalog: "off", proxyTool: true },
    { catalog: "off", proxyTool: true },
  ],
  [{ autoAuth: true }, { autoAuth: true }],
  [{ idleTimeout: 5 }, {}],
])("catalogSettings(%j) -> the defaults with %j", (settings, own) => {
  expect(catalogSettings({ ...DEFAULT_SETTINGS, ...settings }, ["/a"])).toEqual({
    ...DEFAULT_CATALOG_SETTINGS,
    ...own,
    files: ["/a"],
  });
});

test.each<[object, true | undefined]>([
  [{ shared: true, lifecycle: "eager" }, true],
  [{ shared: true }, undefined],
  [{ lifecycle: "eager" }, undefined],
  [{ shared: true, lifecycle: "eager", enabled: false }, undefined],
])("a server with %j -> the snapshot says of a shared one that connects by itself: %s", (entry, shared) => {
  const { settings } = publishTask([server("a"), server("b", entry)], DEFAULT_SETTINGS, NO_FILES);
  expect(settings.shared).toBe(shared);
});
