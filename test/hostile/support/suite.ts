/**
 * Owns: the tests of a table of attacks: one test for each row, with the packed extension in the real Pi.
 * Must not: know attacks.
 * Called by: the test files of this folder.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { packedEntry } from "../../support/run-package.ts";
import { baselineOf } from "./baseline.ts";
import type { Outcome } from "./problems.ts";
import type { Problem, Row } from "./row.ts";
import { type RowContext, runAlone, type SharedPi, startShared } from "./run-row.ts";

/** A stall counts only if it comes back: the best of these runs decides. */
const TRIES = 3;
/** A stall of more CPU time than this is not noise and is not tried again. */
const NOISE_MS = 500;
const ROW_MS = 300_000;

const describeAll = (problems: readonly Problem[]): string[] =>
  problems.map(({ check, text }) => `${check}: ${text.replaceAll("\n", " | ")}`);

/** The line that is printed for each row; it shows which row comes near its bound. */
const figuresLine = ({ finding, name }: Row, { figures, list }: Outcome): string => {
  const [call, cpu, gap] = [figures.callMs, figures.mainCpuMs, figures.mainGapMs].map(Math.round);
  return `hostile: ${list.length === 0 ? "held" : "BROKE"}: main ${cpu} ms CPU over bare Pi's, ${gap} ms by the clock; healthy call ${call} ms: ${finding}: ${name}`;
};

export function hostileSuite(rows: readonly Row[]): void {
  let context: RowContext;
  let shared: SharedPi | undefined;
  beforeAll(async () => {
    const caches = inject("piCaches");
    context = { extension: await packedEntry(), caches, baseline: await baselineOf(caches) };
  });
  afterAll(async () => {
    await shared?.kill();
  });

  const runShared = async (row: Row): Promise<Outcome> => {
    shared ??= await startShared(context);
    const outcome = await shared.run(row);
    if (outcome.list.length > 0) {
      // A Pi that this attack has damaged must not affect the next row.
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

  test("the end of the Pi that the rows share -> exit code 0, and no process is left", async () => {
    const wrong = await shared?.end();
    shared = undefined;
    expect(wrong ?? []).toEqual([]);
  });
}
