/** Owns: the task that stores what servers listed and makes the snapshot. */
import { mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { catalogFrom, inputSchemaOf } from "../../../../src/catalog/catalog.ts";
import { searchCatalog } from "../../../../src/catalog/search.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/protocol/snapshot.ts";
import type { PublishedTool } from "../../../../workers/cache/catalog-snapshot.ts";
import { nodeFiles } from "../../../../workers/cache/file-system.ts";
import { type PublishContext, type PublishTask, publish } from "../../../../workers/cache/publish.ts";
import { type CachedTool, normalizeTools } from "../../../../workers/cache/tool.ts";
import { tempFolder } from "../../temp-folder.ts";
import { DAY, failingFiles, MINUTE, NOW, type Step } from "./support.ts";

const ECHO: CachedTool = {
  name: "echo",
  description: "Echoes.",
  inputSchema: { type: "object", properties: { message: { type: "string" } } },
};

const exposed = (tools: readonly CachedTool[], direct = false): PublishedTool[] =>
  tools.map((tool) => ({ ...tool, direct }));

async function task(tools: CachedTool[], rest: Partial<PublishTask> = {}): Promise<PublishTask> {
  const folder = await tempFolder();
  return {
    snapshotPath: join(folder, "mcp-snapshots", "x.bin"),
    servers: [{ name: "s", project: false, toolsKnown: true, tools: exposed(tools) }],
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
    expect(catalog && searchCatalog(catalog, "echo", 5).hits.map(({ tool }) => tool.name)).toEqual([
      "s__echo",
    ]);
    expect(catalog?.tools.map(inputSchemaOf)).toEqual([ECHO.inputSchema]);
    expect(Buffer.compare(await readFile(asked.snapshotPath), snapshot ?? new Uint8Array())).toBe(0);
    expect((await stat(asked.snapshotPath)).mode & 0o777).toBe(0o600);
  });

  test("the checksum that main has already -> no snapshot, and the file is not written", async () => {
    const asked = await task([ECHO]);
    const { checksum } = await publish(asked);
    await writeFile(asked.snapshotPath, "as it was");
    const again = await publish({ ...asked, knownChecksum: checksum });
    expect(again).toMatchObject({ checksum, problems: [] });
    expect("snapshot" in again).toBe(false);
    expect(await readFile(asked.snapshotPath, "utf8")).toBe("as it was");
  });

  test("the checksum that main has already, but no file -> written for the next start", async () => {
    const { checksum } = await publish(await task([ECHO]));
    const asked = await task([ECHO], { knownChecksum: checksum });
    expect("snapshot" in (await publish(asked))).toBe(false);
    expect(catalogFrom(await readFile(asked.snapshotPath))?.checksum).toBe(checksum);
  });

  test("a folder that cannot be made -> a problem, the snapshot is still answered", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "file"), "");
    const snapshotPath = join(folder, "file", "s");
    const { snapshot, problems } = await publish(await task([ECHO], { snapshotPath }));
    expect(catalogFrom(snapshot ?? new Uint8Array())?.tools).toHaveLength(1);
    expect(problems).toEqual([expect.stringContaining(snapshotPath)]);
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
      { name: "z", project: false, toolsKnown: true, tools: exposed([ECHO]) },
      { name: "a", project: true, toolsKnown: true, description: "A.", tools: exposed([ECHO]) },
    ];
    const { snapshot } = await publish(await task([], { servers }));
    const catalog = catalogFrom(snapshot ?? new Uint8Array());
    expect(catalog?.tools.map((tool) => [tool.name, tool.server])).toEqual([
      ["z__echo", { name: "z", project: false, toolsKnown: true }],
      ["a__echo", { name: "a", project: true, toolsKnown: true, description: "A." }],
    ]);
  });
});

describe("publish: age of the file", () => {
  const at = (rest: Partial<PublishContext> = {}): PublishContext => ({
    files: nodeFiles,
    now: () => NOW,
    limitBytes: 2 ** 20,
    ...rest,
  });
  const seconds = (ms: number): number => ms / 1_000;

  it.each([
    ["an hour ago", "left", 60 * MINUTE],
    ["two days ago", "touched", 2 * DAY],
  ])("unchanged, used %s -> %s", async (_name, outcome, ageMs) => {
    const asked = await task([ECHO]);
    const { checksum } = await publish(asked, at());
    const then = seconds(NOW - ageMs);
    await utimes(asked.snapshotPath, then, then);
    await publish({ ...asked, knownChecksum: checksum }, at());
    const { mtimeMs } = await stat(asked.snapshotPath);
    expect(mtimeMs === NOW - ageMs ? "left" : "touched").toBe(outcome);
  });

  test("a write -> snapshots unused for 30 days and old temp files go, all else stays", async () => {
    const asked = await task([ECHO]);
    const folder = join(asked.snapshotPath, "..");
    await mkdir(folder);
    const ages: Record<string, number> = {
      "old.bin": 31 * DAY,
      "young.bin": 29 * DAY,
      "old.txt": 99 * DAY,
      ".x.bin.0123456789ab.tmp": 2 * 60 * MINUTE,
      ".y.bin.0123456789ab.tmp": MINUTE,
    };
    for (const [name, ageMs] of Object.entries(ages)) {
      await writeFile(join(folder, name), "");
      await utimes(join(folder, name), seconds(NOW - ageMs), seconds(NOW - ageMs));
    }
    await publish(asked, at());
    expect((await readdir(folder)).sort()).toEqual(
      [".y.bin.0123456789ab.tmp", "old.txt", "x.bin", "young.bin"].sort(),
    );
  });

  it.each<[string, number, string[], string[]]>([
    ["room for all", 2 ** 20, ["one", "two", "three"], []],
    ["room for two", 12_000, ["one", "two"], ["three"]],
    ["room for one", 7_500, ["one"], ["two", "three"]],
    ["room for none", 900, [], ["one", "two", "three"]],
  ])(
    "a catalog of equal servers with %s -> the last ones' tools are left out, one line",
    async (_name, limitBytes, kept, out) => {
      const servers = ["one", "two", "three"].map((name) => ({
        name,
        project: false,
        toolsKnown: true,
        tools: exposed([{ ...ECHO, inputSchema: { type: "object", description: "x".repeat(5_000) } }]),
      }));
      const { snapshot, problems } = await publish(await task([], { servers }), at({ limitBytes }));
      expect(snapshot?.length).toBeLessThanOrEqual(limitBytes);
      const catalog = catalogFrom(snapshot ?? new Uint8Array());
      expect(catalog?.tools.map((tool) => tool.server.name)).toEqual(kept);
      expect(catalog?.servers.map((server) => server.name)).toEqual(["one", "two", "three"]);
      expect(problems).toEqual(
        out.length === 0 ? [] : [expect.stringContaining(`tools of ${out.join(", ")} `)],
      );
    },
  );

  test("one server that is too big, named first -> only its tools are left out, all names stay", async () => {
    const server = (name: string, chars: number) => {
      const inputSchema = { type: "object", description: "x".repeat(chars) };
      return { name, project: false, toolsKnown: true, tools: exposed([{ ...ECHO, inputSchema }]) };
    };
    const servers = [server("evil", 100_000), server("a", 10), server("big", 60_000), server("a-", 10)];
    const published = async (limitBytes: number) => {
      const { snapshot, problems } = await publish(await task([], { servers }), at({ limitBytes }));
      const names = catalogFrom(snapshot ?? new Uint8Array())?.tools.map(({ name }) => name);
      return { names, problems };
    };
    const all = (await published(2 ** 20)).names ?? [];
    expect(all).toHaveLength(4);
    expect(await published(2 ** 17)).toEqual({
      names: all.slice(1),
      problems: [expect.stringContaining("the tools of evil are left out")],
    });
    expect(await published(2 ** 15)).toEqual({
      names: [all[1], all[3]],
      problems: [expect.stringContaining("the tools of evil, big are left out")],
    });
  });

  const steps: [Step, RegExp][] = [
    ["find", /x\.bin$/],
    ["create", /\.tmp$/],
    ["write", /\.tmp$/],
    ["sync", /\.tmp$/],
    ["close", /\.tmp$/],
    ["rename", /x\.bin$/],
  ];
  const faults = steps.flatMap(([step, path]) =>
    ["ENOSPC", "EACCES", "EIO"].map((code): [Step, string, RegExp] => [step, code, path]),
  );
  it.each(faults)(
    "%s fails with %s -> snapshot answered, old file whole, one line, no temp file",
    async (step, code, path) => {
      const asked = await task([ECHO]);
      await publish(asked, at());
      const before = await readFile(asked.snapshotPath);
      const files = failingFiles(step, code, path);
      const changed = {
        ...asked,
        servers: [{ name: "other", project: false, toolsKnown: true, tools: exposed([ECHO]) }],
      };
      const { snapshot, problems } = await publish(changed, at({ files }));
      expect(files.failures).toBeGreaterThan(0);
      expect(catalogFrom(snapshot ?? new Uint8Array())?.tools[0]?.name).toBe("other__echo");
      expect(problems).toEqual([expect.stringContaining(code)]);
      expect(Buffer.compare(await readFile(asked.snapshotPath), before)).toBe(0);
      expect(await readdir(join(asked.snapshotPath, ".."))).toEqual(["x.bin"]);
    },
  );

  it.each<[Step, RegExp]>([
    ["list", /mcp-snapshots$/],
    ["remove", /./],
    ["find", /old\.bin$/],
  ])("%s fails while old snapshots are pruned -> no problem, the snapshot is written", async (step, path) => {
    const asked = await task([ECHO]);
    const old = join(asked.snapshotPath, "..", "old.bin");
    await mkdir(join(old, ".."));
    await writeFile(old, "");
    await utimes(old, 1, 1);
    const files = failingFiles(step, "EIO", path);
    expect((await publish(asked, at({ files }))).problems).toEqual([]);
    expect(files.failures).toBeGreaterThan(0);
    expect(catalogFrom(await readFile(asked.snapshotPath))?.tools).toHaveLength(1);
  });

  test("touch fails -> one line, nothing sent, the file stays", async () => {
    const asked = await task([ECHO]);
    const { checksum } = await publish(asked, at());
    await utimes(asked.snapshotPath, 1, 1);
    const files = failingFiles("touch", "EACCES", /./);
    const { problems } = await publish({ ...asked, knownChecksum: checksum }, at({ files }));
    expect(problems).toEqual([expect.stringContaining("EACCES")]);
    expect(catalogFrom(await readFile(asked.snapshotPath))?.checksum).toBe(checksum);
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

test("parameters that no provider would take the name of -> told in the description", async () => {
  const inputSchema = { type: "object", properties: { "filter[id]": { type: "string" } } };
  const { snapshot, repairs } = await publish(await task([{ ...ECHO, inputSchema }]));
  const [tool] = catalogFrom(snapshot ?? new Uint8Array())?.tools ?? [];
  expect(tool?.description).toBe('Echoes.\nAlso takes "filter[id]" (string).');
  expect(tool && inputSchemaOf(tool)).toEqual({ type: "object", properties: {} });
  expect(repairs).toEqual([
    "s: schemas repaired, parameters with names that providers refuse were moved to the description: echo",
  ]);
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
    ["a key of 45 MB in a schema", { name: "odd", inputSchema: { ["k".repeat(45 * 2 ** 20)]: {} } }],
    ["a description of 80 MB", { name: "odd", description: "x ".repeat(40 * 2 ** 20) }],
    ["an empty name", { name: "" }],
  ])("%s -> costs the catalog no other tool", async (_name, odd) => {
    // As the client and the cache hand on what a server listed.
    const tools = await publishedTools(normalizeTools([odd, ECHO]));
    expect(tools).toContainEqual({ name: "s__echo", description: "Echoes." });
    for (const tool of tools) expect(tool.description).toBeTypeOf("string");
  });
});
