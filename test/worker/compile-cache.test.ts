/** Owns: Node's compile cache in the real worker. A worker thread does not inherit the cache from the host. */
import { readdir, readFile, stat } from "node:fs/promises";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPlace, readIfThere, start, until } from "./support.ts";

const TELLS = "require('fs').writeFileSync(process.env.RECORD, String(process.env.NODE_COMPILE_CACHE))";

test("a host with a compile cache -> the worker fills the cache, its servers do not see the variable", async () => {
  const place = await createPlace();
  const folder = join(place.agentDir, "compiled");
  enableCompileCache(folder);
  expect(getCompileCacheDir()?.startsWith(folder)).toBe(true);
  const record = join(place.agentDir, "record");
  const server = { command: process.execPath, args: ["-e", TELLS], env: { RECORD: record } };
  const at = await start({ tells: server }, { place, build: "built" });
  await until(async () => ((await readIfThere(record)) === "" ? undefined : true));
  expect(await readFile(record, "utf8")).toBe("undefined");
  await at.runtime.stop();
  // Node writes the cache when a thread ends. The cache worker's files are there too, but they are smaller.
  const compiled = getCompileCacheDir() ?? "";
  const sizes = (await readdir(compiled)).map(async (name) => (await stat(join(compiled, name))).size);
  expect(Math.max(...(await Promise.all(sizes)))).toBeGreaterThan(150_000);
});
