/**
 * Matches a regular expression that a model wrote, on a thread of its own that is ended when it takes too long: some
 * patterns take an engine years for one text. A thread can be ended in every runtime that Pi has; `timeout` of `node:vm`
 * stops a pattern in Node, but in Bun only between two texts. One pattern is matched at a time.
 */
import { Worker } from "node:worker_threads";
import type { Matches, PatternTask } from "../../../src/shared/protocol/calls.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

/** For loading a thread of a few lines. A machine that needs longer has other problems. */
const START_MS = 5_000;
/** The next pattern waits this long for a thread that still runs, because such a thread keeps a core busy. */
const END_MS = 5_000;
/** A pattern that needs more memory is not a search for a tool. */
const HEAP_MEBIBYTES = 64;

/**
 * The code of the thread: plain JavaScript in a string, because a packed worker is one file. Without the flag `u` a
 * pattern may contain what only looks like an escape, so the flag is set only for escapes that need it. The mistake is at
 * the end of the shortest start of the pattern that fails in the same way as the whole pattern.
 */
const THREAD = `
const { parentPort } = require("node:worker_threads");
const SEPARATOR = String.fromCharCode(0);
const compile = (source) => new RegExp(source, /\\\\[pPu]\\{/.test(source) ? "iu" : "i");
const problemOf = (source) => {
  try {
    compile(source);
  } catch (error) {
    const reason = String(error && error.message);
    return reason.slice(reason.lastIndexOf(": ") + 1).trim();
  }
};
const mistake = (pattern) => {
  const reason = problemOf(pattern);
  let at = pattern.length;
  while (at > 0 && problemOf(pattern.slice(0, at - 1)) === reason) at--;
  return { problem: reason + " at character " + at + ": " + JSON.stringify(pattern.slice(Math.max(0, at - 20), at)) };
};
const match = ({ pattern, columns }) => {
  if (problemOf(pattern) !== undefined) return mistake(pattern);
  const expression = compile(pattern);
  const texts = columns.map((column) => column.split(SEPARATOR));
  const rows = [];
  for (let row = 0; row < texts[0].length; row++) {
    if (texts.some((column) => expression.test(column[row]))) rows.push(row);
  }
  return { rows };
};
parentPort.on("message", (task) => parentPort.postMessage(match(task)));
parentPort.postMessage("ready");
`;

const tooSlow = `it took longer than ${LIMITS.patternMs} ms. Make it simpler: no repetition within a repetition, as in (a+)+`;

const CANCELLED: Matches = { problem: "the search was cancelled" };

/** Ends the thread. Settles when the thread has ended, or after `END_MS`. */
async function end(thread: Worker): Promise<void> {
  // In Bun the thread ends only when its engine is done with the text: a person who quits Pi does not wait for that.
  thread.unref();
  const timer = Promise.withResolvers<void>();
  const timeout = setTimeout(timer.resolve, END_MS);
  timeout.unref();
  await Promise.race([thread.terminate(), timer.promise]);
  clearTimeout(timeout);
}

function run(task: PatternTask, signal: AbortSignal): { matches: Promise<Matches>; gone: Promise<void> } {
  const thread = new Worker(THREAD, {
    eval: true,
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES },
  });
  const { promise, resolve } = Promise.withResolvers<Matches>();
  let timer = setTimeout(
    () => resolve({ problem: `it could not be tried within ${START_MS / 1_000} s` }),
    START_MS,
  );
  const start = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => resolve({ problem: tooSlow }), LIMITS.patternMs);
    thread.postMessage(task);
  };
  thread.on("message", (message: Matches | "ready") => {
    if (message === "ready") start();
    else resolve(message);
  });
  thread.on("error", (error: Error) => resolve({ problem: `it could not be tried: ${error.message}` }));
  thread.on("exit", () => resolve({ problem: "it could not be tried: the thread ended" }));
  signal.addEventListener("abort", () => resolve(CANCELLED), { once: true });
  const gone = promise.then(() => {
    clearTimeout(timer);
    return end(thread);
  });
  return { matches: promise, gone };
}

export function createPatternMatcher() {
  let free: Promise<void> = Promise.resolve();
  return {
    match: async (task: PatternTask, signal: AbortSignal): Promise<Matches> => {
      if (task.pattern.length > LIMITS.patternChars) {
        return { problem: `it is longer than ${LIMITS.patternChars} characters` };
      }
      const before = free;
      const { promise, resolve } = Promise.withResolvers<void>();
      free = promise;
      await before;
      if (signal.aborted) {
        resolve();
        return CANCELLED;
      }
      try {
        const { matches, gone } = run(task, signal);
        gone.then(resolve, resolve);
        return await matches;
      } catch (error) {
        // Node throws it at once where the system gives no more threads.
        resolve();
        return { problem: `it could not be tried: ${messageOf(error)}` };
      }
    },
  };
}
