/** Owns: a session rests only where each variable that says where files lie is as it was (`PLACE_VARIABLES`). */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PLACE_VARIABLES } from "../../src/shared/snapshot/rest.ts";

const root = join(import.meta.dirname, "..", "..");
/** Where the code looks for files that name servers. */
const FINDERS = "workers/connection/config/{files,hosts,packages,policy}/**/*.ts";

test("every variable by which a file is looked for counts", async () => {
  const read = new Set<string>();
  for await (const file of glob(FINDERS, { cwd: root })) {
    const text = await readFile(join(root, file), "utf8");
    for (const [, name] of text.matchAll(/\benv(?:\.|\[")([A-Za-z]\w+)/g))
      if (name !== "ts") read.add(name ?? "");
    for (const [, names] of text.matchAll(/\{([^{}]*)\}\s*=\s*(?:[\w.]+\.)?env\b/g))
      for (const [name] of names?.matchAll(/\b[A-Z][A-Z_]+\b/g) ?? []) read.add(name);
  }
  expect(read.size).toBeGreaterThan(8);
  expect([...read].filter((name) => !PLACE_VARIABLES.includes(name))).toEqual([]);
});
