/** Processes that wait for the lock of the cache file: one write serves them all, and none relies on it. */
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, test } from "vitest";
import { readEntry } from "../../../../../workers/cache/metadata/entry.ts";
import {
  type CacheContext,
  depositsOf,
  storeEntries,
} from "../../../../../workers/cache/metadata/metadata.ts";
import { type FileSystem, nodeFiles } from "../../../../../workers/shared/files/file-system.ts";
import { withLock } from "../../../../../workers/shared/files/lock.ts";
import type { StoreResult } from "../../../../../workers/shared/tasks.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { context, entry, failingFiles, NOW } from "../support.ts";

/** Long enough for any machine: only an event that must never happen would wait so long. */
const PATIENT = { waitMs: 50_000, beatMs: 1_000, silentMs: 45_000 };
const FILE = /mcp-cache\.json$/;
const OK: StoreResult = { stored: true, problems: [] };

interface Place {
  folder: string;
  path: string;
  waiting: string;
}

async function place(): Promise<Place> {
  const folder = await tempFolder();
  const path = join(folder, "mcp-cache.json");
  return { folder, path, waiting: depositsOf(path) };
}

const store = (path: string, name: string, rest: Partial<CacheContext> = {}): Promise<StoreResult> =>
  storeEntries(
    { path, entries: { [name]: entry(`hash of ${name}`, { signs: true, resourceTemplates: [] }) }, used: {} },
    context({ lockTimes: PATIENT, ...rest }),
  );

const namesIn = async (path: string): Promise<string[]> =>
  Object.keys((JSON.parse(await readFile(path, "utf8")) as { servers: object }).servers).sort();

/** Waits for so many whole deposits: a file is there before its content is. */
async function deposited(waiting: string, count: number): Promise<string[]> {
  for (;;) {
    const names = await readdir(waiting).catch(() => []);
    const texts = await Promise.all(
      names.map((name) => readFile(join(waiting, name), "utf8").catch(() => "")),
    );
    if (texts.filter((text) => text.endsWith("}")).length === count) return names;
    await sleep(2);
  }
}

/** Runs `task` while another owner, which looks at no deposits as one of an older version, has the lock. */
async function whileHeld(path: string, task: (release: () => void) => Promise<void>): Promise<void> {
  const released = new EventTarget();
  const release = (): boolean => released.dispatchEvent(new Event("now"));
  let working: Promise<void> = Promise.resolve();
  await withLock(path, { files: nodeFiles, times: PATIENT }, async () => {
    const end = once(released, "now");
    working = task(release);
    await end;
  });
  await working;
}

/** The disk, counting how often the cache file is replaced; `beforeRead` runs before a read of the file. */
function counting(beforeRead: (read: number) => Promise<void> = async () => {}): FileSystem & {
  replaced: number;
} {
  let reads = 0;
  const files = {
    ...nodeFiles,
    replaced: 0,
    find: async (path: string) => {
      if (FILE.test(path)) await beforeRead(++reads);
      return nodeFiles.find(path);
    },
    rename: async (from: string, to: string) => {
      await nodeFiles.rename(from, to);
      if (FILE.test(to)) files.replaced++;
    },
  };
  return files;
}

/** One who stores an entry, and stands with the lock until two others have made their deposits. */
async function threeAtOnce({ path, waiting }: Place, owner: FileSystem = nodeFiles, ownerLimit?: number) {
  const hasLock = Promise.withResolvers<void>();
  // The file is looked for before the lock, for its target, and with the lock.
  const files = counting(async (read) => {
    if (read !== 3) return;
    hasLock.resolve();
    await deposited(waiting, 2);
  });
  const slow: FileSystem = { ...owner, find: files.find };
  const first = store(path, "first", { files: slow, ...(ownerLimit ? { limitBytes: ownerLimit } : {}) });
  await hasLock.promise;
  const others = counting();
  const results = await Promise.all([
    first,
    ...["b", "c"].map((name) => store(path, name, { files: others })),
  ]);
  return { results, othersReplaced: others.replaced };
}

describe("the owner of the lock", () => {
  test("two others wait -> one write stores all three, and nothing is left", async () => {
    const at = await place();
    expect(await threeAtOnce(at)).toEqual({ results: [OK, OK, OK], othersReplaced: 0 });
    expect(await namesIn(at.path)).toEqual(["b", "c", "first"]);
    const { servers } = JSON.parse(await readFile(at.path, "utf8")) as { servers: Record<string, object> };
    for (const [name, stored] of Object.entries(servers))
      expect(readEntry(stored, `hash of ${name}`, NOW), name).toMatchObject({ signs: true });
    expect(await readdir(at.folder)).toEqual(["mcp-cache.json"]);
  });

  it.each<[string, FileSystem]>([
    ["cannot list the deposits", failingFiles("list", "EIO", /\.waiting$/)],
    ["cannot read them", failingFiles("readBytes", "EIO", /\.waiting\//)],
    ["cannot say that they are written", failingFiles("rename", "EIO", /\.done$/)],
  ])("%s -> the others store their own, all three are kept", async (_name, files) => {
    const at = await place();
    const { results } = await threeAtOnce(at, files);
    expect(results).toEqual([OK, OK, OK]);
    expect(await namesIn(at.path)).toEqual(["b", "c", "first"]);
    expect(await readdir(at.folder)).toEqual(["mcp-cache.json"]);
  });

  test("its disk is full -> it fails alone, the others store their own", async () => {
    const at = await place();
    const full = failingFiles("write", "ENOSPC", /\.mcp-cache\.json\.[0-9a-f]{12}\.tmp$/);
    const { results } = await threeAtOnce(at, full);
    expect(results).toEqual([{ stored: false, problems: [expect.stringContaining("ENOSPC")] }, OK, OK]);
    expect(await namesIn(at.path)).toEqual(["b", "c"]);
  });

  test("all together are larger than its limit -> it stores its own, the others theirs", async () => {
    const at = await place();
    const { results, othersReplaced } = await threeAtOnce(at, nodeFiles, 500);
    expect(results).toEqual([OK, OK, OK]);
    expect(othersReplaced).toBeGreaterThan(0);
    expect(await namesIn(at.path)).toEqual(["b", "c", "first"]);
  });
});

describe("one who waits", () => {
  test("the owner knows no deposits -> stores its own afterwards, and nothing is left", async () => {
    const { folder, path, waiting } = await place();
    await whileHeld(path, async (release) => {
      const storing = store(path, "a");
      await deposited(waiting, 1);
      release();
      expect(await storing).toEqual(OK);
    });
    expect(await namesIn(path)).toEqual(["a"]);
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  it.each<[string, ReturnType<typeof failingFiles>]>([
    ["cannot make its deposit", failingFiles("create", "ENOSPC", /\.waiting\//)],
    ["makes half of it", failingFiles("write", "ENOSPC", /\.waiting\//)],
    ["cannot look at it", failingFiles("list", "EACCES", /\.waiting$/)],
  ])("%s -> stores its own", async (_name, files) => {
    const { folder, path } = await place();
    await whileHeld(path, async (release) => {
      const storing = store(path, "a", { files });
      while (files.failures === 0) await sleep(2);
      release();
      expect(await storing).toEqual(OK);
    });
    expect(await namesIn(path)).toEqual(["a"]);
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  test("its deposit disappears without a word -> it is not written, so it stores its own", async () => {
    const { path, waiting } = await place();
    await whileHeld(path, async (release) => {
      const storing = store(path, "a");
      const [name = ""] = await deposited(waiting, 1);
      await nodeFiles.remove(join(waiting, name));
      release();
      expect(await storing).toEqual(OK);
    });
    expect(await namesIn(path)).toEqual(["a"]);
  });

  test("the lock is not free in time -> not stored, one line, and its deposit is gone", async () => {
    const { folder, path } = await place();
    await whileHeld(path, async (release) => {
      const impatient = { waitMs: 60, beatMs: 1_000, silentMs: 45_000 };
      const result = await store(path, "a", { lockTimes: impatient });
      expect(result).toEqual({ stored: false, problems: [expect.stringContaining(".mcp-cache.json.lock")] });
      release();
    });
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("deposits of killed processes and of others", () => {
  const valid = { version: 1, entries: { dead: entry("dead") }, used: {} };

  async function withDeposit(content: string): Promise<Place & { deposit: string }> {
    const at = await place();
    await mkdir(at.waiting);
    const deposit = join(at.waiting, "0123456789ab.json");
    await writeFile(deposit, content);
    return { ...at, deposit };
  }

  test("whole -> stored with the next write; what is left of it goes after an hour", async () => {
    const { folder, path, waiting, deposit } = await withDeposit(JSON.stringify(valid));
    expect(await store(path, "a")).toEqual(OK);
    expect(await namesIn(path)).toEqual(["a", "dead"]);
    const done = deposit.replace(/json$/, "done");
    expect(await readdir(waiting)).toEqual(["0123456789ab.done"]);
    const old = new Date(context().now() - 2 * 3_600_000);
    await utimes(done, old, old);
    expect(await store(path, "b")).toEqual(OK);
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  test("an older list of the server that is stored now -> the newer one stays", async () => {
    const entries = { a: entry("hash of a", { instructions: "old" }) };
    const { path } = await withDeposit(JSON.stringify({ ...valid, entries }));
    expect(await store(path, "a")).toEqual(OK);
    expect(await readFile(path, "utf8")).not.toContain("instructions");
  });

  it.each<[string, string]>([
    ["half", JSON.stringify(valid).slice(0, -9)],
    ["empty", ""],
    ["binary", "\u0000\u0001"],
    ["null", "null"],
    ["another version", JSON.stringify({ ...valid, version: 2 })],
    ["no entries", JSON.stringify({ version: 1, used: {} })],
    ["an entry that is none", JSON.stringify({ ...valid, entries: { x: entry("x"), dead: null } })],
    ["an entry without a hash", JSON.stringify({ ...valid, entries: { dead: { tools: [] } } })],
    [
      "tools that are none",
      JSON.stringify({ ...valid, entries: { dead: entry("x", { tools: [7] as never }) } }),
    ],
    ["an entry of last year", JSON.stringify({ ...valid, entries: { dead: entry("x", { cachedAt: 1 }) } })],
    ["a use that is none", JSON.stringify({ ...valid, used: { dead: {} } })],
    ["9 MiB", JSON.stringify({ ...valid, x: "x".repeat(9 * 2 ** 20) })],
  ])("%s -> left alone, the write goes on", async (_name, content) => {
    const { path, waiting } = await withDeposit(content);
    expect(await store(path, "a")).toEqual(OK);
    expect(await namesIn(path)).toEqual(["a"]);
    expect(await readdir(waiting)).toEqual(["0123456789ab.json"]);
  });

  test("a link to a device, a folder, a file in the folder's place -> left alone, the write goes on", async () => {
    const { path, waiting } = await withDeposit("{}");
    await symlink("/dev/zero", join(waiting, "1.json"));
    await mkdir(join(waiting, "2.json"));
    expect(await store(path, "a")).toEqual(OK);
    const other = await place();
    await writeFile(other.waiting, "");
    expect(await store(other.path, "a")).toEqual(OK);
  });

  test("sixty -> fifty are stored with the first write", async () => {
    const { path, waiting } = await withDeposit(JSON.stringify(valid));
    for (let index = 1; index < 60; index++) {
      const entries = { [`dead${index}`]: entry("dead") };
      await writeFile(join(waiting, `${index}.json`), JSON.stringify({ ...valid, entries }));
    }
    expect(await store(path, "a")).toEqual(OK);
    expect((await namesIn(path)).length).toBe(51);
  });
});
