/**
 * Owns: the baseline of the check `main`: the CPU time of bare Pi in the same kind of run as a row. One measurement
 * serves all test files of a test run.
 * Must not: judge results.
 * Called by: suite.ts and the bench scenario `hostile`.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { madeOnce } from "../../support/made-once.ts";
import { callOf, type Spent, searchOf } from "./arena.ts";
import { EMPTY_EXTENSION, openPlace } from "./place.ts";
import { openStage } from "./stage.ts";

/** The CPU time of bare Pi until Pi is ready, in the first prompt, and later. */
export interface Baseline {
  start: Spent;
  first: Spent;
  later: Spent;
  /** Until a running Pi is ready in another home. */
  entered: Spent;
  /** In the first prompt there. */
  enteredFirst: Spent;
}

/**
 * Runs bare Pi: a start, a first prompt with two calls, and three more such prompts; then it moves into another home for
 * one more.
 */
async function runBare(caches: string): Promise<Baseline> {
  const place = await openPlace({ caches });
  const other = await openPlace({ caches });
  try {
    const stage = await openStage(place, { extension: EMPTY_EXTENSION, caches });
    const { arena } = stage;
    const start = await arena.spent();
    const ask = () => arena.prompt(searchOf("select:healthy__echo"), callOf("healthy__echo", { text: "x" }));
    await ask();
    const first = await arena.spent();
    for (let count = 0; count < 3; count++) await ask();
    const later = await arena.spent();
    await stage.enter({ place: other });
    const entered = await arena.spent();
    await ask();
    const enteredFirst = await arena.spent();
    await stage.end();
    return { start, first, later, entered, enteredFirst };
  } finally {
    await other.dispose();
    await place.dispose();
  }
}

/** `caches`: absolute path of the folder with Pi's transforms and compiled code; the rows use the same folder. */
export async function measureBare(caches: string): Promise<Baseline> {
  // The first run fills the caches. Its compile time in the baseline would make every row's bound too loose.
  await runBare(caches);
  return runBare(caches);
}

/** Returns the baseline of this test run. The first test file that asks measures it, the others wait. */
export async function baselineOf(caches: string): Promise<Baseline> {
  const path = join(caches, "bare-pi.json");
  await madeOnce(path, async (unfinished) =>
    writeFile(unfinished, JSON.stringify(await measureBare(caches))),
  );
  return JSON.parse(await readFile(path, "utf8")) as Baseline;
}
