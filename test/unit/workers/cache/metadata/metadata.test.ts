/** The metadata cache file: reading, what a write keeps, and what a broken file costs. */
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test } from "vitest";
import { readCache, readLines, storeEntries } from "../../../../../workers/cache/metadata/metadata.ts";
import { hashDefinition } from "../../../../../workers/shared/json.ts";
import { listMark, readList, StoredTools } from "../../../../../workers/shared/listed.ts";
import type { CacheEntry, StoreResult } from "../../../../../workers/shared/tasks.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { context, DAY, entry, NOW, withoutMarks } from "../support.ts";

const PATIENT = { waitMs: 30_000, beatMs: 1_000, silentMs: 20_000 };

const DEFINITION = { command: "node", args: ["a.js"] };
const HASH = hashDefinition(DEFINITION);

async function stored(content: unknown): Promise<string> {
  const path = join(await tempFolder(), "mcp-cache.json");
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const read = (path: string, names: string[] = ["a"]): ReturnType<typeof readCache> =>
  readCache({ path, definitions: Object.fromEntries(names.map((name) => [name, DEFINITION])) }, context());

const store = (
  path: string,
  entries: Record<string, CacheEntry>,
  used: Record<string, string> = {},
): Promise<StoreResult> => storeEntries({ path, entries, used }, context());

const json = async (path: string): Promise<Record<string, unknown>> =>
  withoutMarks(await readFile(path, "utf8")) as Record<string, unknown>;

const namesBeside = async (path: string): Promise<string[]> => (await readdir(join(path, ".."))).sort();

/** Texts that are not a cache; the word says whether there is something to keep aside. */
const CORRUPT: [string, "kept" | "dropped", string][] = [
  ["half a file", "kept", '{"version":1,"servers":{"a":'],
  ["binary", "kept", "\u0000\u0001\u0002"],
  ["an array", "kept", "[]"],
  ["null", "kept", "null"],
  ["no servers", "kept", '{"version":1}'],
  ["servers that are an array", "kept", '{"version":1,"servers":[]}'],
  ["no version", "kept", '{"servers":{}}'],
  ["an empty file", "dropped", ""],
  ["blanks", "dropped", " \n "],
];

const FOREIGN: [string, unknown][] = [
  ["2", 2],
  ["0", 0],
  ["of a text", "1"],
  ["null", null],
];

describe("readCache", () => {
  test("entries of the given definitions -> found; entries of other definitions and servers -> left out", async () => {
    const path = await stored({ version: 1, servers: { a: entry(HASH), b: entry("other"), c: entry(HASH) } });
    expect(await read(path, ["a", "b", "missing"])).toEqual({
      entries: { a: entry(HASH) },
      used: {},
      problems: [],
    });
  });

  test("no file -> nothing known, no problem, nothing made", async () => {
    const folder = await tempFolder();
    expect(await read(join(folder, "none.json"))).toEqual({ entries: {}, used: {}, problems: [] });
    expect(await readdir(folder)).toEqual([]);
  });

  test("an entry that was last used days ago -> its use must be written down", async () => {
    const path = await stored({ version: 1, servers: { a: entry(HASH, { cachedAt: NOW - 2 * DAY }) } });
    expect((await read(path)).used).toEqual({ a: HASH });
  });

  it.each(CORRUPT)("%s -> nothing known, one line, the file stays", async (_name, _outcome, text) => {
    const path = await stored(text);
    const found = await read(path);
    expect(found.entries).toEqual({});
    expect(found.problems).toEqual([expect.stringContaining(path)]);
    expect(await readFile(path, "utf8")).toBe(text);
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });

  it.each(FOREIGN)("version %s -> nothing known, one line", async (_name, version) => {
    const path = await stored({ version, servers: { a: entry(HASH) } });
    expect(await read(path)).toMatchObject({ entries: {}, problems: [expect.stringContaining("version")] });
  });

  test("a folder in the place of the file -> nothing known, one line", async () => {
    const path = join(await tempFolder(), "mcp-cache.json");
    await mkdir(path);
    expect(await read(path)).toMatchObject({ entries: {}, problems: [expect.stringContaining("EISDIR")] });
  });

  test("a named pipe in the place of the file -> not waited for: nothing known, nothing stored, one line each", async () => {
    const path = join(await tempFolder(), "mcp-cache.json");
    await promisify(execFile)("mkfifo", [path]);
    const problem = `${path} is neither used nor changed: it is a named pipe, not a regular file.`;
    expect(await read(path)).toMatchObject({ entries: {}, problems: [problem] });
    expect(await store(path, { a: entry(HASH) })).toEqual({ stored: false, problems: [problem] });
    expect((await lstat(path)).isFIFO()).toBe(true);
  });

  it.each(["constructor", "toString", "hasOwnProperty"])(
    "a server named %s -> found only if stored",
    async (name) => {
      expect((await read(await stored({ version: 1, servers: {} }), [name])).entries).toEqual({});
      const path = await stored({ version: 1, servers: { [name]: entry(HASH) } });
      expect((await read(path, [name])).entries[name]).toEqual(entry(HASH));
    },
  );
});

describe("readLines", () => {
  const alwaysLoad = { "anthropic/alwaysLoad": true } as const;
  const tools = [
    { name: "t", description: 'ü,"tools":[' },
    { name: "u", _meta: alwaysLoad },
  ];
  const lines = (path: string, names: string[] = ["a"]): ReturnType<typeof readLines> =>
    readLines({ path, definitions: Object.fromEntries(names.map((name) => [name, DEFINITION])) }, context());
  /** A file of two servers. */
  async function written(): Promise<string> {
    const path = join(await tempFolder(), "mcp-cache.json");
    await store(path, { a: entry(HASH, { tools, prompts: [{ tools: [1] }] }), b: entry(HASH) });
    return path;
  }
  const spoiled = async (change: (text: string) => string): Promise<string> => {
    const path = await written();
    await writeFile(path, change(await readFile(path, "utf8")));
    return path;
  };

  test("entries that this package wrote -> those of readCache, their tools not read yet", async () => {
    const path = await written();
    const [found, parsed] = [await lines(path, ["a", "b", "missing"]), await read(path, ["a", "b"])];
    expect(Object.keys(found?.entries ?? {})).toEqual(["a", "b"]);
    const list = found?.entries.a?.tools;
    expect(list).toBeInstanceOf(StoredTools);
    expect(list).toMatchObject({ mark: { count: 2, wishes: true } });
    expect(readList(list ?? [])).toEqual(tools);
    expect(readList(list ?? [])).toBe(readList(list ?? []));
    expect({ ...found?.entries.a, tools }).toEqual(parsed.entries.a);
  });

  test.each<[string, (text: string) => string]>([
    ["a tool that somebody changed", (text) => text.replace('"name":"u"', '"name":"v"')],
    ["no mark", (text) => text.replace("toolsMark", "toolsmark")],
    ["the mark of another list", (text) => text.replace(/"bytes":"./, '"bytes":"x')],
    ["tools that do not stand last", (text) => text.replace(/}(,\n)/, ',"x":1}$1')],
    ["no readable tool", (text) => text.replace(/"count":2/, '"count":0')],
    ["another layout", (text) => JSON.stringify(JSON.parse(text))],
    ["half a file", (text) => text.slice(0, -40)],
    ["another version", (text) => text.replace('"version":1', '"version":2')],
  ])("%s -> the file must be parsed as a whole", async (_name, change) => {
    expect(await lines(await spoiled(change))).toBeUndefined();
  });

  test("fields that others added, and what they are told of pages -> the mark of the list alone", async () => {
    const path = await written();
    const page = { name: "t", _meta: { ui: { visibility: ["app"] as ["app"] } } };
    await store(path, { a: entry(HASH, { tools: [page], signs: true }) });
    const list = (await lines(path))?.entries.a?.tools;
    expect(list).toMatchObject({ mark: listMark([page]) });
    expect(readList(list ?? [])).toEqual([page]);
  });

  test("a broken line of another server -> costs this one nothing", async () => {
    const path = await spoiled((text) => text.replace('"b":{', '"b":{{'));
    expect(Object.keys((await lines(path))?.entries ?? {})).toEqual(["a"]);
    expect(await lines(path, ["a", "b"])).toBeUndefined();
  });

  test("an entry of another definition, or too old -> not found; no file -> readCache tells", async () => {
    const path = await written();
    const definitions = { a: { command: "other" } };
    expect(await readLines({ path, definitions }, context())).toMatchObject({ entries: {} });
    const later = context({ now: () => NOW + 8 * DAY });
    expect(await readLines({ path, definitions: { a: DEFINITION } }, later)).toMatchObject({ entries: {} });
    expect(await lines(`${path}.none`)).toBeUndefined();
  });
});

describe("storeEntries", () => {
  test("no file, no folder -> a version 1 file, private, without leftovers", async () => {
    const path = join(await tempFolder(), "new", "mcp-cache.json");
    expect(await store(path, { a: entry(HASH) })).toEqual({ stored: true, problems: [] });
    expect(await json(path)).toEqual({ version: 1, servers: { a: entry(HASH) } });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });

  test("stored entries -> the same entries are read back", async () => {
    const path = join(await tempFolder(), "c.json");
    const tool = {
      name: "t",
      title: "T",
      outputSchema: { type: "object" },
      annotations: { readOnlyHint: true },
    };
    const full = entry(HASH, {
      tools: [tool],
      instructions: "Use it.",
      resources: [1],
      prompts: [{ name: "p" }],
    });
    await store(path, { a: full });
    expect((await read(path)).entries).toEqual({ a: full });
  });

  test("other servers and foreign fields at every level -> kept", async () => {
    const path = await stored({
      version: 1,
      writtenBy: "other adapter",
      servers: { a: { ...entry(HASH), ttlMs: 1 }, b: { any: "shape" } },
    });
    await store(path, { a: entry(HASH, { instructions: "new" }) });
    expect(await json(path)).toEqual({
      version: 1,
      writtenBy: "other adapter",
      servers: { a: { ...entry(HASH), instructions: "new", ttlMs: 1 }, b: { any: "shape" } },
    });
  });

  test("nothing new -> the file is not written, nor any file beside it", async () => {
    const path = await stored({ version: 1, servers: { a: entry(HASH) } });
    await utimes(path, 1, 1);
    expect(await store(path, { a: entry(HASH) }, { a: HASH, b: "x" })).toEqual({
      stored: true,
      problems: [],
    });
    expect((await stat(path)).mtimeMs).toBe(1_000);
  });

  describe("a server whose definition is another one in each folder, as in worktrees", () => {
    const hashIn = (folder: number): string => `${folder}`.padStart(16, "0").padEnd(64, "0");
    const hashes = async (path: string): Promise<unknown[]> =>
      Object.values((await json(path)).servers as Record<string, CacheEntry>).map(
        ({ configHash }) => configHash,
      );
    const cachedAt = (folder: number): number => NOW - DAY + folder;

    test("in 30 of them -> the newest, and the 20 before that were used last; other servers stay", async () => {
      const path = join(await tempFolder(), "c.json");
      await store(path, { a: entry(HASH), "a#b": entry(HASH) });
      for (let folder = 0; folder < 30; folder++) {
        await store(path, { tree: entry(hashIn(folder), { cachedAt: cachedAt(folder) }) });
      }
      const left = await hashes(path);
      expect(left).toHaveLength(23);
      expect(left).toEqual(expect.arrayContaining([HASH, ...[10, 20, 29].map(hashIn)]));
      expect(left).not.toContain(hashIn(8));
    });

    test("with lists so long that the file would be too large -> those of other folders go, and the new one is stored", async () => {
      const path = join(await tempFolder(), "c.json");
      await store(path, { a: entry(HASH) });
      const tools = [{ name: "t", description: "x".repeat(200_000), inputSchema: { type: "object" } }];
      for (let folder = 0; folder < 6; folder++) {
        const done = await store(path, {
          tree: entry(hashIn(folder), { tools, cachedAt: cachedAt(folder) }),
        });
        expect(done).toEqual({ stored: true, problems: [] });
      }
      expect(await hashes(path)).toEqual([HASH, hashIn(5)]);
    });
  });

  test("a link -> it stays a link; the file behind it is locked and replaced", async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, "real"));
    const path = join(folder, "mcp-cache.json");
    await symlink(join("real", "c.json"), path);
    expect(await store(path, { a: entry(HASH) })).toEqual({ stored: true, problems: [] });
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(await json(join(folder, "real", "c.json"))).toHaveProperty("servers.a");
    expect(await readdir(join(folder, "real"))).toEqual(["c.json"]);
  });

  test("a server named __proto__ in the file -> kept, nothing inherits from it", async () => {
    const path = await stored('{"version":1,"servers":{"__proto__":{"polluted":true}}}');
    await store(path, { a: entry(HASH) });
    expect(await readFile(path, "utf8")).toContain('"__proto__":{"polluted":true}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("twenty at once -> all twenty", async () => {
    const path = join(await tempFolder(), "c.json");
    const names = Array.from({ length: 20 }, (_, i) => `s${i}`);
    const results = await Promise.all(
      names.map((name) =>
        storeEntries({ path, entries: { [name]: entry(name) }, used: {} }, context({ lockTimes: PATIENT })),
      ),
    );
    expect(results).toEqual(names.map(() => ({ stored: true, problems: [] })));
    expect(Object.keys((await json(path)).servers as object).sort()).toEqual(names.sort());
    expect(await namesBeside(path)).toEqual(["c.json"]);
  });
});

describe("storeEntries: a file that is not a cache", () => {
  it.each(CORRUPT)(
    "%s -> one line, the file is replaced, its content is %s",
    async (_name, outcome, text) => {
      const path = await stored(text);
      const { stored: done, problems } = await store(path, { a: entry(HASH) });
      expect(done).toBe(true);
      expect(problems).toEqual([expect.stringContaining(path)]);
      expect(await json(path)).toEqual({ version: 1, servers: { a: entry(HASH) } });
      const [copy, ...more] = (await namesBeside(path)).filter((name) => name !== "mcp-cache.json");
      expect(more).toEqual([]);
      if (outcome === "dropped") return expect(copy).toBeUndefined();
      expect(copy).toBe("mcp-cache.json.corrupt-2026-01-15T12-00-00-000Z");
      expect(await readFile(join(path, "..", copy ?? ""), "utf8")).toBe(text);
    },
  );

  test("the same problem -> the same line from reading and from storing", async () => {
    for (const text of ["{", '{"version":2}']) {
      const path = await stored(text);
      expect((await store(path, { a: entry(HASH) })).problems).toEqual(
        (await read(await stored(text))).problems.map((line) =>
          line.replaceAll(/\/[^ ]*mcp-cache\.json/g, path),
        ),
      );
    }
  });

  test("five broken files in turn -> the newest three are kept", async () => {
    const path = await stored("");
    for (let i = 0; i < 5; i++) {
      await writeFile(path, `broken ${i}`);
      await storeEntries({ path, entries: { a: entry(HASH) }, used: {} }, context({ now: () => NOW + i }));
    }
    const copies = (await namesBeside(path)).filter((name) => name.includes("corrupt"));
    const texts = await Promise.all(copies.map((name) => readFile(join(path, "..", name), "utf8")));
    expect(texts).toEqual(["broken 2", "broken 3", "broken 4"]);
  });

  it.each(FOREIGN)("version %s -> not touched, one line", async (_name, version) => {
    const content = { version, servers: { a: { other: "format" } } };
    const path = await stored(content);
    const { stored: done, problems } = await store(path, { b: entry(HASH) });
    expect([done, problems.length]).toEqual([false, 1]);
    expect(await json(path)).toEqual(content);
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });

  test("a file that is read-only -> not touched, one line", async () => {
    const path = await stored({ version: 1, servers: {} });
    await chmod(path, 0o444);
    const { stored: done, problems } = await store(path, { a: entry(HASH) });
    expect([done, problems]).toEqual([false, [`${path} could not be written: it is read-only`]]);
    expect(await json(path)).toEqual({ version: 1, servers: {} });
  });

  test("a file beyond the limit -> neither read nor touched, one line each", async () => {
    const path = await stored(
      `${JSON.stringify({ version: 1, servers: { a: entry(HASH) } })}${" ".repeat(2 ** 20)}`,
    );
    expect(await read(path)).toMatchObject({ entries: {}, problems: [expect.stringContaining("1 MiB")] });
    const { problems } = await store(path, { b: entry(HASH) });
    expect(problems).toEqual((await read(path)).problems);
    expect((await stat(path)).size).toBeGreaterThan(2 ** 20);
  });

  test("entries that would take the file beyond the limit -> not stored, one line, the file stays", async () => {
    const path = await stored({ version: 1, servers: {} });
    const { stored: done, problems } = await store(path, {
      a: entry(HASH, { instructions: "é".repeat(2 ** 19) }),
    });
    expect([done, problems]).toEqual([false, [`${path} could not be written: it would exceed 1 MiB`]]);
    expect(await json(path)).toEqual({ version: 1, servers: {} });
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });

  test("a folder that takes no files -> the same line each time, so that the log can write it once", async () => {
    const folder = await tempFolder();
    const path = join(folder, "mcp-cache.json");
    await writeFile(join(folder, ".mcp-cache.json.lock"), "");
    const first = await store(path, { a: entry(HASH) });
    expect(first).toEqual({
      stored: false,
      problems: [expect.stringContaining(`${path} could not be written: ENOTDIR`)],
    });
    expect(await store(path, { a: entry(HASH) })).toEqual(first);
  });

  test("a folder in the place of the file -> stays, one line", async () => {
    const path = join(await tempFolder(), "mcp-cache.json");
    await mkdir(join(path, "inner"), { recursive: true });
    expect(await store(path, { a: entry(HASH) })).toMatchObject({
      stored: false,
      problems: [expect.any(String)],
    });
    expect(await readdir(path)).toEqual(["inner"]);
  });

  test("an entry of others that cannot be written as JSON -> the file is not touched, one line", async () => {
    const deep = `{"version":1,"servers":{"b":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`;
    const path = await stored(deep);
    const { stored: done, problems } = await store(path, { a: entry(HASH) });
    expect([done, problems.length]).toEqual([false, 1]);
    expect(await readFile(path, "utf8")).toBe(deep);
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });
});

describe("storeEntries: other writers without a lock", () => {
  test("one writes between our read and our write -> merged again, nothing lost", async () => {
    const path = await stored({ version: 1, servers: { a: entry("1") } });
    const { files } = context();
    let interfere = true;
    const racing: typeof files = {
      ...files,
      create: async (on, mode) => {
        const file = await files.create(on, mode);
        if (interfere && on.includes(".mcp-cache.json.") && !on.includes(".lock")) {
          interfere = false;
          await writeFile(
            path,
            JSON.stringify({ version: 1, servers: { a: entry("1"), theirs: entry("2") } }),
          );
        }
        return file;
      },
    };
    const result = await storeEntries(
      { path, entries: { ours: entry("3") }, used: {} },
      context({ files: racing }),
    );
    expect(result).toEqual({ stored: true, problems: [] });
    expect(Object.keys((await json(path)).servers as object)).toEqual(["a", "theirs", "ours"]);
  });

  test("a writer that never stops -> given up after a few attempts, that writer's content stays, one line", async () => {
    const path = await stored({ version: 1, servers: {} });
    const { files } = context();
    let times = 0;
    const racing: typeof files = {
      ...files,
      create: async (on, mode) => {
        await writeFile(path, JSON.stringify({ version: 1, servers: { [`theirs${times++}`]: {} } }));
        return files.create(on, mode);
      },
    };
    const result = await storeEntries(
      { path, entries: { ours: entry("3") }, used: {} },
      context({ files: racing }),
    );
    expect(result).toMatchObject({ stored: false, problems: [expect.stringContaining("keep changing")] });
    expect(times).toBeLessThan(20);
    expect(Object.keys((await json(path)).servers as object)).toEqual([`theirs${times - 1}`]);
    expect(await namesBeside(path)).toEqual(["mcp-cache.json"]);
  });
});

describe("storeEntries: leftovers of killed writers", () => {
  test("ours, older than an hour -> removed; younger, and of other programs -> stay", async () => {
    const path = await stored({ version: 1, servers: {} });
    const folder = join(path, "..");
    const names = {
      old: ".mcp-cache.json.0123456789ab.tmp",
      oldLock: ".mcp-cache.json.lock.0123456789ab.tmp",
      young: ".mcp-cache.json.0123456789ac.tmp",
      adapter: "mcp-cache.json.123.tmp",
      other: ".other.0123456789ab.tmp",
    };
    await mkdir(join(folder, names.oldLock));
    await writeFile(join(folder, names.oldLock, "owner"), "");
    for (const name of [names.old, names.young, names.adapter, names.other])
      await writeFile(join(folder, name), "x");
    const [old, young] = [(NOW - 61 * 60_000) / 1_000, (NOW - 59 * 60_000) / 1_000];
    for (const name of [names.old, names.oldLock, names.adapter, names.other])
      await utimes(join(folder, name), old, old);
    await utimes(join(folder, names.young), young, young);
    await store(path, { a: entry(HASH) });
    expect(await namesBeside(path)).toEqual(
      [names.young, names.other, "mcp-cache.json", names.adapter].sort(),
    );
  });
});
