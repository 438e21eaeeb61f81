/** Owns: cache and snapshot files with anything in them: no crash, and nothing false is taken for known. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { catalogFrom } from "../../../../src/catalog/catalog.ts";
import { readCatalog, snapshotPath } from "../../../../src/catalog/snapshot-file.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/protocol/snapshot.ts";
import { makeSnapshot } from "../../../../workers/cache/catalog-snapshot.ts";
import { type FileSystem, nodeFiles } from "../../../../workers/cache/file-system.ts";
import { hashDefinition } from "../../../../workers/cache/hash.ts";
import { type CacheAnswer, readCache, storeEntries } from "../../../../workers/cache/metadata-cache.ts";
import { createRandom } from "../../random.ts";
import { tempFolder } from "../../temp-folder.ts";
import { context, entry } from "./support.ts";

const FILES = 10_000;
/** Of those, how many also go through real files. */
const REAL_FILES = 200;
const SEED = 20_260_115;

type Random = ReturnType<typeof createRandom>;

/** One of the ways in which a file goes wrong: changed bytes, cut, filled with zeros, doubled, or noise. */
function spoil(whole: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(whole);
  const at = random.below(bytes.length);
  switch (random.below(7)) {
    case 0:
      bytes[at] = random.below(256);
      return bytes;
    case 1:
      for (let i = 0; i < 1 + random.below(20); i++) bytes[random.below(bytes.length)] = random.below(256);
      return bytes;
    case 2:
      return bytes.subarray(0, at);
    case 3:
      return bytes.fill(0, at, Math.min(bytes.length, at + random.below(500)));
    case 4:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(random.below(bytes.length))]);
    case 5:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([random.below(256)]), bytes.subarray(at)]);
    default:
      return Buffer.from(Array.from({ length: random.below(400) }, () => random.below(256)));
  }
}

const DEFINITION = { command: "node", args: ["a.js"] };
const HASH = hashDefinition(DEFINITION);
const SERVERS = ["a", "b", "c"];

/** A cache whose every field can be hit; some values are swapped for others that JSON allows, too. */
function spoiledCache(random: Random): Buffer {
  const odd = [null, -1, 1e300, "", "x", [], {}, [null], { a: [] }, true];
  const pick = (): unknown => odd[random.below(odd.length)];
  const tool = { name: "t", title: "T", inputSchema: { type: "object" }, annotations: { title: "x" } };
  const fields = { ...entry(HASH), tools: [tool, tool], prompts: [], instructions: "i", usedAt: 1 };
  const servers: Record<string, unknown> = { a: fields, b: fields, c: fields };
  const cache: Record<string, unknown> = { version: 1, servers };
  const swap = (holder: Record<string, unknown>): void => {
    const keys = Object.keys(holder);
    holder[keys[random.below(keys.length)] ?? ""] = pick();
  };
  const kind = random.below(4);
  if (kind === 0) swap(cache);
  if (kind === 1)
    servers.a = Object.assign({ ...fields }, { [Object.keys(fields)[random.below(8)] ?? ""]: pick() });
  if (kind === 2)
    servers.b = { ...fields, tools: [{ ...tool, [Object.keys(tool)[random.below(4)] ?? ""]: pick() }] };
  const text = Buffer.from(JSON.stringify(cache));
  return kind === 3 ? spoil(text, random) : text;
}

const inMemory = (bytes: Buffer): FileSystem => ({
  ...nodeFiles,
  find: async (path) => ({ target: path, file: { mode: 0o600, bytes: bytes.length, modifiedMs: 0 } }),
  read: async () => bytes.toString("utf8"),
});

/** What the rest of the worker relies on. */
function checkAnswer({ entries, problems }: CacheAnswer): void {
  expect(problems.length).toBeLessThanOrEqual(1);
  if (problems.length > 0) expect(entries).toEqual({});
  for (const found of Object.values(entries)) {
    expect(found.configHash).toBe(HASH);
    expect(Number.isFinite(found.cachedAt)).toBe(true);
    for (const tool of found.tools) {
      expect(tool.name).toMatch(/./);
      for (const text of [tool.title, tool.description])
        expect(["string", "undefined"]).toContain(typeof text);
      for (const map of [tool.inputSchema, tool.annotations])
        expect(["object", "undefined"]).toContain(typeof map);
    }
    expect(["string", "undefined"]).toContain(typeof found.instructions);
  }
}

describe(`seed ${SEED}`, () => {
  test(`${FILES} cache files -> no crash, what is found is an entry, what is not is a miss`, async () => {
    const random = createRandom(SEED);
    const definitions = Object.fromEntries(SERVERS.map((name) => [name, DEFINITION]));
    const counts = { hits: 0, misses: 0, problems: 0 };
    for (let i = 0; i < FILES; i++) {
      const files = inMemory(spoiledCache(random));
      const answer = await readCache({ path: "/x", definitions }, context({ files }));
      checkAnswer(answer);
      const hits = Object.keys(answer.entries).length;
      counts.hits += hits;
      counts.misses += SERVERS.length - hits;
      counts.problems += answer.problems.length;
    }
    // Each kind must really occur, or the fuzzer proves nothing.
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(1_000);
  });

  test(`storing into ${REAL_FILES} of them -> never throws; stored, or the file is as it was`, async () => {
    const random = createRandom(SEED + 1);
    for (let i = 0; i < REAL_FILES; i++) {
      const path = join(await tempFolder(), "mcp-cache.json");
      const bytes = spoiledCache(random);
      await writeFile(path, bytes);
      const { stored, problems } = await storeEntries(
        { path, entries: { fresh: entry("new") }, used: { a: HASH } },
        context(),
      );
      expect(problems.length).toBeLessThanOrEqual(1);
      if (stored) expect(JSON.parse(await readFile(path, "utf8"))).toHaveProperty("servers.fresh");
      else expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
      const beside = (await readdir(dirname(path))).filter((name) => !name.includes(".corrupt-"));
      expect(beside).toEqual(["mcp-cache.json"]);
    }
  });

  /** What it was made of is no content: it only tells whether the index need be built anew. */
  const contentOf = (snapshot: Uint8Array): Uint8Array => new Uint8Array(snapshot).fill(0, 12, 28);

  test(`${FILES} snapshots -> each that differs is a miss`, async () => {
    const random = createRandom(SEED + 2);
    const tools = Array.from({ length: 20 }, (_, i) => ({
      name: `tool_${i}`,
      description: `Does ${i}.`,
      direct: false,
    }));
    const whole = Buffer.from(
      makeSnapshot([{ name: "s", project: false, toolsKnown: true, tools }], DEFAULT_CATALOG_SETTINGS, {
        limitBytes: 2 ** 20,
      }).snapshot,
    );
    const agentDir = await tempFolder();
    const path = snapshotPath(agentDir, { cwd: "/project" });
    await mkdir(dirname(path));
    let spoiled = 0;
    for (let i = 0; i < FILES; i++) {
      const bytes = spoil(whole, random);
      const same = Buffer.compare(contentOf(bytes), contentOf(whole)) === 0;
      if (!same) spoiled++;
      expect(catalogFrom(bytes) !== undefined, `file ${i}`).toBe(same);
      if (i >= REAL_FILES) continue;
      await writeFile(path, bytes);
      expect(readCatalog(agentDir, { cwd: "/project" }).tools).toHaveLength(same ? 20 : 0);
    }
    expect(spoiled).toBeGreaterThan(FILES * 0.9);
  });
});
