/**
 * Owns: the tests of a table of attacks: one test for each row, with the packed extension in the real Pi.
 * Must not: know attacks.
 * Called by: the test files of this folder.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, type TestContext, test } from "vitest";
import { THOROUGH } from "../../support/long.ts";
import { LONG_TEST_MS } from "../../support/patience.ts";
import { packedEntry } from "../../support/run-package.ts";
import { baselineOf } from "./baseline.ts";
import type { Outcome } from "./problems.ts";
import type { Problem, Row } from "./row.ts";
import type { RowContext } from "./run-row.ts";
import { createTurns, inTurn, type Turns } from "./turns.ts";

/** A stall counts only if it comes back: the best of these runs decides. */
const TRIES = 3;
/** A stall of more CPU time than this is not noise and is not tried again. */
const NOISE_MS = 500;

const describeAll = (problems: readonly Problem[]): string[] =>
  problems.map(({ check, text }) => `${check}: ${text.replaceAll("\n", " | ")}`);

/** The line that is printed for each row; it shows which row comes near its bound. */
const figuresLine = ({ finding, name }: Row, { figures, list }: Outcome): string => {
  const [call, cpu, gap] = [figures.callMs, figures.mainCpuMs, figures.mainGapMs].map(Math.round);
  return `hostile: ${list.length === 0 ? "held" : "BROKE"}: main ${cpu} ms CPU over bare Pi's, ${gap} ms by the clock; healthy call ${call} ms: ${finding}: ${name}`;
};

/** `beside`: how many attacks are in the configuration at the same time, if not the usual number. */
export function hostileSuite(all: readonly Row[], { beside }: { beside?: number } = {}): void {
  const rows = inTurn(all);
  const titled = rows.map((row) => [`${row.finding}: ${row.name}`, row] as const);
  let context: RowContext;
  let turns: Turns | undefined;
  beforeAll(async () => {
    const caches = inject("piCaches");
    context = { extension: await packedEntry(), caches, baseline: await baselineOf(caches) };
  });
  afterAll(async () => {
    await turns?.kill();
  });

  const proven = async (row: Row, task: TestContext["task"]): Promise<void> => {
    const selected = new Set(task.file.tasks.filter(({ mode }) => mode !== "skip").map(({ name }) => name));
    turns ??= createTurns(
      titled.filter(([title]) => selected.has(title)).map(([, one]) => one),
      context,
      beside,
    );
    let outcome = await turns.run(row);
    for (let tries = 1; tries < TRIES && outcome.list.length > 0; tries++) {
      if (outcome.list.some(({ check }) => check !== "main")) break;
      if (outcome.figures.mainCpuMs > NOISE_MS) break;
      await sleep(200);
      outcome = await turns.again(row);
    }
    process.stdout.write(`${figuresLine(row, outcome)}\n`);
    expect(describeAll(outcome.list)).toEqual([]);
  };
  for (const [title, row] of titled)
    test(title, { timeout: LONG_TEST_MS, tags: row.thorough ? [THOROUGH] : [] }, ({ task }) =>
      proven(row, task),
    );

  test("the end of the Pi that the rows share -> exit code 0, and no process is left", async () => {
    expect((await turns?.end()) ?? []).toEqual([]);
  });
}
