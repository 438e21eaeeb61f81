/**
 * Owns: for how long tests wait for what must come. Only a hang takes so long, on a slow and busy machine too: no test is about
 * these times, and none has a number of its own.
 */

/** For what takes a second on a fast machine: an answer, a screen, the end of a process. */
export const PATIENCE_MS = 60_000;

/** For a whole test. */
export const TEST_MS = 2 * PATIENCE_MS;

/** For a whole test that takes a minute on a fast machine. */
export const LONG_TEST_MS = 15 * PATIENCE_MS;
