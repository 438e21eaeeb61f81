/**
 * Owns: the tests of a table of attacks: one test a row, in the packed extension and the real Pi.
 * Must not: know attacks.
 * Called by: the test files of this folder.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { unpackTarball } from "../../support/package-under-node-modules.ts";
import { Arena, callOf, searchOf } from "./arena.ts";
import type { Baseline } from "./attack.ts";
import { EMPTY_EXTENSION, openPlace } from "./place.ts";
import type { Outcome } from "./problems.ts";
import type { Problem, Row } from "./row.ts";
import { type RowContext, runAlone, type SharedPi, startShared } from "./run-row.ts";

/** A stall is only believed when it comes back: the best of so many runs decides. One of this much CPU is no noise. */
const TRIES = 3;
const NOISE_MS = 500;
const ROW_MS = 300_000;

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
  problems.map(({ check, text }) => `${check}: ${text.replaceAll("\n", " | ")}`);

/** Told always: whoever reads a run sees what comes near its bound. */
const figuresLine = ({ finding, name }: Row, { figures, list }: Outcome): string => {
  const [call, cpu, gap] = [figures.callMs, figures.mainCpuMs, figures.mainGapMs].map(Math.round);
  return `hostile: ${list.length === 0 ? "held" : "BROKE"}: main ${cpu} ms CPU over bare Pi's, ${gap} ms by the clock; healthy call ${call} ms: ${finding}: ${name}`;
};

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

  const runShared = async (row: Row): Promise<Outcome> => {
    shared ??= await startShared(context);
    const outcome = await shared.run(row);
    if (outcome.list.length > 0) {
      // What this attack left behind must not be held against the next one.
      await shared.kill();
      shared = undefined;
    }
    return outcome;
  };
  const run = (row: Row): Promise<Outcome> => (row.alone ? runAlone(row, context) : runShared(row));

  test.each(rows.map((row) => [`${row.finding}: ${row.name}`, row] as const))(
    "%s",
    async (_title, row) => {
      let outcome = await run(row);
      for (let tries = 1; tries < TRIES && outcome.list.length > 0; tries++) {
        if (outcome.list.some(({ check }) => check !== "main")) break;
        if (outcome.figures.mainCpuMs > NOISE_MS) break;
        await sleep(200);
        outcome = await run(row);
      }
      process.stdout.write(`${figuresLine(row, outcome)}\n`);
      expect(describeAll(outcome.list)).toEqual([]);
    },
    ROW_MS,
  );

  test("the Pi that the rows shared ends by itself, with exit code 0 and nothing left behind", async () => {
    const wrong = await shared?.end();
    shared = undefined;
    expect(wrong ?? []).toEqual([]);
  });
}
