/** Owns: Node's compile cache in the real worker. A worker thread does not inherit the cache from the host. */
import { chmod, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesBelow } from "../support/files-below.ts";
import { createPlace, readIfThere, start, until } from "./support.ts";

const TELLS = "require('fs').writeFileSync(process.env.RECORD, String(process.env.NODE_COMPILE_CACHE))";

/** Runs a session whose server tells its environment, and answers what it told. The place has no folder of code yet. */
async function runSession(place: Awaited<ReturnType<typeof createPlace>>): Promise<string> {
  const record = join(place.agentDir, "record");
  const server = { command: process.execPath, args: ["-e", TELLS], env: { RECORD: record } };
  const at = await start({ tells: server }, { place, build: "built" });
  await until(async () => ((await readIfThere(record)) === "" ? undefined : true));
  await at.runtime.stop();
  return readFile(record, "utf8");
}

test("a host with a compile cache -> the worker fills the user's own folder, its servers do not see the variable", async () => {
  const place = await createPlace();
  const folder = join(place.agentDir, "mcp-code");
  await rm(folder);
  expect(await runSession(place)).toBe("undefined");
  expect(getCompileCacheDir()?.startsWith(folder)).toBe(false);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  // Node writes the cache when a thread ends. The cache worker's files are there too, but they are smaller.
  const sizes = (await filesBelow(folder)).map(async (path) => (await stat(path)).size);
  expect(Math.max(...(await Promise.all(sizes)))).toBeGreaterThan(150_000);
});

test("a folder of code that other users may write -> the worker neither reads nor fills it", async () => {
  const place = await createPlace();
  const folder = join(place.agentDir, "mcp-code");
  await rm(folder);
  await mkdir(folder);
  await chmod(folder, 0o777);
  expect(await runSession(place)).toBe("undefined");
  expect(await readdir(folder)).toEqual([]);
});
