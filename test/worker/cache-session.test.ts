/** Owns: a session with an unusable cache file: the session works, and the log says once that the file is unusable. */
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createPlace, fixture, type Place, start, until } from "./support.ts";

const CASES: [string, (file: string) => Promise<unknown>][] = [
  ["broken", (file) => writeFile(file, '{"version":1,"serv')],
  ["empty", (file) => writeFile(file, "")],
  ["of another version", (file) => writeFile(file, '{"version":9}')],
  ["a folder", (file) => mkdir(file)],
  [
    "read-only",
    async (file) => {
      await writeFile(file, '{"version":1,"servers":{}}');
      await chmod(file, 0o444);
    },
  ],
  ["locked by another process", (file) => writeFile(join(file, "..", ".mcp-cache.json.lock"), "")],
];

const cacheLines = (log: string): string[] =>
  log.split("\n").filter((line) => line.includes("mcp-cache.json") && / (warn|error) /.test(line));

describe("a cache file that is", () => {
  test.each(CASES)("%s -> servers and tools work as usual, one line in the log", async (_name, spoil) => {
    const place: Place = await createPlace();
    await spoil(join(place.agentDir, "mcp-cache.json"));
    const servers = { one: fixture("pages.mjs"), two: fixture("pages.mjs") };
    const at = await start(servers, { place });
    for (const name of ["one", "two"]) expect((await at.settled(name)).toolCount).toBeGreaterThan(0);
    // A second store meets the same problem, which must not add a second line.
    await at.runtime.ask("reconnect", { server: "one" });
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    await until(async () => cacheLines(await at.log()).length > 0 || undefined);
    await at.runtime.stop();
    expect(cacheLines(await at.log())).toHaveLength(1);
    expect((await readdir(place.agentDir)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
