/**
 * Owns: two rules for the tests themselves. Only test files call the hooks of Vitest at their top level: files share processes, so
 * the code of another module runs for the first of its files only, and in all later files its hook would be missing. Temp
 * folders have real paths: elsewhere the system's temp folder is behind a link.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const tests = join(import.meta.dirname, "..");
/** Vitest runs this file before each test file. */
const SETUP = "support/cleanup-setup.ts";

/** The one that makes temp folders. */
const FOLDERS = "support/temp-folder.ts";

const callsHooks = (text: string): boolean => /^(before|after)(Each|All)\(/m.test(text);

const namesOfAll = async (): Promise<string[]> =>
  (await readdir(tests, { recursive: true })).map((name) => name.replaceAll("\\", "/"));
const textsOf = (names: readonly string[]): Promise<string[]> =>
  Promise.all(names.map((name) => readFile(join(tests, name), "utf8")));

test("a module that several test files import -> registers cleanups (support/cleanup.ts), calls no hook", async () => {
  const modules = (await namesOfAll()).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const texts = await textsOf(modules);
  expect(modules.filter((_, i) => callsHooks(texts[i] ?? ""))).toEqual([SETUP]);
});

test("a folder in the temp folder -> made by support/temp-folder.ts", async () => {
  const files = (await namesOfAll()).filter((name) => name.endsWith(".ts"));
  const texts = await textsOf(files);
  expect(files.filter((_, i) => /mkdtemp\w*\([^;]*\btmpdir\(\)/.test(texts[i] ?? ""))).toEqual([FOLDERS]);
});
