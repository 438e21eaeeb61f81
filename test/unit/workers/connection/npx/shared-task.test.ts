import { expect, test } from "vitest";
import { createTaskSharing } from "../../../../../workers/connection/npx/npx.ts";

/** A task that ends when it is told to, or some turns after its abort. */
function controlled() {
  const done = Promise.withResolvers<string>();
  const state = { runs: 0, ended: false };
  const task = async (signal: AbortSignal): Promise<string> => {
    state.runs++;
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => aborted.reject(signal.reason));
    try {
      return await Promise.race([done.promise, aborted.promise]);
    } finally {
      await new Promise((resolve) => setImmediate(resolve));
      state.ended = true;
    }
  };
  return { done, state, task };
}

const live = new AbortController().signal;

test("callers with one key -> one run; another key -> its own run", async () => {
  const share = createTaskSharing<string>();
  const { done, state, task } = controlled();
  const calls = [share("a", live, task), share("a", live, task), share("b", live, task)];
  done.resolve("x");
  expect(await Promise.all(calls)).toEqual(["x", "x", "x"]);
  expect(state.runs).toBe(2);
  await share("a", live, task);
  expect(state.runs).toBe(3);
});

test("one caller aborts -> the run goes on for the others", async () => {
  const share = createTaskSharing<string>();
  const { done, state, task } = controlled();
  const leaving = new AbortController();
  const left = share("a", leaving.signal, task);
  const stays = share("a", live, task);
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(state.ended).toBe(false);
  done.resolve("x");
  expect(await stays).toBe("x");
});

test("the last caller aborts -> the run ends before the caller rejects", async () => {
  const share = createTaskSharing<string>();
  const { state, task } = controlled();
  const controllers = [new AbortController(), new AbortController()];
  const calls = controllers.map(({ signal }) => share("a", signal, task));
  for (const controller of controllers) controller.abort(new Error("gone"));
  const results = await Promise.allSettled(calls);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(state.ended).toBe(true);
});

test("a run fails -> all its callers fail, and the next caller starts another run", async () => {
  const share = createTaskSharing<string>();
  const fail = () => Promise.reject(new Error("no"));
  const calls = [share("a", live, fail), share("a", live, fail)];
  for (const call of calls) await expect(call).rejects.toThrow("no");
  expect(await share("a", live, () => Promise.resolve("x"))).toBe("x");
});
