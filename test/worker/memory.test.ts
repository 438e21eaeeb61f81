/** Owns: that a worker which rests holds nothing of the results that went through it. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { breakable, fixture, readIfThere, start, tellWorker, textOf, until } from "./support.ts";

const MIB = 1024 * 1024;
/** What the worker needs itself is about 20 MiB, and one of the results would already be more than the rest of this. */
const RESTING_BYTES = 40 * MIB;
const RESULT_BYTES = 30 * MIB;

test("three results of 30 MiB -> the resting worker soon holds none of their memory", async () => {
  const at = await start(
    { big: fixture("big-line.mjs") },
    { workerUrl: breakable, limits: { heartbeatMs: 30_000 } },
  );
  const logFile = join(at.agentDir, "mcp-threads.log");
  const memoryBytes = async (): Promise<number> => {
    await tellWorker(at, "memory");
    const text = await until(async () => (await readIfThere(`${logFile}.heap`)) || undefined);
    await rm(`${logFile}.heap`);
    return Number(text);
  };
  for (let i = 0; i < 3; i++) {
    expect(textOf(await at.call("big", "work", { bytes: RESULT_BYTES }))).toContain("left out here");
  }
  const rested = await until(async () => {
    const bytes = await memoryBytes();
    return bytes < RESTING_BYTES ? bytes : undefined;
  });
  expect(rested).toBeGreaterThan(0);
  expect(textOf(await at.call("big", "work", { bytes: 1_000 }))).toContain("xxx");
});
