/**
 * Owns: the stateless era over stdio: servers that die, hang, write garbage or never answer, what a cancelled call sends,
 * and how the worker comes to the right era with few processes.
 */
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sized } from "../support/long.ts";
import { MODERN } from "../support/modern-http.ts";
import { waitGone } from "../support/processes.ts";
import {
  createPlace,
  currentCatalog,
  endAll,
  fixtures,
  forRows,
  modernProgram,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

const odd = (way: string, more: object = {}) => ({
  command: process.execPath,
  args: [join(fixtures, "modern", "odd.mjs")],
  env: { ODD: way },
  ...more,
});
const modern = (more: object = {}) => ({
  ...modernProgram({ ERAS: "modern" }),
  protocol: MODERN,
  ...more,
});
const MEBIBYTE = 1024 * 1024;
/** Just below the largest message, or well above what a model is shown. */
const LARGE_MEBIBYTES = sized(4, 60);

/** One worker with a server for each test, or for several that a server takes one after the other. */
const shared = forRows(async () => {
  const at = await start({
    steady: modern({ lifecycle: "eager", timeout: 300 }),
    mortal: modern(),
    slow: modern({ timeout: 2 }),
    "garbage auto": odd("garbage"),
    "garbage pinned": odd("garbage", { protocol: MODERN }),
    unknown: odd("unknown"),
    "no-meta": odd("no-meta"),
    silent: odd("silent", { protocol: MODERN, startupTimeoutMs: 200 }),
    dies: odd("dies", { protocol: MODERN }),
    hangs: odd("hangs", { protocol: MODERN, timeout: 0.5 }),
  });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return at;
});
/** How many processes of the server were started. */
const spawned = (at: Started, name: string): number =>
  at.events.filter((event) => event.type === "spawned" && event.server === name).length;

test("a server that dies in a call -> server_died with its exit; the next call starts it again in the same era", async () => {
  const at = await shared();
  const failed = await at.failedCall("mortal", "die");
  expect(failed).toMatchObject({ code: "server_died", data: { server: "mortal" } });
  expect(failed.message).toContain("exited with code 7");
  expect(failed.remedy).toContain("The call may have run.");
  expect(textOf(await at.call("mortal", "echo", { text: "again" }))).toBe("again");
  expect(spawned(at, "mortal")).toBe(2);
});

test("a server that never answers a call -> call_timeout; a cancelled call reaches it", async () => {
  const at = await shared();
  expect(await at.failedCall("slow", "hang")).toMatchObject({ code: "call_timeout" });
  const counts = async () => JSON.parse(textOf(await at.call("slow", "counts")));
  await until(async () => (await counts()).cancelled === 1 || undefined);
  expect(spawned(at, "slow")).toBe(1);
});

test("a call that is cancelled -> the server is told, and stops", async () => {
  const at = await shared();
  const counts = async () => JSON.parse(textOf(await at.call("steady", "counts")));
  const cancel = new AbortController();
  const failed = at.failedCall("steady", "hang", {}, cancel.signal);
  await until(async () => (await counts()).hanging === 1 || undefined);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => (await counts()).cancelled === 1 || undefined);
});

test("a large result -> cut for the model and stored whole", async () => {
  const at = await shared();
  const result = await at.call("steady", "big", { mebibytes: LARGE_MEBIBYTES });
  expect((await stat(result.storedAt ?? "")).size).toBeGreaterThanOrEqual(LARGE_MEBIBYTES * MEBIBYTE);
  expect(textOf(result).length).toBeLessThan(MEBIBYTE);
  expect(at.crashes).toEqual([]);
});

test("progress, and a tool that is added -> both arrive", async () => {
  const at = await shared();
  expect(textOf(await at.call("steady", "work", { steps: 3, ms: 10 }))).toBe("3 steps");
  expect(await at.event("progress")).toMatchObject({ message: "step 1", progress: 1, total: 3 });
  await at.call("steady", "grow");
  await until(async () => (await currentCatalog(at)).get("steady__grown"));
  expect(textOf(await at.call("steady", "grown"))).toBe("grown");
});

test.each(["auto", "pinned"])(
  "garbage between the messages, protocol %s -> the server works",
  async (how) => {
    const at = await shared();
    expect(await at.settled(`garbage ${how}`)).toMatchObject({ state: "connected" });
    expect(textOf(await at.call(`garbage ${how}`, "work"))).toBe("worked");
    expect(at.crashes).toEqual([]);
  },
);

test("auto, a server that does not know initialize -> the new era in the same process", async () => {
  const at = await shared();
  expect(await at.settled("unknown")).toMatchObject({ state: "connected" });
  expect(textOf(await at.call("unknown", "work"))).toBe("worked");
  expect(spawned(at, "unknown")).toBe(1);
});

test("auto, a server of the old era that ends at any other first request -> connected at once, one process", async () => {
  const at = await shared();
  expect(await at.settled("no-meta")).toMatchObject({ state: "connected" });
  expect(textOf(await at.call("no-meta", "work"))).toBe("worked");
  expect(spawned(at, "no-meta")).toBe(1);
});

test(`protocol "${MODERN}", a server that never answers -> connect_timeout, and no process is left`, async () => {
  const at = await shared();
  expect(await at.settled("silent")).toMatchObject({ state: "failed", error: { code: "connect_timeout" } });
  const { pid } = await at.event("spawned", ({ server }) => server === "silent");
  expect(await waitGone([pid])).toEqual([]);
});

test.each([
  ["dies", "server_died"],
  ["hangs", "call_timeout"],
])("a raw server that %s in a call -> %s", async (name, code) => {
  const at = await shared();
  expect(await at.failedCall(name, "work")).toMatchObject({ code });
});

test("a server that becomes one of the old era -> the next session connects all the same", async () => {
  const place = await createPlace();
  // The definition stays the same; the program behind it changes.
  const script = join(place.agentDir, "server.mjs");
  const { args, ...program } = modernProgram();
  const entry = { ...program, args: [script] };
  const file = (eras: string) =>
    writeFile(
      script,
      `process.env.ERAS = ${JSON.stringify(eras)};\nawait import(${JSON.stringify((args as string[])[0])});\n`,
    );
  await file("modern");
  const second = await start({ s: entry }, { place });
  await second.settled("s");
  expect(JSON.parse(textOf(await second.call("s", "sees"))).envelope).not.toBeNull();
  await endAll(second);
  await file("legacy");
  const third = await start({ s: entry }, { place });
  expect(JSON.parse(textOf(await third.call("s", "sees"))).envelope).toBeNull();
});
