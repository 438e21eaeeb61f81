/**
 * Owns: one server whose tools keep the real cache worker busy for ever, and one healthy server, in the real connection
 * worker. The test copies the packed worker files; its cache worker hangs at a tool named `hang`, as a faulty schema
 * repair once did.
 */
import { cp, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { catalogFrom } from "../../src/catalog/catalog.ts";
import { LONG_TEST_MS } from "../support/patience.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { builtWorker, createPlace, fixture, newestCatalog, start, until } from "./support.ts";

const BREAKS = `
import { publish as realPublish } from "./real-cache.js";
export * from "./real-cache.js";
export const publish = (task) => {
  const hangs = task.servers.some(({ tools }) => tools.some(({ name }) => name === "hang"));
  // As in fixtures/workers/breakable.mjs, a wait stands for a loop without an end.
  if (hangs) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  return realPublish(task);
};
`;

async function breakingWorker(): Promise<URL> {
  const folder = await makeTempFolder("pmt-workers");
  onTestFinished(() => removeFolder(folder));
  await cp(dirname(fileURLToPath(builtWorker)), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await rename(join(folder, "cache.js"), join(folder, "real-cache.js"));
  await writeFile(join(folder, "cache.js"), BREAKS);
  return pathToFileURL(join(folder, "connection.js"));
}

const tools = (...names: string[]): string => JSON.stringify(names.map((name) => ({ name })));

/** A new thread starts for each publication, so the limits leave time for a start on a busy machine. */
const limits = { publishMs: 2_000, publishAloneMs: 4_000 };

describe("connection worker (built)", () => {
  test(
    "one server keeps the cache worker busy for ever -> the other's tools are published, each session opens",
    async () => {
      const place = await createPlace();
      const at = await start(
        {
          bad: { ...fixture("listed.mjs"), env: { TOOLS: tools("hang") } },
          good: { ...fixture("listed.mjs"), env: { TOOLS: tools("read", "write") } },
        },
        { place, workerUrl: await breakingWorker(), limits },
      );
      const session = async (): Promise<void> => {
        const facts = {
          ...place,
          projectTrusted: true,
          configPath: undefined,
          registered: [],
          canAsk: true,
          limits,
        };
        const before = at.events.length;
        at.runtime.post("startSession", { ...facts, snapshotChecksum: undefined });
        await at.event("planned", () => true, before);
      };
      const names = (): string[] => newestCatalog(at).tools.map(({ name }) => name);
      const failures = async (): Promise<number> => (await at.log()).split("cache worker failed").length - 1;

      // The second session starts while the cache worker hangs.
      await until(async () => (await at.log()).match(/bad connected/) ?? undefined);
      await session();
      await at.event("catalog", ({ snapshot }) => catalogFrom(snapshot)?.tools.length === 2);
      expect(names()).toEqual(["good__read", "good__write"]);
      await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
      expect(await at.log()).toMatch(/MCP server bad: its tools are left out/);
      const before = await failures();
      expect(before).toBeGreaterThan(1);

      await session();
      await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
      expect(names()).toEqual(["good__read", "good__write"]);
      expect(await failures()).toBe(before);
      const notices = at.events.filter(
        (event) => event.type === "notice" && event.text.includes("bad: its tools"),
      );
      expect(notices).toHaveLength(2);
      expect(at.crashes).toEqual([]);
    },
    LONG_TEST_MS,
  );
});
