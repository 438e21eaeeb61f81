/**
 * Owns: sessions with files of the cache that cannot be used: servers and tools work as usual, and the log says once what
 * is wrong.
 */
import { chmod, mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  configure,
  createPlace,
  fixture,
  type Place,
  readIfThere,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

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

const cacheFile = ({ agentDir }: Place): string => join(agentDir, "mcp-cache.json");
const warnings = async (at: Started, problem: (line: string) => boolean): Promise<string[]> =>
  (await at.log()).split("\n").filter((line) => / (warn|error) +\[/.test(line) && problem(line));

test("a cache file that is broken, empty, of another version, a folder, read-only or locked -> servers and tools work as usual, one line in the log", async () => {
  const servers = { s: fixture("pages.mjs") };
  // One worker has a session for each case, each with an agent folder of its own; all write the first one's log.
  const at = await start({});
  const lines = ({ agentDir }: Place): Promise<string[]> =>
    warnings(at, (line) => line.includes(agentDir) && line.includes("mcp-cache.json"));
  const places: [name: string, place: Place][] = [];
  for (const [name, spoil] of CASES) {
    const place = await createPlace();
    places.push([name, place]);
    await spoil(cacheFile(place));
    await configure(place, servers);
    const facts = { projectTrusted: true, configPath: undefined, registered: [], canAsk: true };
    const before = at.events.length;
    at.runtime.post("startSession", { ...place, ...facts, snapshotChecksum: undefined });
    await at.event("planned", () => true, before);
    expect((await at.settled("s")).toolCount, name).toBeGreaterThan(0);
    // A second store meets the same problem, which must not add a second line.
    await at.runtime.ask("reconnect", { server: "s" });
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    await until(async () => (await lines(place)).length > 0 || undefined);
  }
  await at.runtime.stop();
  for (const [name, place] of places) {
    expect(await lines(place), name).toHaveLength(1);
    expect(
      (await readdir(place.agentDir)).filter((file) => file.endsWith(".tmp")),
      name,
    ).toEqual([]);
  }
  expect(at.crashes).toEqual([]);
});

describe("a cache that cannot be written", () => {
  /** Starts a session that works as usual, and answers it when its catalog has come. */
  async function startUsual(place: Place): Promise<Started> {
    const at = await start({ s: fixture("noisy.mjs") }, { place });
    const pending = await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    expect(pending).toEqual([]);
    expect(at.events.map(({ type }) => type)).toContain("catalog");
    expect(textOf(await at.call("s", "work"))).toBe("through the noise");
    expect(at.crashes).toEqual([]);
    return at;
  }

  test("the folder of snapshots is a file -> the session works, one line in the log", async () => {
    const place = await createPlace();
    await writeFile(join(place.agentDir, "mcp-snapshots"), "");
    const at = await startUsual(place);
    await at.runtime.stop();
    const problem = /mcp-snapshots.* could not be written/;
    expect(await warnings(at, (line) => problem.test(line))).toHaveLength(1);
  });

  test("a folder, but writable again before the session ends -> one line in the log, contains the learned tools", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    await mkdir(cacheFile(place));
    const at = await startUsual(place);
    const lines = (): Promise<string[]> =>
      warnings(at, (line) => /mcp-cache\.json is neither used nor changed: EISDIR/.test(line));
    await until(async () => (await lines()).length > 0 || undefined);
    await rmdir(cacheFile(place));
    await at.runtime.stop();
    expect(await lines()).toHaveLength(1);
    const stored = JSON.parse((await readIfThere(cacheFile(place))) || '{"servers":{}}');
    expect(Object.keys(stored.servers)).toEqual(["s"]);
  });

  test("writable again before another list arrives -> contains both servers", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    await mkdir(cacheFile(place));
    const at = await start({ s: fixture("noisy.mjs"), grows: fixture("grows.mjs") }, { place });
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    await rmdir(cacheFile(place));
    await at.call("grows", "grow", { method: "notifications/tools/list_changed", ms: 0 });
    const text = await until(async () => {
      const found = await readIfThere(cacheFile(place));
      return found.includes("grown1") ? found : undefined;
    });
    expect(Object.keys(JSON.parse(text).servers).sort()).toEqual(["grows", "s"]);
  });
});
