/** Owns: the task that makes the snapshot of what servers listed. */
import { rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, test } from "vitest";
import { catalogFrom, inputSchemaOf } from "../../../../src/catalog/catalog.ts";
import { searchCatalog } from "../../../../src/catalog/search.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/protocol/snapshot.ts";
import type { PublishedTool } from "../../../../workers/cache/catalog-snapshot.ts";
import { type PublishTask, publication, publish } from "../../../../workers/cache/publish.ts";
import type { StoredSnapshot } from "../../../../workers/cache/source.ts";
import { type CachedTool, normalizeTools } from "../../../../workers/cache/tool.ts";
import { tempFolder } from "../../temp-folder.ts";

const ECHO: CachedTool = {
  name: "echo",
  description: "Echoes.",
  inputSchema: { type: "object", properties: { message: { type: "string" } } },
};

const exposed = (tools: readonly CachedTool[], direct = false): PublishedTool[] =>
  tools.map((tool) => ({ ...tool, direct }));

const task = (tools: CachedTool[], rest: Partial<PublishTask> = {}): PublishTask => ({
  servers: [{ name: "s", project: false, toolsKnown: true, tools: exposed(tools) }],
  settings: DEFAULT_CATALOG_SETTINGS,
  ...rest,
});

function publishedTools(tools: CachedTool[]): { name: string; description: string }[] {
  const { snapshot, problems } = publication(task(tools));
  expect(problems).toEqual([]);
  const catalog = catalogFrom(snapshot);
  return (catalog?.tools ?? []).map(({ name, description }) => ({ name, description }));
}

describe("publication", () => {
  test("a catalog -> the snapshot, which can be searched, and its checksum, the same each time", () => {
    const { snapshot, checksum, problems } = publication(task([ECHO]));
    expect(problems).toEqual([]);
    const catalog = catalogFrom(snapshot);
    expect(catalog?.checksum).toBe(checksum);
    expect(catalog && searchCatalog(catalog, "echo", 5).hits.map(({ tool }) => tool.name)).toEqual([
      "s__echo",
    ]);
    expect(catalog?.tools.map(inputSchemaOf)).toEqual([ECHO.inputSchema]);
    expect(publication(task([ECHO])).checksum).toBe(checksum);
    expect(publication(task([{ ...ECHO, title: "Other" }])).checksum).toBe(checksum);
    expect(publication(task([{ ...ECHO, description: "Other." }])).checksum).not.toBe(checksum);
  });

  test("no servers -> a snapshot without tools", () => {
    const { snapshot } = publication(task([], { servers: [] }));
    expect(catalogFrom(snapshot)).toMatchObject({ servers: [], tools: [] });
  });

  test("two servers -> tools in their order, each with its server", () => {
    const servers = [
      { name: "z", project: false, toolsKnown: true, tools: exposed([ECHO]) },
      { name: "a", project: true, toolsKnown: true, description: "A.", tools: exposed([ECHO]) },
    ];
    const { snapshot } = publication(task([], { servers }));
    const catalog = catalogFrom(snapshot);
    expect(catalog?.tools.map((tool) => [tool.name, tool.server])).toEqual([
      ["z__echo", { name: "z", project: false, toolsKnown: true }],
      ["a__echo", { name: "a", project: true, toolsKnown: true, description: "A." }],
    ]);
  });
});

describe("publication: more than the limit", () => {
  it.each<[string, number, string[], string[]]>([
    ["room for all", 2 ** 20, ["one", "two", "three"], []],
    ["room for two", 12_000, ["one", "two"], ["three"]],
    ["room for one", 7_500, ["one"], ["two", "three"]],
    ["room for none", 900, [], ["one", "two", "three"]],
  ])(
    "a catalog of equal servers with %s -> the last ones' tools are left out, one line",
    (_name, limitBytes, kept, out) => {
      const servers = ["one", "two", "three"].map((name) => ({
        name,
        project: false,
        toolsKnown: true,
        tools: exposed([{ ...ECHO, inputSchema: { type: "object", description: "x".repeat(5_000) } }]),
      }));
      const { snapshot, problems } = publication(task([], { servers }), { limitBytes });
      expect(snapshot.length).toBeLessThanOrEqual(limitBytes);
      const catalog = catalogFrom(snapshot);
      expect(catalog?.tools.map((tool) => tool.server.name)).toEqual(kept);
      expect(catalog?.servers.map((server) => server.name)).toEqual(["one", "two", "three"]);
      expect(problems).toEqual(
        out.length === 0 ? [] : [expect.stringContaining(`tools of ${out.join(", ")} `)],
      );
    },
  );

  test("one server that is too big, named first -> only its tools are left out, all names stay", () => {
    const server = (name: string, chars: number) => {
      const inputSchema = { type: "object", description: "x".repeat(chars) };
      return { name, project: false, toolsKnown: true, tools: exposed([{ ...ECHO, inputSchema }]) };
    };
    const servers = [server("evil", 100_000), server("a", 10), server("big", 60_000), server("a-", 10)];
    const published = (limitBytes: number) => {
      const { snapshot, problems } = publication(task([], { servers }), { limitBytes });
      const names = catalogFrom(snapshot)?.tools.map(({ name }) => name);
      return { names, problems };
    };
    const all = published(2 ** 20).names ?? [];
    expect(all).toHaveLength(4);
    expect(published(2 ** 17)).toEqual({
      names: all.slice(1),
      problems: [expect.stringContaining("the tools of evil are left out")],
    });
    expect(published(2 ** 15)).toEqual({
      names: [all[1], all[3]],
      problems: [expect.stringContaining("the tools of evil, big are left out")],
    });
  });
});

describe("publication: description of a tool", () => {
  it.each<[string, CachedTool, string]>([
    ["its own", { name: "t", description: " Does it. ", title: "T" }, "Does it."],
    ["none, a title", { name: "t", title: "Title" }, "Title"],
    ["none, a title in the annotations", { name: "t", annotations: { title: "Hint" } }, "Hint"],
    ["blank, a title", { name: "t", description: "  ", title: "Title" }, "Title"],
    ["nothing at all", { name: "t" }, "t of s"],
  ])("%s -> $2", (_name, tool, description) => {
    expect(publishedTools([tool])).toEqual([{ name: "s__t", description }]);
  });
});

test("parameters that no provider would take the name of -> told in the description", () => {
  const inputSchema = { type: "object", properties: { "filter[id]": { type: "string" } } };
  const { snapshot, repairs } = publication(task([{ ...ECHO, inputSchema }]));
  const [tool] = catalogFrom(snapshot)?.tools ?? [];
  expect(tool?.description).toBe('Echoes.\nAlso takes "filter[id]" (string).');
  expect(tool && inputSchemaOf(tool)).toEqual({ type: "object", properties: {} });
  expect(repairs).toEqual([
    "s: schemas repaired, parameters with names that providers refuse were moved to the description: echo",
  ]);
});

describe("publication: a tool from a server that breaks the protocol", () => {
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
    ["a key of 45 MB in a schema", { name: "odd", inputSchema: { ["k".repeat(45 * 2 ** 20)]: {} } }],
    ["a description of 80 MB", { name: "odd", description: "x ".repeat(40 * 2 ** 20) }],
    ["an empty name", { name: "" }],
  ])("%s -> costs the catalog no other tool", (_name, odd) => {
    // As the client and the cache hand on what a server listed.
    const tools = publishedTools(normalizeTools([odd, ECHO]));
    expect(tools).toContainEqual({ name: "s__echo", description: "Echoes." });
    for (const tool of tools) expect(tool.description).toBeTypeOf("string");
  });
});

describe("publish", () => {
  /** As packed: all code that makes snapshots is one file. */
  async function packed(code = "1"): Promise<{ codeUrl: string; path: string }> {
    const folder = await tempFolder();
    await writeFile(join(folder, "cache.js"), code);
    return { codeUrl: pathToFileURL(join(folder, "cache.js")).href, path: join(folder, "x.bin") };
  }

  async function stored(tools: CachedTool[], { codeUrl, path }: { codeUrl: string; path: string }) {
    const { snapshot, checksum } = await publish(task(tools), codeUrl);
    await writeFile(path, snapshot ?? "");
    return { path, checksum };
  }

  test("what the stored one was made of -> not made anew, nothing told", async () => {
    const place = await packed();
    const known = await stored([ECHO], place);
    expect(await publish(task([ECHO], { stored: known }), place.codeUrl)).toEqual({
      checksum: known.checksum,
      problems: [],
      notices: [],
      repairs: [],
      threadId: expect.any(Number),
    });
  });

  it.each<[string, (known: StoredSnapshot, codeUrl: string) => Promise<[PublishTask, string]>]>([
    ["another tool", async (known, url) => [task([{ ...ECHO, name: "other" }], { stored: known }), url]],
    [
      "another title, which no snapshot shows",
      async (known, url) => [task([{ ...ECHO, title: "T" }], { stored: known }), url],
    ],
    [
      "other settings",
      async (known, url) => [
        task([ECHO], { stored: known, settings: { ...DEFAULT_CATALOG_SETTINGS, search: "weighted" } }),
        url,
      ],
    ],
    ["nothing stored", async (_known, url) => [task([ECHO]), url]],
    [
      "another one of that name since",
      async (known, url) => [task([ECHO], { stored: { ...known, checksum: 1 } }), url],
    ],
    [
      "the file gone",
      async (known, url) => {
        await rm(known.path);
        return [task([ECHO], { stored: known }), url];
      },
    ],
    [
      "the file cut",
      async (known, url) => {
        await truncate(known.path, 20);
        return [task([ECHO], { stored: known }), url];
      },
    ],
    [
      "code of another version",
      async (known) => [task([ECHO], { stored: known }), (await packed("2")).codeUrl],
    ],
    ["code that is gone", async (known, url) => [task([ECHO], { stored: known }), `${url}.gone.js`]],
    ["raw TypeScript", async (known) => [task([ECHO], { stored: known }), import.meta.url]],
  ])("%s -> made", async (_name, change) => {
    const place = await packed();
    const [asked, codeUrl] = await change(await stored([ECHO], place), place.codeUrl);
    const { snapshot } = await publish(asked, codeUrl);
    expect(catalogFrom(snapshot ?? new Uint8Array())?.tools).toHaveLength(1);
  });
});
