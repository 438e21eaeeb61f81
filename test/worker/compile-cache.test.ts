/** Owns: Node's compile cache, which a worker thread does not inherit from the host, in the real worker. */
import { readdir, readFile } from "node:fs/promises";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPlace, readIfThere, start, until } from "./support.ts";

const TELLS = "require('fs').writeFileSync(process.env.RECORD, String(process.env.NODE_COMPILE_CACHE))";

test("a host with a compile cache -> the worker fills it, its servers do not see it", async () => {
  const place = await createPlace();
  const folder = join(place.agentDir, "compiled");
  enableCompileCache(folder);
  expect(getCompileCacheDir()?.startsWith(folder)).toBe(true);
  const record = join(place.agentDir, "record");
  const server = { command: process.execPath, args: ["-e", TELLS], env: { RECORD: record } };
  const at = await start({ tells: server }, { place });
  await until(async () => ((await readIfThere(record)) === "" ? undefined : true));
  expect(await readFile(record, "utf8")).toBe("undefined");
  await at.runtime.stop();
  // Written when the thread ends; what this process itself compiles is written at its own end.
  expect(await readdir(getCompileCacheDir() ?? "")).not.toEqual([]);
});
