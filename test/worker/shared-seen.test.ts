/**
 * Owns: what sessions see of a server that they share, with two real workers and a real hub: how many use it, whom a reconnect
 * interrupts, what the doctor says of a process that is kept apart, and of a hub that cannot be used.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { interruptText } from "../../src/report/hub.ts";
import type { Finding } from "../../src/shared/protocol/person.ts";
import { HUB_LOG, placeOf } from "../../workers/connection/hub/link.ts";
import { endHub } from "../support/hub.ts";
import {
  createPlace,
  fixture,
  onCleanup,
  type Place,
  readIfThere,
  type Started,
  start,
  until,
} from "./support.ts";

const SERVERS = { s: fixture("shows.mjs", {}, { shared: true, lifecycle: "eager" }) };

async function hubPlace(): Promise<Place> {
  const place = await createPlace();
  onCleanup(() => endHub(place.agentDir));
  return place;
}

async function open(place: Place): Promise<Started> {
  const at = await start(SERVERS, { place });
  await until(async () => ((await statusOf(at))?.state === "connected" ? true : undefined));
  return at;
}

const statusOf = async ({ runtime }: Started) => (await runtime.ask("status", {})).servers[0];

/** Waits until the session has heard of so many by itself. */
const isTold = ({ events }: Started, sessions: number) =>
  until(async () =>
    events.findLast((event) => event.type === "server" && event.status.sharing?.sessions === sessions),
  );

const findings = async ({ runtime }: Started): Promise<Finding[]> =>
  (await runtime.ask("diagnose", {})).findings.filter(({ id }) => id === "sharing");

test("a second session comes, reconnects and leaves -> the first one is told, and the hub names both", async () => {
  const place = await hubPlace();
  const first = await open(place);
  const { pid } = (await statusOf(first)) ?? {};
  const second = await open(place);
  await isTold(first, 2);
  for (const at of [first, second]) {
    const status = await statusOf(at);
    expect(status).toMatchObject({ pid, state: "connected", sharing: { sessions: 2 } });
    expect(status && interruptText([status])).toMatch(/^1 other session uses s, /);
  }
  const { report } = await first.runtime.ask("hub", {});
  expect(report?.servers).toMatchObject([{ labels: ["s"], pid, differs: [], isRetired: false }]);
  expect(report?.servers[0]?.sessions).toEqual([process.pid, process.pid]);
  expect(await findings(first)).toEqual([]);

  await second.runtime.ask("reconnect", { server: "s" });
  const renewed = await statusOf(second);
  expect(renewed?.pid).not.toBe(pid);
  expect(renewed && interruptText([renewed])).toBeUndefined();
  await until(async () => ((await statusOf(first))?.pid === pid ? undefined : true));
  await first.runtime.ask("reconnect", { server: "s" });
  await isTold(second, 2);
  await second.runtime.stop();
  await until(async () => ((await statusOf(first))?.sharing?.sessions === 1 ? true : undefined));
});

test("hub stop of one server -> its sessions lose it, and what was ended is told", async () => {
  const at = await open(await hubPlace());
  const { pid } = (await statusOf(at)) ?? {};
  await expect(at.runtime.ask("hub", { stop: { server: "nope" } })).rejects.toMatchObject({
    code: "unknown_server",
    remedy: "Shared now: s.",
  });
  expect(await at.runtime.ask("hub", { stop: { server: "s" } })).toMatchObject({
    stopped: 1,
    report: { servers: [{ pid, sessions: [process.pid] }] },
  });
  expect((await at.call("s", "show", { text: "again" })).content).toMatchObject([{ text: "again" }]);
  expect((await statusOf(at))?.pid).not.toBe(pid);
});

test("two sessions with another variable -> the doctor names the variable, and not its values", {
  tags: "thorough",
}, async () => {
  const place = await hubPlace();
  const openWith = async (value: string): Promise<Started> => {
    vi.stubEnv("PMT_MODE", value);
    return open(place).finally(() => vi.unstubAllEnvs());
  };
  await openWith("value-one");
  const second = await openWith("value-two");
  const [found, ...more] = await findings(second);
  expect(more).toEqual([]);
  expect(found?.title).toBe("2 processes of it run, because sessions differ in PMT_MODE.");
  expect(JSON.stringify(await second.runtime.ask("hub", {}))).not.toContain("value-");
});

test("the hub's folder belongs to a file of another kind -> own server, and the doctor and the log say why", async () => {
  const place = await createPlace();
  const { folder } = placeOf(place.agentDir);
  await writeFile(folder, "");
  onCleanup(() => rm(folder, { recursive: true }));
  const at = await open(place);
  expect(await statusOf(at)).toMatchObject({ state: "connected", pid: expect.any(Number) });
  expect(await statusOf(at)).not.toHaveProperty("sharing");
  const told = (await findings(at)).map(({ severity, title }) => `${severity}: ${title}`);
  expect(told).toEqual([`warning: Shared servers cannot be used: ${folder} is not a folder; remove it.`]);
  await expect.poll(at.log).toContain("Shared servers cannot be used: ");
  await expect(at.runtime.ask("hub", {})).rejects.toMatchObject({ code: "bad_config" });
});

test("calls that wait for a call of another session -> told so, sent later than their limit allows; one that is given up is not sent", {
  tags: "thorough",
}, async () => {
  const place = await hubPlace();
  const record = join(place.cwd, "record");
  const limitMs = 2_000;
  const servers = {
    s: fixture("shared.mjs", { RECORD: record }, { shared: true, requestTimeoutMs: limitMs }),
  };
  const [a, b] = [await start(servers, { place }), await start(servers, { place })];
  for (const at of [a, b]) await at.call("s", "work", { do: "pid" });
  await a.call("s", "work", { do: "ask" });
  const log = join(place.agentDir, HUB_LOG);
  await until(
    async () => (await readIfThere(log)).includes("their calls run one after the other") || undefined,
  );
  const told = (at: Started) =>
    at.events.flatMap((event) => (event.type === "progress" ? [event.message] : []));
  const working = new AbortController();
  const worked = a.failedCall("s", "work", { do: "work" }, working.signal);
  await until(async () => (told(a).length > 0 ? true : undefined));

  const givenUp = new AbortController();
  const unsent = b.failedCall("s", "work", { do: "echo", text: "unsent" }, givenUp.signal);
  await until(async () => (told(b).length > 0 ? true : undefined));
  const sent = b.call("s", "work", { do: "echo", text: "sent" });
  await until(async () => (told(b).length > 1 ? true : undefined));
  expect(told(b)).toEqual(Array(2).fill("waits for a call of another session"));
  givenUp.abort();
  expect(await unsent).toMatchObject({ code: "cancelled" });
  // A call without progress would have failed by now.
  await sleep(2 * limitMs);
  working.abort();
  expect(await worked).toMatchObject({ code: "cancelled" });
  expect(await sent).toMatchObject({ content: [{ text: "sent" }] });
  const calls = await readFile(record, "utf8");
  expect(calls).toContain("call echo sent");
  expect(calls).not.toContain("unsent");
});
