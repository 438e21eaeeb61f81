/** Owns: the task that stores what servers listed and makes the snapshot. */
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { catalogFrom, inputSchemaOf } from "../../../../src/catalog/catalog.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/protocol/snapshot.ts";
import { type PublishTask, publish } from "../../../../workers/cache/publish.ts";
import type { CachedTool } from "../../../../workers/cache/tool.ts";
import { tempFolder } from "../../temp-folder.ts";

const ECHO: CachedTool = {
  name: "echo",
  description: "Echoes.",
  inputSchema: { type: "object", properties: { message: { type: "string" } } },
};

async function task(tools: CachedTool[], rest: Partial<PublishTask> = {}): Promise<PublishTask> {
  const folder = await tempFolder();
  return {
    cachePath: join(folder, "mcp-cache.json"),
    snapshotPath: join(folder, "mcp-snapshots", "x.bin"),
    entries: {},
    servers: [{ name: "s", project: false, tools }],
    settings: DEFAULT_CATALOG_SETTINGS,
    knownChecksum: undefined,
    ...rest,
  };
}

async function publishedTools(tools: CachedTool[]): Promise<{ name: string; description: string }[]> {
  const { snapshot, problems } = await publish(await task(tools));
  expect(problems).toEqual([]);
  const catalog = snapshot && catalogFrom(snapshot);
  return (catalog?.tools ?? []).map(({ name, description }) => ({ name, description }));
}

describe("publish", () => {
  test("a catalog -> the snapshot, in memory and in a private file, that can be searched", async () => {
    const asked = await task([ECHO]);
    const { snapshot, checksum, problems } = await publish(asked);
    expect(problems).toEqual([]);
    const catalog = catalogFrom(snapshot ?? new Uint8Array());
    expect(catalog?.checksum).toBe(checksum);
    expect(catalog?.search("echo", 5).hits.map(({ tool }) => tool.name)).toEqual(["s__echo"]);
    expect(catalog?.tools.map(inputSchemaOf)).toEqual([ECHO.inputSchema]);
    expect(Buffer.compare(await readFile(asked.snapshotPath), snapshot ?? new Uint8Array())).toBe(0);
    expect((await stat(asked.snapshotPath)).mode & 0o777).toBe(0o600);
  });

  test("the checksum that main has already -> neither snapshot nor file", async () => {
    const first = await publish(await task([ECHO]));
    const asked = await task([ECHO], { knownChecksum: first.checksum });
    const second = await publish(asked);
    expect(second).toMatchObject({ checksum: first.checksum, problems: [] });
    expect("snapshot" in second).toBe(false);
    await expect(stat(asked.snapshotPath)).rejects.toThrow("ENOENT");
  });

  test("no new entries -> the cache file is not touched", async () => {
    const asked = await task([ECHO]);
    await publish(asked);
    await expect(stat(asked.cachePath)).rejects.toThrow("ENOENT");
  });

  test("new entries -> merged into the cache file under the original tool names", async () => {
    const entries = { s: { configHash: "h", tools: [ECHO], resources: [], cachedAt: 1 } };
    const asked = await task([ECHO], { entries });
    await publish(asked);
    expect(JSON.parse(await readFile(asked.cachePath, "utf8"))).toEqual({ version: 1, servers: entries });
  });

  test("neither file can be written -> two problems, the snapshot is still answered", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "file"), "");
    const entries = { s: { configHash: "h", tools: [ECHO], resources: [], cachedAt: 1 } };
    const places = { cachePath: join(folder, "file", "c"), snapshotPath: join(folder, "file", "s") };
    const { snapshot, problems } = await publish(await task([ECHO], { ...places, entries }));
    expect(catalogFrom(snapshot ?? new Uint8Array())?.tools).toHaveLength(1);
    expect(problems).toEqual([
      expect.stringContaining(places.cachePath),
      expect.stringContaining(places.snapshotPath),
    ]);
    expect(await readdir(folder)).toEqual(["file"]);
  });

  test("a folder in the place of the snapshot -> a problem, no temp file stays", async () => {
    const asked = await task([ECHO]);
    await mkdir(join(asked.snapshotPath, "x"), { recursive: true });
    const { problems } = await publish(asked);
    expect(problems).toHaveLength(1);
    expect(await readdir(join(asked.snapshotPath, ".."))).toEqual(["x.bin"]);
  });

  test("no servers -> a snapshot without tools", async () => {
    const { snapshot } = await publish(await task([], { servers: [] }));
    expect(catalogFrom(snapshot ?? new Uint8Array())).toMatchObject({ servers: [], tools: [] });
  });

  test("two servers -> tools in their order, each with its server", async () => {
    const servers = [
      { name: "z", project: false, tools: [ECHO] },
      { name: "a", project: true, description: "A.", tools: [ECHO] },
    ];
    const { snapshot } = await publish(await task([], { servers }));
    const catalog = catalogFrom(snapshot ?? new Uint8Array());
    expect(catalog?.tools.map((tool) => [tool.name, tool.server])).toEqual([
      ["z__echo", { name: "z", project: false }],
      ["a__echo", { name: "a", project: true, description: "A." }],
    ]);
  });
});

describe("publish: description of a tool", () => {
  it.each<[string, CachedTool, string]>([
    ["its own", { name: "t", description: " Does it. ", title: "T" }, "Does it."],
    ["none, a title", { name: "t", title: "Title" }, "Title"],
    ["none, a title in the annotations", { name: "t", annotations: { title: "Hint" } }, "Hint"],
    ["blank, a title", { name: "t", description: "  ", title: "Title" }, "Title"],
    ["nothing at all", { name: "t" }, "t of s"],
  ])("%s -> $2", async (_name, tool, description) => {
    expect(await publishedTools([tool])).toEqual([{ name: "s__t", description }]);
  });
});

describe("publish: a tool from a server that breaks the protocol", () => {
  const nested = (levels: number): unknown => {
    let schema: unknown = { type: "string" };
    for (let level = 0; level < levels; level++) schema = { type: "array", items: schema };
    return { type: "object", properties: { deep: schema } };
  };
  it.each<[string, unknown]>([
    ["a description that is a number", { name: "odd", description: 42 }],
    ["a description that is null", { name: "odd", description: null }],
    ["a title that is an object", { name: "odd", title: { a: 1 } }],
    ["a title in the annotations that is a number", { name: "odd", annotations: { title: 7 } }],
    ["annotations that are a text", { name: "odd", annotations: "x" }],
    ["annotations that are null", { name: "odd", annotations: null }],
    ["an input schema that is a text", { name: "odd", inputSchema: "x" }],
    ["an input schema of 20,000 levels", { name: "odd", inputSchema: nested(20_000) }],
    ["an empty name", { name: "" }],
  ])("%s -> costs the catalog no other tool", async (_name, odd) => {
    const tools = await publishedTools([odd as CachedTool, ECHO]);
    expect(tools).toContainEqual({ name: "s__echo", description: "Echoes." });
    for (const tool of tools) expect(tool.description).toBeTypeOf("string");
  });
});
