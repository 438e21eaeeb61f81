/**
 * Owns: the list of files that start processes. Each file starts a program by its whole path, because the system searches
 * for a bare name, on Windows first in the current folder.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");

test("files of the product that start processes -> there are six, and none uses a bare name", async () => {
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
    "src/cli/commands/run.ts",
    "src/runtime/pids.ts",
    "workers/connection/auth/sign-in/browser.ts",
    "workers/connection/config/values/run-command.ts",
    "workers/connection/hub/link.ts",
    "workers/shared/programs/processes.ts",
  ]);
});
