/**
 * Owns: long messages: one of the longest allowed length, one that is longer, and that a worker which rests holds nothing
 * of the results that went through it.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { ALL_ROWS, amount } from "../support/long.ts";
import { waitGone } from "../support/processes.ts";
import {
  breakable,
  createPlace,
  fixture,
  forRows,
  readIfThere,
  start,
  tellWorker,
  textOf,
  until,
} from "./support.ts";

const MIB = 1024 * 1024;
/** What the worker needs itself is about 20 MiB, and one of the results would already be more than the rest of this. */
const RESTING_BYTES = 40 * MIB;
const RESULT_BYTES = amount(24, 30) * MIB;
const RESULTS = amount(2, 3);

test(`${RESULTS} results of ${RESULT_BYTES / MIB} MiB -> the resting worker soon holds none of their memory`, {
  tags: "thorough",
}, async () => {
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
  for (let i = 0; i < RESULTS; i++) {
    expect(textOf(await at.call("big", "work", { bytes: RESULT_BYTES }))).toContain("left out here");
  }
  const rested = await until(async () => {
    const bytes = await memoryBytes();
    return bytes < RESTING_BYTES ? bytes : undefined;
  });
  expect(rested).toBeGreaterThan(0);
  expect(textOf(await at.call("big", "work", { bytes: 1_000 }))).toContain("xxx");
});

describe("a message", () => {
  /** Under ALL_ROWS the real limit; else a smaller one from the settings. */
  const limit = amount(2 * MIB, LIMITS.messageBytes);
  const limited = forRows(async () => {
    const place = await createPlace();
    const configPath = join(place.cwd, "limited.json");
    const mcpServers = { fits: fixture("big-line.mjs"), over: fixture("big-line.mjs") };
    const settings = ALL_ROWS ? {} : { maxMessageBytes: limit };
    await writeFile(configPath, JSON.stringify({ mcpServers, settings }));
    return start({}, { place, facts: { configPath } });
  });

  test("of exactly the limit -> arrives, cut for the model", async () => {
    const at = await limited();
    const text = textOf(await at.call("fits", "work", { bytes: limit }));
    expect(text.length).toBeLessThan(60_000);
    const leftOut = /\[\.\.\. ([\d,]+) bytes of .*?left out here\./.exec(text)?.[1] ?? "";
    expect(Number(leftOut.replaceAll(",", ""))).toBeGreaterThan(limit - 60_000);
  });

  test("where the settings allow more bytes than any text has -> arrives", async () => {
    const place = await createPlace();
    const configPath = join(place.cwd, "unlimited.json");
    const mcpServers = { fits: fixture("big-line.mjs") };
    const settings = { maxMessageBytes: Number.MAX_SAFE_INTEGER };
    await writeFile(configPath, JSON.stringify({ mcpServers, settings }));
    const at = await start({}, { place, facts: { configPath } });
    expect(textOf(await at.call("fits", "work", { bytes: MIB }))).toContain("left out here.");
  });

  test("of one byte more -> message_too_large with the limit; the process is gone, the next call works", async () => {
    const at = await limited();
    const { pid = 0 } = await at.settled("over");
    const error = await at.failedCall("over", "work", { bytes: limit + 1 });
    expect(await waitGone([pid])).toEqual([]);
    expect(textOf(await at.call("over", "work", { bytes: 100 }))).toMatch(/^x+$/);
    expect(error.message).toContain(`${limit / MIB} MiB`);
    expect(error).toMatchObject({
      code: "message_too_large",
      data: { server: "over", limitBytes: limit },
    });
  });
});
