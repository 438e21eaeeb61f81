/** Owns: which tasks run on the connection worker's own thread, and which errors mean that the other thread has ended. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findSmall, isLight, isThreadEnd } from "../../../../../workers/connection/catalog/cache-worker.ts";
import { tempFolder } from "../../../temp-folder.ts";

test.each<[string, unknown, boolean]>([
  ["the abort of a task", new DOMException("The task has been aborted", "AbortError"), true],
  ["no memory left", Object.assign(new Error("limit"), { code: "ERR_WORKER_OUT_OF_MEMORY" }), true],
  ["an exit of the thread", new Error("worker exited with code: 7"), true],
  ["a pool that is being destroyed", new Error("Terminating worker thread"), true],
  ["an error of the task", new Error("broken"), false],
  ["an error of the task that mentions an exit", new Error("the worker exited with code: 7"), false],
  ["another code", Object.assign(new Error("no"), { code: "ENOENT" }), false],
  ["something thrown that is not an error", "worker exited with code: 7", false],
])("isThreadEnd: %s", (_case, error, isEnd) => {
  expect(isThreadEnd(error)).toBe(isEnd);
});

const MEBIBYTE = 1024 * 1024;

/** A tree of that many objects, each with one key. */
const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = { k: value };
  return value;
};

test.each<[string, unknown, number, boolean]>([
  ["a text of the limit", "x".repeat(100), 100, true],
  ["a text above it", "x".repeat(101), 100, false],
  ["texts that are above it together", ["x".repeat(50), "x".repeat(50)], 100, false],
  ["keys count", { ["x".repeat(100)]: 1 }, 100, false],
  ["values without text count", Array.from({ length: 20 }, () => null), 100, false],
  ["objects within objects count, however deep", nested(100_000), 100, false],
  ["a list of a thousand tools", tools(1_000), 2 * MEBIBYTE, true],
  ["a list of ten thousand tools", tools(10_000), 2 * MEBIBYTE, false],
  ["nothing", undefined, 100, true],
])("isLight: %s", (_case, value, characters, expected) => {
  expect(isLight(value, characters)).toBe(expected);
});

function tools(count: number): unknown[] {
  const properties = Object.fromEntries(
    ["title", "body", "labels"].map((name) => [name, { type: "string", description: "d".repeat(80) }]),
  );
  return Array.from({ length: count }, (_, i) => ({
    name: `tool_${i}`,
    description: "d".repeat(200),
    inputSchema: { type: "object", properties, required: ["title"] },
  }));
}

/** A file whose tasks answer their name. */
async function cacheFile(): Promise<string> {
  const file = join(await tempFolder(), "cache.mjs");
  const names = ["hashDefinitions", "readLines", "readCache", "storeEntries", "publishStored"];
  names.push("keepSnapshot", "publish");
  await writeFile(file, names.map((name) => `export const ${name} = async () => "${name}";\n`).join(""));
  return file;
}

/** What the task answers here; undefined if it is one for the thread. */
async function answer(name: string, task: unknown, file?: string): Promise<unknown> {
  const here = await findSmall(file ?? (await cacheFile()), name, task);
  return here?.();
}

test("small tasks run here", async () => {
  const path = join(await tempFolder(), "mcp-cache.json");
  await writeFile(path, "x".repeat(MEBIBYTE));
  expect(await answer("hashDefinitions", [{ command: "c" }])).toBe("hashDefinitions");
  expect(await answer("readCache", { path, definitions: {} })).toBe("readCache");
  expect(await answer("readCache", { path: `${path}.missing`, definitions: {} })).toBe("readCache");
  expect(await answer("storeEntries", { path, entries: {}, used: {} })).toBe("storeEntries");
  expect(await answer("publishStored", { servers: [], settings: {} })).toBe("publishStored");
  expect(await answer("keepSnapshot", { path, isNew: false })).toBe("keepSnapshot");
});

test("large tasks, and those that work on schemas, are for the thread", async () => {
  const path = join(await tempFolder(), "mcp-cache.json");
  await writeFile(path, "x".repeat(3 * MEBIBYTE));
  const entries = { s: { configHash: "h", tools: tools(10_000), cachedAt: 1 } };
  expect(await answer("hashDefinitions", [{ args: ["x".repeat(3 * MEBIBYTE)] }])).toBeUndefined();
  expect(await answer("readCache", { path, definitions: {} })).toBeUndefined();
  // It makes nothing but bytes of most of the file.
  expect(await answer("readLines", { path, definitions: {} })).toBe("readLines");
  expect(await answer("storeEntries", { path, entries: {}, used: {} })).toBeUndefined();
  expect(await answer("storeEntries", { path: `${path}.missing`, entries, used: {} })).toBeUndefined();
  expect(await answer("publishStored", { servers: [{ tools: tools(10_000) }] })).toBeUndefined();
  expect(await answer("keepSnapshot", { path, isNew: true })).toBeUndefined();
  expect(await answer("publish", { servers: [], settings: {} })).toBeUndefined();
});

test("code that cannot be loaded -> a task for the thread, which tells why", async () => {
  const gone = join(await tempFolder(), "gone.mjs");
  expect(await answer("hashDefinitions", [], gone)).toBeUndefined();
});
