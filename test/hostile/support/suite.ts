/**
 * Owns: the tests of a table of attacks: one test a row, in the packed extension and the real Pi.
 * Must not: know attacks.
 * Called by: the test files of this folder.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { EMPTY_EXTENSION } from "../../../bench/support/with-probe.ts";
import { unpackTarball } from "../../support/package-under-node-modules.ts";
import { Arena, callOf, searchOf } from "./arena.ts";
import { openPlace } from "./place.ts";
import type { Problem, Row } from "./row.ts";
import { type Baseline, type RowContext, runAlone, type SharedPi, startShared } from "./run-row.ts";

/** A stall is only believed when it comes back: the best of so many runs decides. */
const TRIES = 3;
const ROW_MS = 120_000;

/** Bare Pi in the same kind of run: start, a first prompt with two calls, and some more. */
async function measureBare(caches: string): Promise<Baseline> {
  const place = await openPlace({ caches });
  try {
    const arena = await Arena.start({ place, extension: EMPTY_EXTENSION });
    const start = await arena.spent();
    const ask = () => arena.prompt(searchOf("select:healthy__echo"), callOf("healthy__echo", { text: "x" }));
    await ask();
    const first = await arena.spent();
    for (let count = 0; count < 3; count++) await ask();
    const later = await arena.spent();
    await arena.end();
    return { start, first, later };
  } finally {
    await place.dispose();
  }
}

const describeAll = (problems: readonly Problem[]): string[] =>
  problems.map(({ check, text }) => `${check}: ${text}`);

export function hostileSuite(rows: readonly Row[]): void {
  let context: RowContext;
  let shared: SharedPi | undefined;
  beforeAll(async () => {
    const caches = inject("piCaches");
    const { entry } = await unpackTarball();
    context = { extension: entry, caches, baseline: await measureBare(caches) };
  });
  afterAll(async () => {
    await shared?.kill();
    await (await unpackTarball()).dispose();
  });

  const runShared = async (row: Row): Promise<Problem[]> => {
    shared ??= await startShared(context);
    const problems = await shared.run(row);
    if (problems.length > 0) {
      // What this attack left behind must not be held against the next one.
      await shared.kill();
      shared = undefined;
    }
    return problems;
  };
  const run = (row: Row): Promise<Problem[]> => (row.alone ? runAlone(row, context) : runShared(row));

  test.each(rows.map((row) => [`${row.finding}: ${row.name}`, row] as const))(
    "%s",
    async (_title, row) => {
      let problems = await run(row);
      for (let tries = 1; tries < TRIES && problems.length > 0; tries++) {
        if (problems.some(({ check }) => check !== "main")) break;
        await sleep(200);
        problems = await run(row);
      }
      expect(describeAll(problems)).toEqual([]);
    },
    ROW_MS,
  );

  test("the Pi that the rows shared ends by itself, with exit code 0 and nothing left behind", async () => {
    const wrong = await shared?.end();
    shared = undefined;
    expect(wrong ?? []).toEqual([]);
  });
}
