/** Owns: the metadata cache: what is read, what a write keeps, what a broken file costs. */
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { type CacheEntry, readCache, writeCache } from "../../../../workers/cache/metadata-cache.ts";
import { tempFolder } from "../../temp-folder.ts";

const entry = (configHash: string, rest: Partial<CacheEntry> = {}): CacheEntry => ({
  configHash,
  tools: [{ name: "t", description: "d", inputSchema: { type: "object" } }],
  resources: [],
  cachedAt: 1_700_000_000_000,
  ...rest,
});

async function stored(content: unknown): Promise<string> {
  const path = join(await tempFolder(), "mcp-cache.json");
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const json = async (path: string): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;

describe("readCache", () => {
  test("entries of the wanted hashes -> these; others, and servers not asked for -> left out", async () => {
    const path = await stored({ version: 1, servers: { a: entry("1"), b: entry("2"), c: entry("3") } });
    expect(await readCache({ path, hashes: { a: "1", b: "other", missing: "4" } })).toEqual({
      entries: { a: entry("1") },
    });
  });

  test("no file -> nothing known, no problem", async () => {
    const path = join(await tempFolder(), "none.json");
    expect(await readCache({ path, hashes: { a: "1" } })).toEqual({ entries: {} });
  });

  it.each([
    ["half a file", '{"version":1,"servers":{"a":'],
    ["an empty file", ""],
    ["an array", []],
    ["null", "null"],
    ["no servers", { version: 1 }],
    ["servers that are an array", { version: 1, servers: [] }],
    ["version 2", { version: 2, servers: { a: entry("1") } }],
    ["no version", { servers: { a: entry("1") } }],
  ])("%s -> nothing known, with the reason", async (_name, content) => {
    const found = await readCache({ path: await stored(content), hashes: { a: "1" } });
    expect(found.entries).toEqual({});
    expect(found.problem).toMatch(/./);
  });

  it.each([
    ["null", null],
    ["a text", "x"],
    ["an array", []],
    ["no hash", { ...entry("1"), configHash: undefined }],
    ["a hash that is a number", { ...entry("1"), configHash: 1 }],
    ["no time", { ...entry("1"), cachedAt: undefined }],
    ["no tools", { ...entry("1"), tools: undefined }],
    ["tools that are a map", { ...entry("1"), tools: {} }],
  ])("an entry that is %s -> left out, the others stay", async (_name, broken) => {
    const path = await stored({ version: 1, servers: { a: broken, b: entry("1") } });
    const { entries } = await readCache({ path, hashes: { a: "1", b: "1" } });
    expect(Object.keys(entries)).toEqual(["b"]);
  });

  it.each([
    ["a tool that is null", { tools: [null, { name: "t" }] }, { tools: [{ name: "t" }] }],
    ["a tool without name", { tools: [{ description: "d" }, { name: "t" }] }, { tools: [{ name: "t" }] }],
    [
      "fields of a wrong type",
      { tools: [{ name: "t", description: 5, inputSchema: "x" }] },
      { tools: [{ name: "t" }] },
    ],
    ["instructions that are a number", { instructions: 5 }, {}],
    ["no resources", { resources: undefined }, {}],
  ])("an entry with %s -> the rest of it", async (_name, broken, kept) => {
    const path = await stored({ version: 1, servers: { a: { ...entry("1"), ...broken } } });
    expect(await readCache({ path, hashes: { a: "1" } })).toEqual({ entries: { a: entry("1", kept) } });
  });

  it.each(["constructor", "toString", "hasOwnProperty"])(
    "a server named %s -> found only if stored",
    async (name) => {
      const hashes = { [name]: "1" };
      expect(await readCache({ path: await stored({ version: 1, servers: {} }), hashes })).toEqual({
        entries: {},
      });
      const path = await stored({ version: 1, servers: { [name]: entry("1") } });
      expect((await readCache({ path, hashes })).entries[name]).toEqual(entry("1"));
    },
  );
});

describe("writeCache", () => {
  test("no file -> a version 1 file, private, without leftovers", async () => {
    const folder = join(await tempFolder(), "new");
    const path = join(folder, "mcp-cache.json");
    await writeCache(path, { a: entry("1") });
    expect(await json(path)).toEqual({ version: 1, servers: { a: entry("1") } });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  test("what was written -> is read back", async () => {
    const path = join(await tempFolder(), "c.json");
    const full = entry("1", { instructions: "Use it.", resources: [{ uri: "x:y" }] });
    await writeCache(path, { a: full });
    expect(await readCache({ path, hashes: { a: "1" } })).toEqual({ entries: { a: full } });
  });

  test("other servers and foreign fields at every level -> kept", async () => {
    const path = await stored({
      version: 1,
      writtenBy: "other adapter",
      servers: { a: { ...entry("old"), prompts: [1] }, b: { any: "shape" } },
    });
    await writeCache(path, { a: entry("new") });
    expect(await json(path)).toEqual({
      version: 1,
      writtenBy: "other adapter",
      servers: { a: { ...entry("new"), prompts: [1] }, b: { any: "shape" } },
    });
  });

  test("a server that no longer gives instructions -> the old ones are gone", async () => {
    const path = await stored({ version: 1, servers: { a: entry("1", { instructions: "old" }) } });
    await writeCache(path, { a: entry("1") });
    expect((await readCache({ path, hashes: { a: "1" } })).entries.a).not.toHaveProperty("instructions");
  });

  it.each([
    ["half a file", '{"version":1,"serv'],
    ["an empty file", ""],
    ["something else", [1, 2]],
  ])("%s -> replaced by a cache", async (_name, content) => {
    const path = await stored(content);
    await writeCache(path, { a: entry("1") });
    expect(await json(path)).toEqual({ version: 1, servers: { a: entry("1") } });
  });

  test("a cache of a later version -> not destroyed, as it is no broken file", async () => {
    const later = { version: 2, servers: { a: { other: "format" } } };
    const path = await stored(later);
    await writeCache(path, { b: entry("1") }).catch(() => undefined);
    expect(await json(path)).toEqual(later);
  });

  test("a folder in the place of the file -> rejects, the folder stays as it was", async () => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await mkdir(path);
    await expect(writeCache(path, { a: entry("1") })).rejects.toThrow();
    expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
  });

  test("a server named __proto__ in the file -> kept, nothing inherits from it", async () => {
    const path = await stored('{"version":1,"servers":{"__proto__":{"polluted":true}}}');
    await writeCache(path, { a: entry("1") });
    expect(await readFile(path, "utf8")).toContain('"__proto__":{"polluted":true}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});
