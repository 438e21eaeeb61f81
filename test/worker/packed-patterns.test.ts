/**
 * Owns: the packed cache worker judges patterns as its sources do, though its parser of regular expressions is packed
 * without its tables of the characters of names.
 */
import { expect, test } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../src/shared/protocol/session.ts";
import { publish } from "../../workers/cache.ts";
import type { PublishTask } from "../../workers/shared/tasks.ts";

interface CacheWorker {
  publish: typeof publish;
}

const NAMES = ["größe", "名前", "𝒳", "a\u0301", "日1", "$_x"];

test.each([
  ["plain ones", ["^[a-z]+$", "^x[0-9]{2}$"], undefined],
  ["with names of groups in other scripts", NAMES.map((name) => `^(?<${name}>[a-z])$`), "providers refuse"],
  ["slow ones", ["^(([a-z])+.)+$", "^(?<名前>([a-z])+.)+$"], "pattern"],
])("patterns, %s -> judged as by the sources", async (_what, patterns, repaired) => {
  const built = new URL("../../dist/workers/cache.js", import.meta.url);
  const packed = (await import(built.href)) as CacheWorker;
  const properties = Object.fromEntries(
    patterns.map((pattern, index) => [`p${index}`, { type: "string", pattern }]),
  );
  const tool = { name: "t", inputSchema: { type: "object", properties }, direct: false };
  const server = { name: "s", configHash: "h", tools: [tool] };
  const task: PublishTask = {
    servers: [server] as unknown as PublishTask["servers"],
    settings: DEFAULT_CATALOG_SETTINGS,
  };
  const { repairs, problems, checksum } = await packed.publish(task);
  expect(await publish(task)).toMatchObject({ repairs, problems, checksum });
  expect(problems).toEqual([]);
  expect(repairs).toEqual(
    repaired === undefined ? [] : [{ server: "s", text: expect.stringContaining(repaired) }],
  );
});
