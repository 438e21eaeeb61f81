import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { readNpxEntry, writeNpxEntry } from "../../../../../workers/connection/npx/npx.ts";
import { tempFolder } from "../../../temp-folder.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const NOW = 1_700_000_000_000;
const entry = (checkedAt: number) => ({
  packages: ["p"],
  from: "cache" as const,
  cacheDir: "/c",
  globalPrefix: "/g",
  node: "/n/node",
  checkedAt,
});

test("an entry -> valid for 24 hours, and not if it is from the future", async () => {
  const file = join(await tempFolder(), "a.json");
  await writeNpxEntry(file, "k", entry(NOW));
  expect(await readNpxEntry(file, "k", NOW + DAY_MS - 1)).toEqual(entry(NOW));
  expect(await readNpxEntry(file, "k", NOW + DAY_MS)).toBeUndefined();
  expect(await readNpxEntry(file, "k", NOW - DAY_MS)).toBeUndefined();
  expect(await readNpxEntry(file, "toString", NOW)).toBeUndefined();
});

test.each([
  ["nothing", undefined],
  ["an empty file", ""],
  ["half a file", '{"version":1,"entries":{"k":{"checked'],
  ["binary", "\0\x01\xff"],
  ["another version", JSON.stringify({ version: 2, entries: { k: entry(NOW) } })],
  ["another shape", "[]"],
  ["entries of another shape", JSON.stringify({ version: 1, entries: { k: { checkedAt: NOW } } })],
  ["a relative folder", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), cacheDir: "x" } } })],
  ["a relative node", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), node: "node" } } })],
  ["no node", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), node: undefined } } })],
  [
    "a time that is no number",
    JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), checkedAt: "1" } } }),
  ],
])("%s -> read as empty, replaced by the next write", async (_title, content) => {
  const file = join(await tempFolder(), "a.json");
  if (content !== undefined) await writeFile(file, content);
  expect(await readNpxEntry(file, "k", NOW)).toBeUndefined();
  await writeNpxEntry(file, "k", entry(NOW));
  expect(await readNpxEntry(file, "k", NOW)).toEqual(entry(NOW));
});

test("a folder in place of the file -> read as empty, and the write rejects", async () => {
  const file = join(await tempFolder(), "a.json");
  await mkdir(file);
  expect(await readNpxEntry(file, "k", NOW)).toBeUndefined();
  await expect(writeNpxEntry(file, "k", entry(NOW))).rejects.toThrow();
  expect(await readdir(dirname(file))).toEqual(["a.json"]);
});

test("parallel writes of one process -> all kept; entries older than 24 hours are dropped", async () => {
  const file = join(await tempFolder(), "a.json");
  await writeNpxEntry(file, "old", entry(NOW - DAY_MS));
  const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
  await Promise.all(keys.map((key) => writeNpxEntry(file, key, entry(NOW))));
  const written = JSON.parse(await readFile(file, "utf8")) as { entries: Record<string, unknown> };
  expect(Object.keys(written.entries).sort()).toEqual(keys.sort());
  expect(await readdir(dirname(file))).toEqual(["a.json"]);
});
