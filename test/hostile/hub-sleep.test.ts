/**
 * A laptop that sleeps, and clocks that jump: a process that is stopped for longer than each of its times and goes on, which is
 * what a sleep is for it, and a hub whose clocks jump by hours. Whatever sleeps, no call is lost, none runs twice, and no
 * process is ended for the time in which it slept.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { hubHome, hubLog, reportOf, startHub, startSession } from "../support/hub.ts";
import { attach, joined } from "../support/hub-peer.ts";
import { family } from "../support/long.ts";
import { waitGone } from "../support/processes.ts";

/** Of the hub. It looks far more often than it sleeps, and ends a while after the first session could have come. */
const TIMES = { endMs: 5_000, lookMs: 100 };
/** Longer than each time that runs: the hub's looks, the idle time below, the time for a proof, the pause for a session that does not read. */
const SLEEP_MS = 3_000;
const IDLE_MS = 200;

type Sleeper = "hub" | "server" | "session";

describe("a sleep in the midst of a call", () => {
  test.each<[string, readonly Sleeper[]]>([
    ["the hub", ["hub"]],
    ["the server", ["server"]],
    ["a session", ["session"]],
    ["the whole machine", ["session", "hub", "server"]],
  ])(
    "of %s -> the call is answered once it goes on, by the same process, and ran once",
    async (_who, sleepers) => {
      const home = await hubHome();
      const record = join(home.agentDir, "record");
      // On a busy machine the session's start takes longer than the hub would wait for it.
      const hub = await startHub(home, { times: { ...TIMES, endMs: 60_000 } });
      const session = startSession(home, [{ do: "echo", text: "over the sleep", ms: 1_000 }], {
        RECORD: record,
      });
      const server = Number((await session.line("attached")).split(" ")[1]);
      const calls = async (): Promise<string[]> =>
        (await readFile(record, "utf8")).split("\n").filter((line) => line.startsWith("call"));
      await expect.poll(calls).toEqual(["call echo over the sleep"]);
      const pids = { hub, server, session: session.pid };
      const stopped = sleepers.map((who) => pids[who]);
      const wake = (): void => {
        for (const pid of stopped) process.kill(pid, "SIGCONT");
      };
      for (const pid of stopped) process.kill(pid, "SIGSTOP");
      try {
        await sleep(SLEEP_MS);
      } finally {
        wake();
      }
      expect(await session.line("over the sleep")).toBe("over the sleep");
      expect(session.lines).toEqual([`attached ${server}`, "over the sleep"]);
      expect(await calls()).toEqual(["call echo over the sleep"]);
      const report = await reportOf(home);
      expect(report.pid).toBe(hub);
      expect(report.servers.map(({ pid, sessions }) => [pid, sessions])).toEqual([[server, [session.pid]]]);
      const other = await joined(home, { env: { RECORD: record } });
      expect(await other.call({ do: "pid" })).toBe(String(server));
    },
  );
});

test("the hub sleeps beyond the idle time of a server without sessions, and a session waits -> it is answered, by that process or a new one", async () => {
  const home = await hubHome();
  const hub = await startHub(home, { times: { ...TIMES, endMs: 60_000 } });
  const first = await joined(home, { idleMs: IDLE_MS });
  const before = first.process.pid ?? 0;
  first.leave("keep");
  process.kill(hub, "SIGSTOP");
  const next = joined(home);
  await sleep(SLEEP_MS);
  process.kill(hub, "SIGCONT");
  const peer = await next;
  expect(await peer.call({ do: "echo", text: "awake" })).toBe("awake");
  const { servers } = await reportOf(home);
  expect(servers.filter(({ isRetired }) => !isRetired).map(({ pid }) => pid)).toEqual([peer.process.pid]);
  if (peer.process.pid !== before) expect(await waitGone([before])).toEqual([]);
});

describe("clocks of the hub that jump by hours", () => {
  test.each(
    family<[string, number]>([
      ["forwards", 5],
      ["backwards", -5],
      ["to and fro", 0],
    ]),
  )("%s -> sessions are served, an idle server and the hub end in their time", async (_where, hours) => {
    const home = await hubHome();
    const preload = join(home.agentDir, "jumps.mjs");
    // The clock of the day jumps both ways; the one that only goes on jumps as on systems where it counts the sleep.
    await writeFile(
      preload,
      `const date = Date.now, since = performance.now.bind(performance);
let hours = 0;
Date.now = () => date() + hours * 3_600_000;
let counted = 0;
performance.now = () => since() + counted * 3_600_000;
setInterval(() => {
  hours = ${hours} || (hours === 5 ? -5 : 5);
  if (${hours} > 0) counted += ${hours};
}, 150).unref();
`,
    );
    const hub = await startHub(home, {
      times: TIMES,
      through: ["env", `NODE_OPTIONS=--import=${pathToFileURL(preload).href}`],
    });
    const peers = [await joined(home, { idleMs: IDLE_MS }), await joined(home, { idleMs: IDLE_MS })];
    const server = peers[0]?.process.pid ?? 0;
    for (let jump = 0; jump < 10; jump++) {
      for (const peer of peers) expect(await peer.call({ do: "echo", text: `${jump}` })).toBe(`${jump}`);
      await sleep(50);
    }
    expect((await reportOf(home)).servers).toMatchObject([{ pid: server, isRetired: false }]);
    const late = await attach(home, { idleMs: IDLE_MS });
    expect(late.process.pid).toBe(server);
    for (const peer of [...peers, late]) peer.leave("keep");
    expect(await waitGone([server, hub])).toEqual([]);
    expect(await hubLog(home)).not.toMatch(/ error /);
  });
});
