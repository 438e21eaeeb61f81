/**
 * Owns: the rule that only test files call the hooks of Vitest at their top level. Files share processes, so the code of
 * another module runs for the first of its files only; in all later files its hook would be missing.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const tests = join(import.meta.dirname, "..");
/** Vitest runs this file before each test file. */
const SETUP = "support/cleanup-setup.ts";

const callsHooks = (text: string): boolean => /^(before|after)(Each|All)\(/m.test(text);

test("a module that several test files import -> registers cleanups (support/cleanup.ts), calls no hook", async () => {
  const names = (await readdir(tests, { recursive: true })).map((name) => name.replaceAll("\\", "/"));
  const modules = names.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const texts = await Promise.all(modules.map((name) => readFile(join(tests, name), "utf8")));
  expect(modules.filter((_, i) => callsHooks(texts[i] ?? ""))).toEqual([SETUP]);
});
