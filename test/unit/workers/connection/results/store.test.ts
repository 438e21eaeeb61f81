/** Owns: names and parts of stored results, and their removal after seven days. */
import { mkdir, open, readdir, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createResultStore, removeOldResults } from "../../../../../workers/connection/results/store.ts";
import { tempFolder } from "./support.ts";

const DAY_S = 24 * 60 * 60;

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

test("no folder -> nothing to remove", async () => {
  await removeOldResults(join(await tempFolder(), "none"));
});
