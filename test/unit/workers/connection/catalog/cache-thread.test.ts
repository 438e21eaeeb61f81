/** Owns: which errors of a task mean that its thread has ended, so that other tasks are run again. */
import { expect, test } from "vitest";
import { isThreadEnd } from "../../../../../workers/connection/catalog/cache-thread.ts";

test.each<[string, unknown, boolean]>([
  ["the abort of a task", new DOMException("The task has been aborted", "AbortError"), true],
  ["no memory left", Object.assign(new Error("limit"), { code: "ERR_WORKER_OUT_OF_MEMORY" }), true],
  ["an exit of the thread", new Error("worker exited with code: 7"), true],
  ["a pool that is being destroyed", new Error("Terminating worker thread"), true],
  ["an error of the task", new Error("broken"), false],
  ["an error of the task that mentions an exit", new Error("the worker exited with code: 7"), false],
  ["another code", Object.assign(new Error("no"), { code: "ENOENT" }), false],
  ["something thrown that is not an error", "worker exited with code: 7", false],
])("isThreadEnd: %s", (_case, error, isEnd) => {
  expect(isThreadEnd(error)).toBe(isEnd);
});
