/** Owns: the room that stored results take, and their removal after seven days. */

import { mkdir, open, readdir, readFile, stat, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { createResultStore, removeOldResults } from "../../../../../workers/connection/results/store.ts";
import { PATIENCE_MS } from "../../../../support/patience.ts";
import { tempFolder } from "./support.ts";

const DAY_S = 24 * 60 * 60;
const MIB = 1024 * 1024;
const PLENTY = async (): Promise<number> => 1024 * 1024 * MIB;

/** A stored file of this size, which takes no room on the disk, last written so many seconds ago. */
async function put(path: string, bytes: number, ageSeconds: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "");
  await truncate(path, bytes);
  const then = Date.now() / 1_000 - ageSeconds;
  await utimes(path, then, then);
}

interface Kept {
  root: string;
  notices: string[];
  /** Stores one MiB or as many as said. Answers the path, or why it was not stored. */
  save(mebibytes?: number): Promise<string>;
}

function storeIn(root: string, more: { totalBytes?: number; free?: () => Promise<number> }): Kept {
  const notices: string[] = [];
  const store = createResultStore({ root, free: PLENTY, onFull: (text) => notices.push(text), ...more });
  return {
    root,
    notices,
    save: async (mebibytes = 1) => {
      const saved = await store.save([new Uint8Array(mebibytes * MIB)], "x", "bin");
      return "path" in saved ? saved.path : saved.problem;
    },
  };
}

const names = async (root: string): Promise<string[]> =>
  (await readdir(root, { recursive: true })).filter((name) => name.includes("/")).sort();

async function bytesIn(root: string): Promise<number> {
  const sizes = (await names(root)).map(async (name) => (await stat(join(root, name))).size);
  return (await Promise.all(sizes)).reduce((all, size) => all + size, 0);
}

test("prepared for a file -> the folder is there, and the file comes into it", async () => {
  const root = await tempFolder();
  const store = createResultStore({ root, free: PLENTY });
  store.prepare?.();
  await vi.waitFor(async () => expect(await readdir(root)).toHaveLength(1), PATIENCE_MS);
  const saved = await store.save(["text"], "x", "txt");
  expect("path" in saved && dirname(saved.path)).toBe(join(root, (await readdir(root))[0] as string));
});

test("prepared where no folder can be made -> nothing is thrown, and the file says why", async () => {
  const root = join(await tempFolder(), "file");
  await writeFile(root, "");
  const store = createResultStore({ root, free: PLENTY });
  store.prepare?.();
  expect(await store.save(["text"], "x", "txt")).toEqual({ problem: expect.stringContaining("ENOTDIR") });
});

describe("the bound of all sessions", () => {
  test("beyond it the oldest files of any session go, and the person is told once", async () => {
    const root = await tempFolder();
    for (const n of [1, 2, 3, 4]) await put(join(root, `s${n % 2}`, `${n}.bin`), 20 * MIB, 1_000 * n);
    const { save, notices } = storeIn(root, { totalBytes: 80 * MIB });
    const paths = [await save(), await save(15), await save()];
    expect(await names(root)).toEqual(
      ["s0/2.bin", "s1/1.bin", "s1/3.bin", ...paths.map((path) => path.slice(root.length + 1))].sort(),
    );
    await save(10);
    expect((await names(root)).filter((name) => name.startsWith("s"))).toEqual(["s0/2.bin", "s1/1.bin"]);
    expect(notices).toHaveLength(1);
    expect(notices[0]).toContain(root);
  });

  test("it is a quarter of what would be free without them", async () => {
    const root = await tempFolder();
    await put(join(root, "other", "old.bin"), 20 * MIB, 1_000);
    const { save } = storeIn(root, { free: async () => 68 * MIB - (await bytesIn(root)) });
    expect(await save(9)).toBe("the stored results of one session may take 8.5 MB at the moment");
    expect(await save(4)).toContain(root);
    expect(await names(root)).toHaveLength(1);
  });

  test("many small files -> each counts as 64 KiB", async () => {
    const root = await tempFolder();
    for (let n = 0; n < 40; n++) await put(join(root, "other", `${n}.txt`), 1, 1_000 + n);
    await storeIn(root, { totalBytes: 2 * MIB }).save(1 / 64);
    const left = (await names(root)).filter((name) => name.startsWith("other"));
    expect(left).toHaveLength(31);
    expect(left).not.toContain("other/39.txt");
  });

  test("two processes store at the same time -> no failure, and all together stay near the bound", async () => {
    const root = await tempFolder();
    await put(join(root, "old", "old.bin"), 30 * MIB, 1_000);
    const stores = [1, 2].map(() => storeIn(root, { totalBytes: 32 * MIB }));
    const saved = await Promise.all(stores.flatMap(({ save }) => [save(3), save(3), save(3)]));
    expect(saved.filter((path) => !path.startsWith(root))).toEqual([]);
    expect(await bytesIn(root)).toBe(18 * MIB);
  });
});

describe("the bound of one session", () => {
  test("half of all: a session removes only its own oldest files, and leaves those of others", async () => {
    const root = await tempFolder();
    await put(join(root, "other", "old.bin"), 9 * MIB, 1_000);
    const { save, notices } = storeIn(root, { totalBytes: 24 * MIB });
    await put(await save(6), 6 * MIB, 500);
    const last = await save(7);
    expect(await names(root)).toEqual(["other/old.bin", last.slice(root.length + 1)].sort());
    expect(notices).toHaveLength(1);
  });

  test("a file from the future, of a clock that was set back -> it goes, too", async () => {
    const root = await tempFolder();
    await put(join(root, "other", "new.bin"), 20 * MIB, -1_000_000);
    expect(await storeIn(root, { totalBytes: 20 * MIB }).save()).toContain(root);
    expect(await names(root)).toHaveLength(1);
  });

  test("files of the last minute stay: a model may just read them, so the next file is not stored", async () => {
    const { root, save, notices } = storeIn(await tempFolder(), { totalBytes: 20 * MIB });
    const kept = [await save(5), await save(5)];
    expect(await save()).toBe("the stored results of one session may take 10 MB at the moment");
    expect(await names(root)).toEqual(kept.map((path) => path.slice(root.length + 1)).sort());
    expect(notices).toEqual([]);
  });
});

test("files older than the limit, of any session -> removed; others and links stay", async () => {
  const root = await tempFolder();
  const nowS = Date.now() / 1_000;
  const outside = join(await tempFolder(), "mine.txt");
  await writeFile(outside, "mine");
  const put = async (session: string, name: string, ageDays: number): Promise<void> => {
    await mkdir(join(root, session), { recursive: true });
    await writeFile(join(root, session, name), "x");
    await utimes(join(root, session, name), nowS, nowS - ageDays * DAY_S);
  };
  await put("a", "old.txt", 7.1);
  await put("a", "new.txt", 6.9);
  await put("b", "old.txt", 30);
  await symlink(outside, join(root, "b", "link.txt"));
  await put("c", "old.txt", 30);
  await mkdir(join(root, "just-made"));
  await removeOldResults(root);
  expect((await readdir(root, { recursive: true })).sort()).toEqual([
    "a",
    "a/new.txt",
    "b",
    "b/link.txt",
    "c",
    "just-made",
  ]);
  expect(await readFile(outside, "utf8")).toBe("mine");

  // A folder left empty goes a day later.
  await utimes(join(root, "c"), nowS, nowS - 2 * DAY_S);
  await removeOldResults(root);
  expect(await readdir(root)).not.toContain("c");
});

test("a session that runs for weeks -> a file that is stored takes the old ones along, once an hour", async () => {
  const root = await tempFolder();
  const HOUR_MS = 60 * 60 * 1_000;
  let now = Date.now();
  const kept: unknown[] = [];
  const store = createResultStore({ root, now: () => now, onOldKept: (error) => kept.push(error) });
  const old = join(root, "other", "old.bin");
  await put(old, 1, 8 * DAY_S);
  await store.save(["one"], "x", "txt");
  expect(await names(root)).toContain("other/old.bin");
  now += HOUR_MS;
  await store.save(["two"], "x", "txt");
  await vi.waitFor(async () => expect(await names(root)).not.toContain("other/old.bin"));

  await put(old, 1, 8 * DAY_S);
  await store.save(["three"], "x", "txt");
  expect(await names(root)).toContain("other/old.bin");
  now += HOUR_MS;
  await store.save(["four"], "x", "txt");
  await vi.waitFor(async () => expect(await names(root)).toHaveLength(4));
  expect(kept).toEqual([]);
});

test("no folder -> nothing to remove", async () => {
  await removeOldResults(join(await tempFolder(), "none"));
});

test("parts of text and bytes -> one file; a surrogate pair between two writes stays whole", async () => {
  const store = createResultStore({ root: await tempFolder() });
  const text = `${"x".repeat(1024 * 1024 - 1)}😀${"y".repeat(1024 * 1024)}`;
  const saved = await store.save([text, Buffer.from("bytes"), "", "ä"], "a/b ../c", "txt");
  if (!("path" in saved)) throw new Error(saved.problem);
  expect(await readFile(saved.path, "utf8")).toBe(`${text}bytesä`);
  expect(saved.bytes).toBe((await stat(saved.path)).size);
  expect(saved.path).toMatch(/\/a-b-c-[0-9a-f]{8}\.txt$/);
});

test("a hundred thousand short parts -> a few writes, everything in its place", async () => {
  let writes = 0;
  const store = createResultStore({
    root: await tempFolder(),
    create: async (path) => {
      const file = await open(path, "wx");
      const write = file.writeFile.bind(file);
      file.writeFile = (...args) => {
        writes++;
        return write(...args);
      };
      return file;
    },
  });
  const parts = Array.from({ length: 100_000 }, (_, i) => (i % 2 === 0 ? `${i}` : "\n"));
  parts[50_000] = "long ".repeat(40_000);
  const bytes = Buffer.from("bytes");
  const saved = await store.save([...parts, bytes, "end"], "x", "txt");
  if (!("path" in saved)) throw new Error(saved.problem);
  expect(await readFile(saved.path, "utf8")).toBe(`${parts.join("")}bytesend`);
  expect(writes).toBeLessThan(20);
});
