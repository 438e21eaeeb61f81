/** Owns: what is kept of servers: their entries, which are left out and for how long, and the hash that each has. */
import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  DefinitionHashes,
  EntryStore,
  LeftOutServers,
  leftOutPath,
  type StoredServer,
  toEntry,
} from "../../../../../workers/connection/catalog/kept.ts";
import type { StoreTask } from "../../../../../workers/shared/tasks.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { definitionOf, settle } from "../servers/support.ts";

const server = (name: string, over: Partial<StoredServer> = {}): StoredServer => ({
  name,
  tools: [{ name: "t" }],
  resources: undefined,
  prompts: undefined,
  skills: undefined,
  instructions: undefined,
  protocol: undefined,
  listedAt: undefined,
  isUnattended: false,
  withLeftOut: undefined,
  ...over,
});

function openStore(answers: readonly boolean[] = [], hashes: Record<string, string> = {}) {
  const tasks: StoreTask[] = [];
  /** By name: an edit replaces a server. */
  const servers = new Map<string, StoredServer>();
  const results = [...answers];
  const storeEntries = async (task: StoreTask): Promise<boolean> => {
    tasks.push(task);
    return results.shift() ?? true;
  };
  const store = new EntryStore({ storeEntries }, "/cache", {
    hashOf: (name) => hashes[name] ?? `hash of ${name}`,
    servers: () => [...servers.values()],
  });
  /** The server is configured now, and lists its tools. */
  const list = (one: StoredServer): void => {
    servers.set(one.name, one);
    store.add(one);
  };
  const names = () => tasks.map(({ entries }) => Object.keys(entries));
  return { store, servers, hashes, list, tasks, names };
}

test.each<[string, Partial<StoredServer>, object]>([
  ["tools alone", {}, {}],
  [
    "what sessions with a person know, and it has left out",
    { withLeftOut: { tools: [{ name: "t" }, { name: "asks" }], cachedAt: 3 } },
    { tools: [{ name: "t" }, { name: "asks" }], cachedAt: 3 },
  ],
  ["what was listed a while ago", { listedAt: 2 }, { cachedAt: 2 }],
  ["no tools yet", { tools: undefined }, { tools: [] }],
  ["what was listed where nobody can be asked", { isUnattended: true }, { unattended: true }],
  [
    "resources",
    { resources: { resources: [{ name: "n", uri: "x://n" }], templates: [] } },
    { resources: [{ name: "n", uri: "x://n" }], resourceTemplates: [] },
  ],
  ["prompts", { prompts: [{ name: "p" }] }, { prompts: [{ name: "p" }] }],
  ["empty instructions", { instructions: "" }, { instructions: "" }],
])("toEntry: %s", (_case, over, entry) => {
  expect(toEntry(server("a", over), "h", 5)).toEqual({
    configHash: "h",
    tools: [{ name: "t" }],
    signs: true,
    cachedAt: 5,
    ...entry,
  });
});

describe("EntryStore", () => {
  test("nothing listed and nothing used -> no task", async () => {
    const { store, tasks } = openStore();
    store.store();
    await store.finish();
    expect(tasks).toEqual([]);
  });

  test("a server listed twice -> one entry, once", async () => {
    const { store, list, names } = openStore();
    const one = server("a");
    list(one);
    list(one);
    store.store();
    store.store();
    await store.finish();
    expect(names()).toEqual([["a"]]);
  });

  test("a task that fails -> its servers with the next one, and once more at the end", async () => {
    const { store, list, names } = openStore([false, false]);
    list(server("a"));
    store.store();
    store.store();
    await store.finish();
    expect(names()).toEqual([["a"], ["a"], ["a"]]);
  });

  test.each([
    ["has not listed yet", []],
    ["has listed meanwhile", [{ configHash: "B", tools: [{ name: "of B" }] }]],
  ])(
    "a task fails, and the server that an edit puts in the place %s -> nothing of the old program under the new definition",
    async (_when, stored) => {
      const { store, servers, hashes, list, tasks } = openStore([false], { a: "A" });
      list(server("a", { tools: [{ name: "of A" }] }));
      store.store();
      await settle();
      const other = server("a", { tools: [{ name: "of B" }] });
      servers.set("a", other);
      hashes.a = "B";
      if (stored.length > 0) list(other);
      store.store();
      await store.finish();
      expect(tasks.slice(1).map(({ entries }) => entries.a)).toMatchObject(stored);
    },
  );

  test("a server without a hash -> not stored", async () => {
    const { store, list, names } = openStore([], { a: "" });
    list(server("a"));
    list(server("b"));
    store.store();
    await store.finish();
    expect(names()).toEqual([["b"]]);
  });

  test("entries in use, noted twice -> written down once, together", async () => {
    const { store, tasks } = openStore();
    store.noteUsed({ a: "1" });
    store.noteUsed({ b: "2" });
    store.store();
    await store.finish();
    expect(tasks).toEqual([{ path: "/cache", entries: {}, used: { a: "1", b: "2" } }]);
  });
});

async function open(folder: string, hashes: Record<string, string> = { evil: "h1", good: "h2" }) {
  const path = leftOutPath(join(folder, "abc.bin"));
  const { log, lines } = recordingLog();
  const leftOut = new LeftOutServers(
    () => path,
    (name) => hashes[name] ?? "",
    log,
  );
  await leftOut.load();
  return { path, leftOut, lines, hashes };
}

const mark = (at: number, configHash = "h1") => ({ version: 1, servers: { evil: { configHash, at } } });

describe("LeftOutServers", () => {
  test("a server that was left out -> left out in the next session, too; the file is private", async () => {
    const folder = await tempFolder();
    const { leftOut, path } = await open(folder);
    expect(leftOut.has("evil")).toBe(false);
    leftOut.add("evil");
    await leftOut.saved();
    expect([leftOut.has("evil"), leftOut.has("good")]).toEqual([true, false]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const next = await open(folder);
    expect([next.leftOut.has("evil"), next.leftOut.has("good")]).toEqual([true, false]);
  });

  test("a day later in the same session -> tried again", async () => {
    const { leftOut } = await open(await tempFolder());
    leftOut.add("evil");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + LIMITS.leftOutMs - 60_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(leftOut.has("evil")).toBe(true);
    vi.setSystemTime(Date.now() + 120_000);
    expect(leftOut.has("evil")).toBe(false);
    leftOut.add("evil");
    // The clock, which was a week ahead, is set right.
    vi.setSystemTime(Date.now() - 7 * LIMITS.leftOutMs);
    expect(leftOut.has("evil")).toBe(false);
    await leftOut.saved();
  });

  test("another definition, or the user asks for it -> tried again", async () => {
    const folder = await tempFolder();
    const first = await open(folder);
    first.leftOut.add("evil");
    first.leftOut.add("good");
    first.hashes.evil = "h3";
    expect([first.leftOut.has("evil"), first.leftOut.has("good")]).toEqual([false, true]);
    expect([first.leftOut.forget("good"), first.leftOut.forget("good")]).toEqual([true, false]);
    expect(first.leftOut.has("good")).toBe(false);
    await first.leftOut.saved();
    expect((await open(folder)).leftOut.has("good")).toBe(false);
  });

  test("a definition whose hash is unknown -> remembered in this session only", async () => {
    const folder = await tempFolder();
    const { leftOut, path } = await open(folder, {});
    leftOut.add("evil");
    await leftOut.saved();
    expect(leftOut.has("evil")).toBe(true);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ version: 1, servers: {} });
  });

  test.each<[string, boolean, string]>([
    ["recent", true, JSON.stringify(mark(Date.now() - 1_000))],
    ["a day old", false, JSON.stringify(mark(Date.now() - LIMITS.leftOutMs))],
    ["from the future", false, JSON.stringify(mark(Date.now() + 2 * LIMITS.clockSkewMs))],
    ["of another definition", false, JSON.stringify(mark(Date.now(), "h9"))],
    ["of another version", false, JSON.stringify({ ...mark(Date.now()), version: 2 })],
    ["not JSON", false, "{"],
    ["not an object", false, "[]"],
    ["without a time", false, JSON.stringify({ version: 1, servers: { evil: { configHash: "h1" } } })],
    ["larger than any real one", false, JSON.stringify({ ...mark(Date.now()), more: "x".repeat(70_000) })],
  ])("a file that is %s -> left out: %s", async (_name, isLeftOut, text) => {
    const folder = await tempFolder();
    await writeFile(leftOutPath(join(folder, "abc.bin")), text);
    const { leftOut, lines } = await open(folder);
    expect([leftOut.has("evil"), lines]).toEqual([isLeftOut, []]);
  });

  test("a named pipe in the place of the file -> not waited for, each server is tried", async () => {
    const folder = await tempFolder();
    await promisify(execFile)("mkfifo", [leftOutPath(join(folder, "abc.bin"))]);
    const { leftOut } = await open(folder);
    expect(leftOut.has("evil")).toBe(false);
  });

  test("a file that cannot be written -> one line in the log, remembered all the same", async () => {
    const file = join(await tempFolder(), "file");
    await writeFile(file, "");
    const { leftOut, lines } = await open(file);
    leftOut.add("evil");
    await leftOut.saved();
    expect(leftOut.has("evil")).toBe(true);
    expect(lines).toEqual([expect.stringContaining("could not be written")]);
  });
});

test("no plan yet, or no such server -> empty; a failure of the cache worker -> empty", async () => {
  const hashes = new DefinitionHashes({ hashDefinitions: async () => [] }, "/cwd");
  expect(hashes.of("a")).toBe("");
  await hashes.update([definitionOf("a")]);
  expect(hashes.of("a")).toBe("");
});

test("each server -> the hash at its position; a server that left -> empty", async () => {
  const cache = { hashDefinitions: async (all: object[]) => all.map((_, i) => `hash ${i}`) };
  const hashes = new DefinitionHashes(cache, "/cwd");
  await hashes.update([definitionOf("a"), definitionOf("b")]);
  expect([hashes.of("a"), hashes.of("b")]).toEqual(["hash 0", "hash 1"]);
  await hashes.update([definitionOf("b")]);
  expect([hashes.of("a"), hashes.of("b")]).toEqual(["", "hash 0"]);
});

test("an older plan whose hashes come later -> the newest plan's hold", async () => {
  const answers = [Promise.withResolvers<string[]>(), Promise.withResolvers<string[]>()];
  const waiting = answers.map(({ promise }) => promise);
  const cache = { hashDefinitions: () => waiting.shift() ?? Promise.resolve([]) };
  const hashes = new DefinitionHashes(cache, "/cwd");
  const first = hashes.update([definitionOf("a")]);
  const second = hashes.update([definitionOf("a")]);
  answers[1]?.resolve(["new"]);
  await settle();
  answers[0]?.resolve(["old"]);
  await Promise.all([first, second]);
  expect(hashes.of("a")).toBe("new");
});
