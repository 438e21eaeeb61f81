/**
 * Storing an entry on a disk that fails. If any step fails with any code: no exception, at most
 * one line, stored entries stay, and the next attempt on a working disk stores everything.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCache, storeEntries } from "../../../../../workers/cache/metadata/metadata.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { context, entry, failingFiles, type Step } from "../support.ts";

const CODES = ["ENOSPC", "EACCES", "EIO"] as const;

const FILE = /mcp-cache\.json$/;
const TEMP = /\.mcp-cache\.json\.[0-9a-f]{12}\.tmp$/;
const PREPARED = /\.mcp-cache\.json\.lock\.[0-9a-f]{12}\.tmp/;
const LOCK = /\.mcp-cache\.json\.lock$/;
const IN_LOCK = /\.mcp-cache\.json\.lock\/[^/]+$/;
const ASIDE = /\.corrupt-/;

type Outcome = "stored" | "not stored";

const STEPS: [string, Step, RegExp, Outcome][] = [
  ["looking at the file", "find", FILE, "not stored"],
  ["reading the file", "readBytes", FILE, "not stored"],
  ["making the lock", "create", PREPARED, "not stored"],
  ["closing the lock's entry", "close", PREPARED, "not stored"],
  ["taking the lock", "rename", LOCK, "not stored"],
  ["opening the new file", "create", TEMP, "not stored"],
  ["writing the new file", "write", TEMP, "not stored"],
  ["syncing the new file", "sync", TEMP, "not stored"],
  ["closing the new file", "close", TEMP, "not stored"],
  ["replacing the file", "rename", FILE, "not stored"],
  ["giving the lock back", "remove", IN_LOCK, "stored"],
  ["removing the lock's folder", "remove", LOCK, "stored"],
  ["looking for leftovers", "list", /./, "stored"],
];

const OLD = JSON.stringify({ version: 1, servers: { old: entry("old") } });

const storedNames = async (path: string): Promise<string[]> =>
  Object.keys((JSON.parse(await readFile(path, "utf8")) as { servers: object }).servers).sort();

describe.each(CODES)("%s", (code) => {
  it.each(STEPS)("%s fails (%s %s) -> %s", async (_name, step, on, outcome) => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await writeFile(path, OLD);
    const files = failingFiles(step, code, on);
    const task = { path, entries: { fresh: entry("new") }, used: {} };

    const result = await storeEntries(task, context({ files }));
    expect(files.failures).toBeGreaterThan(0);
    expect(result.stored ? "stored" : "not stored").toBe(outcome);
    expect(result.problems).toEqual(result.stored ? [] : [expect.stringContaining(code)]);
    expect(await storedNames(path)).toEqual(outcome === "stored" ? ["fresh", "old"] : ["old"]);
    expect((await readdir(folder)).filter((name) => TEMP.test(name) || PREPARED.test(name))).toEqual([]);

    const again = { ...task, entries: { ...task.entries, later: entry("later") } };
    expect(await storeEntries(again, context())).toEqual({ stored: true, problems: [] });
    expect(await storedNames(path)).toEqual(["fresh", "later", "old"]);
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  it("files can no longer be removed -> the first failure is reported, and the leftovers are removed later", async () => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await writeFile(path, OLD);
    const failing = failingFiles("write", code, TEMP);
    const stuck = failingFiles("remove", "EIO", /./);
    const task = { path, entries: { fresh: entry("new") }, used: {} };
    const result = await storeEntries(task, context({ files: { ...failing, remove: stuck.remove } }));
    expect(result).toEqual({ stored: false, problems: [expect.stringContaining(code)] });
    expect((await readdir(folder)).length).toBeGreaterThan(1);
    expect(await storeEntries(task, context({ now: () => Date.now() + 2 * 3_600_000 }))).toMatchObject({
      stored: true,
    });
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  it.each<[string, Step, RegExp]>([
    ["the copy cannot be made", "rename", ASIDE],
    ["the new file cannot be written", "write", TEMP],
    ["the new file cannot be synced", "sync", TEMP],
  ])("a broken file, and %s -> the file stays in its place", async (_name, step, on) => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await writeFile(path, "broken");
    const task = { path, entries: { fresh: entry("new") }, used: {} };
    const result = await storeEntries(task, context({ files: failingFiles(step, code, on) }));
    expect(result).toEqual({ stored: false, problems: [expect.stringContaining(code)] });
    expect(await readFile(path, "utf8")).toBe("broken");
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  it("a broken file that cannot be replaced -> the broken file is kept aside", async () => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await writeFile(path, "broken");
    const files = failingFiles("rename", code, FILE);
    const result = await storeEntries(
      { path, entries: { fresh: entry("new") }, used: {} },
      context({ files }),
    );
    expect(result).toEqual({ stored: false, problems: [expect.stringContaining(code)] });
    const [copy, ...more] = await readdir(folder);
    expect(more).toEqual([]);
    expect(await readFile(join(folder, copy ?? ""), "utf8")).toBe("broken");
  });

  it.each<[string, Step]>([
    ["looking at the file", "find"],
    ["reading the file", "readBytes"],
  ])("readCache: %s fails -> nothing known, one line", async (_name, step) => {
    const path = join(await tempFolder(), "mcp-cache.json");
    await writeFile(path, OLD);
    const query = { path, definitions: { old: {} } };
    expect(await readCache(query, context({ files: failingFiles(step, code, FILE) }))).toEqual({
      entries: {},
      used: {},
      problems: [expect.stringContaining(code)],
    });
  });
});
