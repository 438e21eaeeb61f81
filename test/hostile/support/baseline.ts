/**
 * Owns: the baseline of the check `main`: the CPU time of bare Pi in the same kind of run as a row. One measurement
 * serves all test files of a test run.
 * Must not: judge results.
 * Called by: suite.ts and the bench scenario `hostile`.
 */
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Arena, callOf, type Spent, searchOf } from "./arena.ts";
import { EMPTY_EXTENSION, openPlace } from "./place.ts";

/** The CPU time of bare Pi until Pi is ready, in the first prompt, and later. */
export interface Baseline {
  start: Spent;
  first: Spent;
  later: Spent;
}

/** Runs bare Pi: a start, a first prompt with two calls, and three more such prompts. */
async function runBare(caches: string): Promise<Baseline> {
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

/** `caches`: absolute path of the folder with Pi's transforms and compiled code; the rows use the same folder. */
export async function measureBare(caches: string): Promise<Baseline> {
  // The first run fills the caches. Its compile time in the baseline would make every row's bound too loose.
  await runBare(caches);
  return runBare(caches);
}

const readBaseline = async (path: string): Promise<Baseline | undefined> => {
  const text = await readFile(path, "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Baseline);
};

/** Returns the baseline of this test run. If two test files measure at the same time, the first result serves both. */
export async function baselineOf(caches: string): Promise<Baseline> {
  const path = join(caches, "bare-pi.json");
  const known = await readBaseline(path);
  if (known) return known;
  const measured = await measureBare(caches);
  const own = `${path}.${process.pid}`;
  await writeFile(own, JSON.stringify(measured));
  await link(own, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(own);
  return (await readBaseline(path)) ?? measured;
}
