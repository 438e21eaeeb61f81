/**
 * Owns: many calls to many servers while servers and the worker are killed at random. Every call settles once, with its
 * own result or with an error that says why. No extra process is left, and the heaps do not grow.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { repeats } from "../support/long.ts";
import { processesWithMarker } from "../support/processes.ts";
import { createRandom } from "../unit/random.ts";
import { breakable, createPlace, fixture, readIfThere, start, tellWorker, textOf, until } from "./support.ts";

/** Number of measured calls. A quarter as many run before them, so that V8 compiles its code earlier. */
const CALLS = repeats("CHAOS_CALLS", 200);
const FEW = CALLS < 2_000;
const SERVERS = FEW ? 10 : 20;
const IN_FLIGHT = FEW ? 25 : 50;
/** A server is killed once per this many calls. */
const CALLS_A_KILL = FEW ? 20 : 40;
/** One of this many calls is cancelled. */
const CALLS_A_CANCEL = 50;

/**
 * A heap that grows by more than this keeps about 4 KB for each of 2,000 calls. Code that V8 compiles late and tables
 * that V8 grows in steps stay far below this.
 */
const LEAK_BYTES = 8 * 1024 * 1024;

/** Error codes with which a call may end. */
const ALLOWED = ["cancelled", "connect_failed", "runtime_restarted", "server_died"];

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

/** If the servers are shared, their hub is killed as they are, but is no server. */
const isHub = (command: string): boolean => command.includes("hub.js");

const mebibytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;

test(`${CALLS} calls to ${SERVERS} servers, servers and the worker killed at random -> each settles once, with its own result`, {
  tags: "thorough",
}, async () => {
  const random = createRandom(20_261_121);
  const place = await createPlace();
  const names = Array.from({ length: SERVERS }, (_, i) => `s${i}`);
  const recordOf = (name: string): string => join(place.cwd, name);
  const entries = names.map((name) => [name, fixture("echoes.mjs", { NAME: name, RECORD: recordOf(name) })]);
  const at = await start(Object.fromEntries(entries), {
    place,
    workerUrl: breakable,
  });
  expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);

  const outcomes = new Map<string, number>();
  const wrong: string[] = [];
  let settled = 0;

  const call = async (id: string): Promise<void> => {
    const server = names[random.below(SERVERS)] ?? "";
    const controller = new AbortController();
    const cancel = random.below(CALLS_A_CANCEL) === 0;
    const called = at.call(server, "work", { call: id }, controller.signal).then(
      (result) => {
        const text = textOf(result);
        if (text !== `${server} ${id}`) wrong.push(`${server} ${id} got ${text}`);
        return "answered";
      },
      (error: unknown) => {
        if (error instanceof ThreadsError && ALLOWED.includes(error.code)) return error.code;
        wrong.push(`${server} ${id} failed with ${String(error)}`);
        return "other";
      },
    );
    if (cancel) setTimeout(() => controller.abort(), random.below(20));
    const outcome = await called;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    settled++;
  };

  const killOne = async (): Promise<void> => {
    const running = await processesWithMarker(place.agentDir);
    const pid = running[random.below(running.length)]?.pid;
    if (pid === undefined) return;
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // The process may have ended since it was listed.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };

  const logFile = join(place.agentDir, "mcp-threads.log");
  const breakWorker = (): Promise<void> => tellWorker(place, random.below(2) === 0 ? "crash" : "exit");

  const workerHeapBytes = async (): Promise<number> => {
    await tellWorker(place, "heap");
    const text = await until(async () => (await readIfThere(`${logFile}.heap`)) || undefined);
    await rm(`${logFile}.heap`);
    return Number(text);
  };
  const measure = async () => ({
    heap: await heapBytes(),
    workerHeap: await workerHeapBytes(),
    rss: process.memoryUsage().rss,
  });

  /** Makes `calls` calls, IN_FLIGHT at a time. The worker breaks before the calls whose numbers are in `breaks`. */
  const round = async (name: string, calls: number, breaks: readonly number[]): Promise<void> => {
    let next = 0;
    const runOne = async (): Promise<void> => {
      while (next < calls) {
        const i = next++;
        if (i % CALLS_A_KILL === CALLS_A_KILL - 1) await killOne();
        if (breaks.includes(i)) await breakWorker();
        await call(`${name}-${i}`);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, runOne));
  };

  await round("warm-up", CALLS / 4, [CALLS / 8]);
  const before = await measure();
  const breaks = FEW ? [CALLS / 2] : [CALLS / 4, CALLS / 2, (3 * CALLS) / 4];
  await round("main", CALLS, breaks);
  const after = await measure();

  // The resident memory is printed but not asserted: it depends on the moment when the system takes freed pages back.
  process.stdout.write(
    `chaos: ${JSON.stringify(Object.fromEntries(outcomes))}, ${at.crashes.length} worker crashes, ` +
      `heap ${mebibytes(before.heap)} -> ${mebibytes(after.heap)}, ` +
      `worker heap ${mebibytes(before.workerHeap)} -> ${mebibytes(after.workerHeap)}, rss ${mebibytes(before.rss)} -> ${mebibytes(after.rss)}\n`,
  );
  expect(wrong).toEqual([]);
  expect(settled).toBe(CALLS * 1.25);
  expect(outcomes.get("answered")).toBeGreaterThan(CALLS * 0.5);
  expect(at.crashes.map(({ givenUp }) => givenUp)).toEqual([false, ...breaks.map(() => false)]);
  expect(after.heap - before.heap).toBeLessThan(LEAK_BYTES);
  expect(after.workerHeap - before.workerHeap).toBeLessThan(LEAK_BYTES);

  // No call ran twice, with or without a result.
  const ran = (await Promise.all(names.map((name) => readIfThere(recordOf(name)))))
    .join("")
    .trim()
    .split("\n");
  expect(ran.length).toBe(new Set(ran).size);
  expect(ran.length).toBeGreaterThanOrEqual(outcomes.get("answered") ?? 0);

  // The running processes are exactly those of the servers in the status: no server runs twice.
  await until(async () => {
    const { servers } = await at.runtime.ask("status", {});
    const known = servers.flatMap(({ pid }) => (pid === undefined ? [] : [pid])).sort();
    const all = await processesWithMarker(place.agentDir);
    const running = all.flatMap(({ pid, command }) => (isHub(command) ? [] : [pid])).sort();
    return running.join() === known.join() || undefined;
  });
});
