/** Cache and snapshot files with any content, and the checks that hold for each. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { expect } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/shared/protocol/session.ts";
import { formatLines } from "../../../../workers/cache/metadata/file.ts";
import { storeEntries } from "../../../../workers/cache/metadata/metadata.ts";
import { makeSnapshot } from "../../../../workers/cache/snapshot/make.ts";
import { type FileSystem, nodeFiles } from "../../../../workers/shared/files/file-system.ts";
import { hashDefinition } from "../../../../workers/shared/json.ts";
import { readList } from "../../../../workers/shared/listed.ts";
import type { CacheAnswer } from "../../../../workers/shared/tasks.ts";
import type { createRandom } from "../../random.ts";
import { context, entry } from "./support.ts";

export type Random = ReturnType<typeof createRandom>;

/** Damages a file in one way: changed bytes, a cut, zeros, a repetition, or noise. */
export function spoil(whole: Buffer, random: Random): Buffer {
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

export const DEFINITION = { command: "node", args: ["a.js"] };
export const HASH = hashDefinition(DEFINITION);
export const SERVERS = ["a", "b", "c"];

/** A cache in which every field can be damaged; some values are replaced by other JSON values. */
export function spoiledCache(random: Random): Buffer {
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

/** A cache as this package writes it. */
export function ownCache(): Buffer {
  const tools = [{ name: "t", title: "T", description: "ü", inputSchema: { type: "object" } }, { name: "u" }];
  const slots = new Map(SERVERS.map((name) => [name, { ...entry(HASH, { tools }), foreign: [1] }]));
  return Buffer.concat(formatLines({ version: 1 }, slots));
}

export const inMemory = (bytes: Buffer): FileSystem => ({
  ...nodeFiles,
  find: async (path) => ({
    target: path,
    file: { mode: 0o600, bytes: bytes.length, modifiedMs: 0, stamp: "one" },
  }),
  readBytes: async () => bytes,
});

/** The properties of an entry on which the rest of the worker relies. */
export function checkAnswer({ entries, problems }: CacheAnswer): void {
  expect(problems.length).toBeLessThanOrEqual(1);
  if (problems.length > 0) expect(entries).toEqual({});
  for (const found of Object.values(entries)) {
    expect(found.configHash).toBe(HASH);
    expect(Number.isFinite(found.cachedAt)).toBe(true);
    for (const tool of readList(found.tools)) {
      expect(tool.name).toMatch(/./);
      for (const text of [tool.title, tool.description])
        expect(["string", "undefined"]).toContain(typeof text);
      for (const map of [tool.inputSchema, tool.annotations])
        expect(["object", "undefined"]).toContain(typeof map);
    }
    expect(["string", "undefined"]).toContain(typeof found.instructions);
  }
}

/** Stores into a file with these bytes. Checks that nothing throws, and that the file holds the entry or is unchanged. */
export async function checkStore(path: string, bytes: Buffer): Promise<void> {
  await writeFile(path, bytes);
  const { stored, problems } = await storeEntries(
    { path, entries: { fresh: entry("new") }, used: { a: HASH } },
    context(),
  );
  expect(problems.length).toBeLessThanOrEqual(1);
  if (stored) expect(JSON.parse(await readFile(path, "utf8"))).toHaveProperty("servers.fresh");
  else expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
  const beside = (await readdir(dirname(path))).filter((name) => !name.includes(".corrupt-"));
  expect(beside).toEqual([basename(path)]);
}

/** The position of the source, which is not content: it only decides whether the index is built again. */
const contentOf = (snapshot: Uint8Array): Uint8Array => new Uint8Array(snapshot).fill(0, 12, 28);

export const SNAPSHOT_TOOLS = 20;

/** A sound snapshot of some tools. */
export function wholeSnapshot(): Buffer {
  const tools = Array.from({ length: SNAPSHOT_TOOLS }, (_, i) => ({
    name: `tool_${i}`,
    description: `Does ${i}.`,
    direct: false,
  }));
  const servers = [{ name: "s", project: false, toolsKnown: true, tools }];
  return Buffer.from(makeSnapshot(servers, DEFAULT_CATALOG_SETTINGS, { limitBytes: 2 ** 20 }).snapshot);
}

/** Whether both hold the same content. */
export const sameSnapshot = (a: Uint8Array, b: Uint8Array): boolean =>
  Buffer.compare(contentOf(a), contentOf(b)) === 0;
