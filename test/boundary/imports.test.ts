/**
 * Owns: the limits of the built files: what they may contain and import, and their size. `npm test` builds first.
 */

import { readdirSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build, transform } from "esbuild";
import { describe, expect, test } from "vitest";
import { builtOutputs } from "../support/built-outputs.ts";
import { packedEntry } from "../support/run-package.ts";

const root = join(import.meta.dirname, "..", "..");
/** The files that Pi's main thread loads before its first paint, and all files that it loads. */
const FIRST = ["index.js", "dist/chunk.js"];
const MAIN = [...FIRST, "dist/later.js"];
/**
 * 0.3 KB of it find Pi's agent folder by Pi's own rule, since the snapshot lies there; 0.4 KB say behind what a variation selector
 * may stand, since two of them behind each letter hide two bytes; 0.1 KB where marks may be, so that no other script is looked through; 0.9 KB bound the declared tools, and keep a tool of a later
 * catalog without that catalog.
 */
const FIRST_BYTES = 77.2 * 1024;
/**
 * 0.4 KB of it show what stands behind a reference. 2 KB read arguments as the model meant them, and choose which tools are let go. 0.7 KB let several sessions of one process have servers, and end those of a session that Pi has disposed of. 0.7 KB keep the screens' files as well as the workers' for what follows an update. 2.2 KB tell and ask other extensions, which each session may need at once; 0.6 KB what a session keeps of its switches, 0.5 KB what a session at rest does about an edit, 0.5 KB end a prompt's dialog with its session.
 */
const MAIN_BYTES = 187.5 * 1024;
/**
 * What `npm install` lays on the disk. Of it the hub of shared servers has 42 KB, because it holds all that it loads: a
 * chunk that it shared with a worker could be deleted by an update while it runs. Its page and the limits have 20 KB, and the pictures of the pages 22 KB.
 * The reader of YAML has 47 KB: the fields of a skill are YAML, and are compared with what the server listed.
 * `serve` has 240 KB: the SDK's server for both eras of the protocol, whose reader of schemas the connection worker shares.
 * Sandboxes and smaller environments have 24 KB, 9 of them a page; the ways of signing in that need no browser, and the system's store, 95.
 * 10 KB read the JSON with comments that people paste behind `add`, where no worker runs yet.
 */
const PACKAGE_BYTES = 2_425_000;
/** The command, and the chunks that it shares with the screens. Names of chunks hold a hash of their content. */
const COMMAND = readdirSync(join(root, "dist"))
  .filter((name) => /^(cli|chunk-).*\.js$/.test(name))
  .map((name) => `dist/${name}`);
const WORKERS = readdirSync(join(root, "dist/workers")).map((name) => `dist/workers/${name}`);
const OUTPUTS = [...MAIN, ...COMMAND, "dist/screens.js", ...WORKERS];

const sourcesOf = async (output: string): Promise<string[]> => (await builtOutputs())[output]?.sources ?? [];

/** The output and those that it imports, with `import()` if `late`. */
async function filesOf(entry: string, late: boolean): Promise<string[]> {
  const outputs = await builtOutputs();
  const reached = new Set([entry]);
  for (const file of reached) {
    for (const { path, kind } of outputs[file]?.imports ?? []) {
      if (path in outputs && (late || kind !== "dynamic-import")) reached.add(path);
    }
  }
  return [...reached];
}

/** The source files that a worker may come to load. */
const workerSources = async (entry: string): Promise<string[]> =>
  (await Promise.all((await filesOf(entry, true)).map(sourcesOf))).flat();

/** Resolves with every specifier that the file imports, requires or imports dynamically. */
async function importsOf(file: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [join(root, file)],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    logLevel: "silent",
    outfile: "out.js",
    plugins: [
      {
        name: "list-imports",
        setup: (pluginBuild) => {
          pluginBuild.onResolve({ filter: /.*/ }, ({ kind, path }) =>
            kind === "entry-point" ? null : { path, external: true },
          );
        },
      },
    ],
  });
  return Object.values(metafile.inputs).flatMap((input) => input.imports.map(({ path }) => path));
}

/** Resolves with the files that an entry reaches by imports other than `import()`: they are evaluated with it. */
async function evaluatedAtOnce(entry: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    mainFields: ["module", "main"],
    logLevel: "silent",
    outfile: "out.js",
    external: ["@napi-rs/nice"],
  });
  const reached = new Set([entry]);
  for (const file of reached) {
    for (const { kind, path } of metafile.inputs[file]?.imports ?? []) {
      if (kind !== "dynamic-import" && path in metafile.inputs) reached.add(path);
    }
  }
  return [...reached];
}

const packageOf = (source: string): string | undefined =>
  /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1];

describe("built files", () => {
  test("main holds only src and its three libraries", async () => {
    const sources = (await Promise.all(MAIN.map(sourcesOf))).flat();
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.filter((source) => source.startsWith("workers/"))).toEqual([]);
    expect([...new Set(sources.map(packageOf).filter(Boolean))].sort()).toEqual([
      "comlink",
      "get-east-asian-width",
      "msgpackr",
    ]);
  });

  test("the factory loads no ranker, no runtime, no comlink and nothing of a dialog", async () => {
    const sources = (await Promise.all(FIRST.map(sourcesOf))).flat();
    expect(sources).toContain("src/runtime/later.ts");
    const later =
      /^src\/(shared\/search\/(search|ranked|synonyms)|runtime\/(runtime|keep-worker|thread)\.|ui\/(sign-in\/(run|flow|words)|asks\/(form|words)|dialogs\/questions)\.)|comlink/;
    expect(sources.filter((source) => later.test(source))).toEqual([]);
    expect((await sourcesOf("dist/later.js")).filter((source) => later.test(source)).length).toBeGreaterThan(
      5,
    );
  });

  test("workers hold no file of src except src/shared", async () => {
    const sources = [
      ...(await workerSources("dist/workers/connection.js")),
      ...(await workerSources("dist/workers/cache.js")),
    ];
    const foreign = sources.filter((source) => /^src\/(?!shared\/)/.test(source));
    expect(sources.length).toBeGreaterThan(10);
    expect(foreign).toEqual([]);
  });

  test("neither worker holds a file of the other", async () => {
    const foreign = (sources: readonly string[], folder: string): string[] =>
      sources.filter((source) => source.startsWith(`workers/${folder}/`));
    const [cache, connection] = [
      await workerSources("dist/workers/cache.js"),
      await workerSources("dist/workers/connection.js"),
    ];
    expect(foreign(cache, "connection")).toEqual([]);
    expect(foreign(connection, "cache")).toEqual([]);
    // Each worker holds its own files, which proves that the filter is real.
    expect(foreign(cache, "cache").length).toBeGreaterThan(10);
    expect(foreign(connection, "connection").length).toBeGreaterThan(100);
  });

  // It outlives an update of the package, which deletes files.
  test("the hub is one file, without a file of a worker and without a library but the one that starts programs", async () => {
    expect(await filesOf("dist/workers/hub.js", true)).toEqual(["dist/workers/hub.js"]);
    const sources = await sourcesOf("dist/workers/hub.js");
    expect(sources).toContain("workers/hub/hub.ts");
    expect(
      sources.filter((source) => /^(src\/(?!shared\/)|workers\/(cache|connection)\/)/.test(source)),
    ).toEqual([]);
    expect([...new Set(sources.map(packageOf).filter(Boolean))].sort()).toEqual(["cross-spawn"]);
  });

  test("the cache worker holds no MCP SDK", async () => {
    const packages = (await workerSources("dist/workers/cache.js")).map(packageOf).filter(Boolean);
    expect([...new Set(packages)].sort()).toEqual(["@eslint-community/regexpp", "msgpackr"]);
  });

  test.each(OUTPUTS)("%s imports only Node's own modules and its sibling chunks", async (file) => {
    const builtin =
      /^node:|^(assert|buffer|child_process|crypto|events|fs|http|https|module|net|os|path|perf_hooks|stream|string_decoder|tls|url|util|worker_threads|zlib)(\/|$)/;
    const imports = await importsOf(file);
    const ofMain = MAIN.includes(file) ? ["dist/chunk.js", "dist/later.js", "dist/screens.js"] : [];
    const ofCommand =
      COMMAND.includes(file) || file === "dist/screens.js" ? [...COMMAND, "dist/workers/serve.js"] : ofMain;
    const beside = WORKERS.includes(file) ? WORKERS : ofCommand;
    const others = imports.filter((path) => !builtin.test(path)).map((path) => join(dirname(file), path));
    expect(others.filter((path) => !beside.includes(path))).toEqual([]);
  });

  test("the command holds nothing of Pi, of a session of Pi, of its tools and of its screens", async () => {
    const sources = (await Promise.all(COMMAND.map(sourcesOf))).flat();
    expect(sources).toContain("src/runtime/runtime.ts");
    expect(sources.filter((source) => /^(src\/(pi|session|tools|ui|index)|workers)\b/.test(source))).toEqual(
      [],
    );
    const packages = [...new Set(sources.map(packageOf).filter(Boolean))].sort();
    expect(packages).toEqual(["comlink", "get-east-asian-width", "jsonc-parser", "msgpackr"]);
  });

  test("the SDK's server is read by nobody but serve, and without a schema compiler", async () => {
    const sources = await sourcesOf("dist/workers/serve.js");
    const packages = [...new Set(sources.map(packageOf).filter(Boolean))].sort();
    expect(packages).toEqual(["@modelcontextprotocol/core", "@modelcontextprotocol/server"]);
    expect(sources.filter((source) => source.includes("ajvProvider"))).toEqual([]);
    const others = [...OUTPUTS].filter((file) => file !== "dist/workers/serve.js");
    const held = (await Promise.all(others.map(sourcesOf))).flat();
    expect(held.filter((source) => source.includes("@modelcontextprotocol/server/"))).toEqual([]);
  });

  test("the command's first file can be run, imports nothing at once, and an old Node can read it", async () => {
    const text = await readFile(join(root, "dist/cli.js"), "utf8");
    expect(text.startsWith("#!/usr/bin/env node\n")).toBe(true);
    expect((await stat(join(root, "dist/cli.js"))).mode & 0o111).toBe(0o111);
    expect(text.match(/\bimport\b/g)).toEqual(["import"]);
    expect(text).toContain('import("./cli-main.js")');
    await expect(transform(text, { target: "node14" })).resolves.toMatchObject({ warnings: [] });
  });

  test.each(OUTPUTS)("%s -> V8 holds it with one byte a character", async (file) => {
    const text = await readFile(join(root, file), "utf8");
    expect([...text].filter((character) => character > "\u007f")).toEqual([]);
  });

  test("the connection worker imports no heavy module of Node before it is needed", async () => {
    const files = await filesOf("dist/workers/connection.js", false);
    const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
    const atOnce = texts.flatMap((text) =>
      [...text.matchAll(/\bfrom ?"node:([^"]+)"/g)].map((match) => match[1]),
    );
    expect(atOnce).toContain("fs/promises");
    const heavy = ["child_process", "crypto", "http", "https", "tls", "zlib"];
    expect(atOnce.filter((name) => heavy.includes(name ?? ""))).toEqual([]);
  });

  test("the words about each key, which the JSON Schema has, are not in the worker", async () => {
    const schema = await readFile(join(root, "schema/mcp.schema.json"), "utf8");
    const words = [...schema.matchAll(/"description": ?("(?:[^"\\]|\\.){30,}")/g)].map(
      ([, text = ""]): string => JSON.parse(text),
    );
    expect(words.length).toBeGreaterThan(50);
    const texts = await Promise.all(WORKERS.map((file) => readFile(join(root, file), "utf8")));
    expect(texts.join("").length).toBeGreaterThan(500_000);
    expect(words.filter((one) => texts.some((text) => text.includes(one)))).toEqual([]);
  });

  test("the connection worker evaluates no heavy library before it is needed", async () => {
    const packages = (await evaluatedAtOnce("workers/connection.ts")).map(packageOf).filter(Boolean);
    expect(packages).toContain("zod");
    const heavy = [
      "@modelcontextprotocol/sdk",
      "chokidar",
      "cross-spawn",
      "oauth4webapi",
      "piscina",
      "semver",
    ];
    expect([...new Set(packages)].filter((name) => heavy.includes(name ?? ""))).toEqual([]);
  });

  test("the connection worker reads seven files at its start, and half of its code", async () => {
    const sizeOf = async (files: readonly string[]): Promise<number> =>
      (await Promise.all(files.map(async (file) => (await stat(join(root, file))).size))).reduce(
        (sum, bytes) => sum + bytes,
        0,
      );
    const atStart = await filesOf("dist/workers/connection.js", false);
    const all = await filesOf("dist/workers/connection.js", true);
    // Two of them are shared with the thread for long messages, which saves the package 100 KB and that thread a compile; zod,
    // which `serve` needs as well, is another: a start takes as long as before, and the package has 83 KB less.
    expect(atStart.length).toBeLessThanOrEqual(7);
    expect(await sizeOf(atStart)).toBeLessThan(0.6 * (await sizeOf(all)));
  });

  test("the thread for long messages never loads what starts a connection worker", async () => {
    const files = await filesOf("dist/workers/heavy.js", true);
    expect(files).toContain("dist/workers/heavy.js");
    const sources = (await Promise.all(files.map(sourcesOf))).flat();
    expect(sources).toContain("workers/connection/skills/check.ts");
    expect(sources).not.toContain("workers/connection.ts");
  });

  test("a session without a remote server evaluates nothing of HTTP and of a sign-in", async () => {
    const files = await evaluatedAtOnce("workers/connection.ts");
    expect(files).toContain("workers/connection/auth/auth.ts");
    const later =
      /^workers\/connection\/(web|transports|auth\/(discovery|grants|requests|sign-in|store|tokens))\//;
    expect(files.filter((file) => later.test(file))).toEqual([]);
  });

  test.each([
    ["before Pi's first paint", FIRST, FIRST_BYTES],
    ["in all", MAIN, MAIN_BYTES],
  ])("the code that main loads %s -> its size is bounded", async (what, files, limit) => {
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(root, file))).size));
    const size = sizes.reduce((sum, bytes) => sum + bytes, 0);
    process.stdout.write(`main loads ${(size / 1024).toFixed(1)} KB ${what}\n`);
    expect(size).toBeLessThan(limit);
  });
});

test("the package is small on the disk", async () => {
  const folder = dirname(await packedEntry());
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((file) => join(file.parentPath, file.name));
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  process.stdout.write(`the package has ${(bytes / 1_000).toFixed(0)} KB unpacked\n`);
  expect(bytes).toBeLessThan(PACKAGE_BYTES);
});
