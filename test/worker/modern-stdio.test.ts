/**
 * Owns: the stateless era over stdio: servers that die, hang, write garbage or never answer, what a cancelled call sends,
 * and how the worker comes to the right era with few processes.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MODERN } from "../support/modern-http.ts";
import {
  currentCatalog,
  fixtures,
  modernProgram,
  type Place,
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
const placeOf = ({ agentDir, cwd }: Place): Place => ({ agentDir, cwd });
const spawned = (at: Started): number => at.events.filter(({ type }) => type === "spawned").length;

test("a server that dies in a call -> server_died with its exit; the next call starts it again in the same era", async () => {
  const at = await start({ s: modern() });
  await at.settled("s");
  const failed = await at.failedCall("s", "die");
  expect(failed).toMatchObject({ code: "server_died", data: { server: "s" } });
  expect(failed.message).toContain("exited with code 7");
  expect(failed.remedy).toContain("The call may have run.");
  expect(textOf(await at.call("s", "echo", { text: "again" }))).toBe("again");
  expect(spawned(at)).toBe(2);
});

test("a server that never answers a call -> call_timeout; a cancelled call reaches it", async () => {
  const at = await start({ s: modern({ timeout: 0.2 }) });
  await at.settled("s");
  expect(await at.failedCall("s", "hang")).toMatchObject({ code: "call_timeout" });
  const counts = async () => JSON.parse(textOf(await at.call("s", "counts")));
  await until(async () => (await counts()).cancelled === 1 || undefined);
  expect(spawned(at)).toBe(1);
});

test("a call that is cancelled -> the server is told, and stops", async () => {
  const at = await start({ s: modern() });
  await at.settled("s");
  const counts = async () => JSON.parse(textOf(await at.call("s", "counts")));
  const cancel = new AbortController();
  const failed = at.failedCall("s", "hang", {}, cancel.signal);
  await until(async () => (await counts()).hanging === 1 || undefined);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => (await counts()).cancelled === 1 || undefined);
});

test("a result of 60 MiB -> cut for the model and stored whole", async () => {
  const at = await start({ s: modern({ timeout: 300 }) });
  await at.settled("s");
  const result = await at.call("s", "big", { mebibytes: 60 });
  expect(result.storedAt).toBeDefined();
  expect(textOf(result).length).toBeLessThan(1024 * 1024);
  expect(at.crashes).toEqual([]);
});

test("progress, and a tool that is added -> both arrive", async () => {
  const at = await start({ s: modern({ lifecycle: "eager" }) });
  await at.settled("s");
  expect(textOf(await at.call("s", "work", { steps: 3, ms: 10 }))).toBe("3 steps");
  expect(await at.event("progress")).toMatchObject({ message: "step 1", progress: 1, total: 3 });
  await at.call("s", "grow");
  await until(async () => (await currentCatalog(at)).get("s__grown"));
  expect(textOf(await at.call("s", "grown"))).toBe("grown");
});

test.each(["auto", MODERN])(
  'garbage between the messages, protocol "%s" -> the server works',
  async (protocol) => {
    const at = await start({ s: odd("garbage", { protocol }) });
    expect(await at.settled("s")).toMatchObject({ state: "connected" });
    expect(textOf(await at.call("s", "work"))).toBe("worked");
    expect(at.crashes).toEqual([]);
  },
);

test("auto, a server that does not know initialize -> the new era in the same process", async () => {
  const at = await start({ s: odd("unknown") });
  expect(await at.settled("s")).toMatchObject({ state: "connected" });
  expect(textOf(await at.call("s", "work"))).toBe("worked");
  expect(spawned(at)).toBe(1);
});

test("auto, a server of the old era that ends at any other first request -> connected at once, one process", async () => {
  const at = await start({ s: odd("no-meta") });
  expect(await at.settled("s")).toMatchObject({ state: "connected" });
  expect(textOf(await at.call("s", "work"))).toBe("worked");
  expect(spawned(at)).toBe(1);
});

test(`protocol "${MODERN}", a server that never answers -> connect_timeout, and no process is left`, async () => {
  const at = await start({ s: odd("silent", { protocol: MODERN, startupTimeoutMs: 200 }) });
  expect(await at.settled("s")).toMatchObject({ state: "failed", error: { code: "connect_timeout" } });
});

test.each([
  ["dies", "server_died"],
  ["hangs", "call_timeout"],
])("a raw server that %s in a call -> %s", async (way, code) => {
  const at = await start({ s: odd(way, { protocol: MODERN, timeout: 0.5 }) });
  await at.settled("s");
  expect(await at.failedCall("s", "work")).toMatchObject({ code });
});

test("a server that becomes one of the old era -> the next session connects all the same", async () => {
  const first = await start({ s: modernProgram({ ERAS: "modern" }) });
  await first.settled("s");
  await first.runtime.stop();
  // The definition stays the same; the program behind it changes.
  const script = join(first.agentDir, "server.mjs");
  const { args, ...program } = modernProgram();
  const entry = { ...program, args: [script] };
  const file = (eras: string) =>
    writeFile(
      script,
      `process.env.ERAS = ${JSON.stringify(eras)};\nawait import(${JSON.stringify((args as string[])[0])});\n`,
    );
  await file("modern");
  const second = await start({ s: entry }, { place: placeOf(first) });
  await second.settled("s");
  expect(JSON.parse(textOf(await second.call("s", "sees"))).envelope).not.toBeNull();
  await second.runtime.stop();
  await file("legacy");
  const third = await start({ s: entry }, { place: placeOf(first) });
  expect(JSON.parse(textOf(await third.call("s", "sees"))).envelope).toBeNull();
});
