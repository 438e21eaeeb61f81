/**
 * Owns: who starts processes. Each place starts a program by its whole path: a bare name would be looked for, on
 * Windows in the current folder first.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");

test("three files of the product start processes, and none by a bare name", async () => {
  const starting: string[] = [];
  for (const folder of ["src", "workers"]) {
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (!name.endsWith(".ts")) continue;
      const text = await readFile(join(root, folder, name), "utf8");
      if (!/from "(?:node:child_process|cross-spawn)"/.test(text)) continue;
      starting.push(join(folder, name));
      expect(text).not.toMatch(/\b(?:spawn|spawnSync|exec|execFile|fork)\(\s*["'`]/);
      expect(text).not.toMatch(/shell: true/);
    }
  }
  expect(starting.sort()).toEqual([
    "src/runtime/pids.ts",
    "workers/connection/config/values/run-command.ts",
    "workers/shared/programs/processes.ts",
  ]);
});
