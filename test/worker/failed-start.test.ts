/** Owns: the end of a session whose start failed: no process is left, and the log is complete, as in any session. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import type { SessionFacts } from "../../src/shared/protocol/session.ts";
import { createAnswer } from "../../workers/connection/rpc.ts";
import { createLog } from "../../workers/shared/log.ts";
import { waitGone } from "../support/processes.ts";
import { configure, createPlace, fixture, onCleanup, until } from "./support.ts";

const never = new AbortController().signal;

/** Opens the worker's handlers in this thread. `fault` stands for a bug in the code that carries out the first plan. */
async function open(fault: (event: WorkerEvent) => void) {
  const place = await createPlace();
  await configure(place, { s: fixture("ignores-end.mjs") });
  const logFile = join(place.agentDir, "mcp-threads.log");
  const events: WorkerEvent[] = [];
  const answer = createAnswer({
    askUser: async () => undefined,
    emit: (event) => {
      fault(event);
      events.push(event);
    },
    log: createLog({ file: logFile, label: "test" }),
    talkers: { of: () => () => undefined },
  });
  onCleanup(() => answer("shutdown", {}, never));
  const facts: SessionFacts = {
    ...place,
    projectTrusted: true,
    configPath: undefined,
    registered: [],
    canAsk: true,
    snapshotChecksum: undefined,
  };
  const spawned = (): Promise<number> =>
    until(async () => events.flatMap((event) => (event.type === "spawned" ? [event.pid] : []))[0]);
  return { answer, facts, spawned, log: () => readFile(logFile, "utf8") };
}

/** Throws at the first event of the type. */
function failingOnce(type: WorkerEvent["type"]): (event: WorkerEvent) => void {
  let failed = false;
  return (event) => {
    if (failed || event.type !== type) return;
    failed = true;
    throw new Error(`no ${type}`);
  };
}

test("a start that fails before any server starts -> shutdown settles, and the log is written completely", async () => {
  const { answer, facts, log } = await open(failingOnce("planned"));
  await expect(answer("startSession", facts, never)).rejects.toThrow("no planned");
  await answer("shutdown", {}, never);
  expect(await log()).toMatch(/ stopped\n$/);
});

test("a start that fails after a server has started -> the server's process is gone after shutdown", async () => {
  const { answer, facts, spawned, log } = await open(failingOnce("server"));
  await expect(answer("startSession", facts, never)).rejects.toThrow("no server");
  const pid = await spawned();
  await answer("shutdown", {}, never);
  expect(await waitGone([pid])).toEqual([]);
  expect(await log()).toMatch(/ stopped\n$/);
});

test("a second start after a failed one -> a new session; the first session's server is gone", async () => {
  const { answer, facts, spawned } = await open(failingOnce("server"));
  await expect(answer("startSession", facts, never)).rejects.toThrow("no server");
  const pid = await spawned();
  await answer("startSession", { ...facts }, never);
  expect(await waitGone([pid])).toEqual([]);
  await answer("settleTools", { timeoutMs: 40_000 }, never);
  const { servers } = await answer("status", {}, never);
  expect(servers.map(({ state }) => state)).toEqual(["connected"]);
});
