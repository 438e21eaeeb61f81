/**
 * Owns: the packed cache worker judges patterns as its sources do, though its parser of regular expressions is packed
 * without its tables of the characters of names.
 */
import { expect, test } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../src/shared/protocol/session.ts";
import type { PublishResult, PublishTask } from "../../workers/shared/tasks.ts";

interface CacheWorker {
  publish: (task: PublishTask) => Promise<PublishResult>;
}

test("patterns with names of groups in other scripts are kept, a slow one is not", async () => {
  const built = new URL("../../dist/workers/cache.js", import.meta.url);
  const { publish } = (await import(built.href)) as CacheWorker;
  const patternsOf = (...patterns: string[]): PublishTask => {
    const properties = Object.fromEntries(
      patterns.map((pattern, index) => [`p${index}`, { type: "string", pattern }]),
    );
    const tool = { name: "t", inputSchema: { type: "object", properties }, direct: false };
    const server = { name: "s", configHash: "h", tools: [tool] };
    return { servers: [server] as unknown as PublishTask["servers"], settings: DEFAULT_CATALOG_SETTINGS };
  };
  const names = ["größe", "名前", "𝒳", "a\u0301", "日1", "$_x"];
  const kept = await publish(patternsOf(...names.map((name) => `^(?<${name}>[a-z])$`)));
  expect(kept).toMatchObject({ repairs: [], problems: [] });
  const { repairs } = await publish(patternsOf("^(([a-z])+.)+$"));
  expect(repairs).toEqual([{ server: "s", text: expect.stringContaining("pattern") }]);
});
