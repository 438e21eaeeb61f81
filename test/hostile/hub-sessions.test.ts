/**
 * What servers, sessions and the end of a process do to a hub of shared servers and to those who share it. hub.test.ts has the
 * attacks on its place, its socket and its secrets.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { openHub } from "../../workers/connection/hub/link.ts";
import { sharedStarter } from "../../workers/connection/transports/stdio/shared.ts";
import { connectStdio } from "../../workers/connection/transports/stdio/stdio.ts";
import { UNUSED_TIMES } from "../../workers/shared/pace/pace.ts";
import { ProcessEnd } from "../../workers/shared/programs/end.ts";
import { spawnServer } from "../../workers/shared/programs/processes.ts";
import { once as onceForFile } from "../e2e/support.ts";
import { onCleanup } from "../support/cleanup.ts";
import {
  endHub,
  type HubHome,
  hubHome,
  hubLog,
  reportOf,
  sessionFile,
  startHub,
  startSession,
} from "../support/hub.ts";
import { attach, attachOf, joined, type Peer } from "../support/hub-peer.ts";
import { amount } from "../support/long.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { connectOptions } from "../unit/workers/connection/mcp/support.ts";
import { ANSWERS, makeHub } from "../unit/workers/hub/make-hub.ts";
import { sized } from "./rows/sizes.ts";

/** A flood that does not fit into what the hub keeps for a session. */
const MORE_THAN_UNREAD_BYTES = LIMITS.hubUnreadBytes + 20_000_000;

interface Recorded extends HubHome {
  env: { RECORD: string };
  /** Lines of shared.mjs, of all its processes. */
  recorded(): Promise<string[]>;
}

async function recordedHome(): Promise<Recorded> {
  const home = await hubHome();
  const file = join(home.agentDir, "record");
  const recorded = (): Promise<string[]> =>
    readFile(file, "utf8").then(
      (text) => text.trim().split("\n"),
      () => [],
    );
  return { ...home, env: { RECORD: file }, recorded };
}

const startsOf = async ({ recorded }: Recorded): Promise<number> =>
  (await recorded()).filter((line) => line.startsWith("start")).length;

/** The error with which a call ends; throws if it is answered. */
const failed = (call: Promise<string>): Promise<string> =>
  call.then(
    (text) => {
      throw new Error(`it was answered: ${text}`);
    },
    (error: Error) => error.message,
  );

const alive = async (peer: Peer): Promise<void> => {
  expect(await peer.call({ do: "echo", text: "alive" })).toBe("alive");
};

describe("starts", () => {
  const MANY = 20;

  test(`${MANY} sessions of ${MANY} processes that start at once -> one hub, one process of the server`, async () => {
    const home = await recordedHome();
    const sessions = Array.from({ length: MANY }, (_, i) =>
      startSession(home, [{ do: "echo", text: `mine ${i}`, ms: 50 }], home.env),
    );
    const texts = await Promise.all(sessions.map(({ line }) => line("mine")));
    expect(texts).toEqual(sessions.map((_, i) => `mine ${i}`));
    expect(new Set(await Promise.all(sessions.map(({ line }) => line("attached")))).size).toBe(1);
    expect(await startsOf(home)).toBe(1);
    const report = await reportOf(home);
    expect(report.servers).toHaveLength(1);
    expect(new Set(report.servers[0]?.sessions)).toEqual(new Set(sessions.map(({ pid }) => pid)));
    const hubs = (await processesWithMarker(home.agentDir)).filter(({ command }) =>
      /hub\.[jt]s/.test(command),
    );
    expect(hubs.map(({ pid }) => pid)).toEqual([report.pid]);
    for (const { kill } of sessions) kill("SIGKILL");
    await expect.poll(async () => (await reportOf(home)).servers[0]?.sessions).toEqual([]);
  });

  test("a server that ends at once for ever -> the pause doubles for all sessions together; a person's wish goes past it", async () => {
    const home = await recordedHome();
    await startHub(home);
    const dying = { env: home.env, program: join(import.meta.dirname, "../fixtures/servers/exits.mjs") };
    const refused = async (): Promise<string> => {
      try {
        return await (await attach(home, dying)).ended;
      } catch (error) {
        return String(error);
      }
    };
    const startsSoFar = async (): Promise<number> =>
      ((await hubLog(home)).match(/process \d+ started/g) ?? []).length;
    const since = performance.now();
    const told: string[] = [];
    const isPaused = (): boolean => told.some((why) => why.includes("started again in"));
    // On a slow machine a start takes longer than the first pauses, which then end before anybody asks.
    const isLate = (ms: number): boolean => performance.now() - since >= ms;
    while (!isLate(5 * LIMITS.hubPauseMs) || !(isPaused() || isLate(PATIENCE_MS / 2)))
      told.push(...(await Promise.all([refused(), refused(), refused()])));
    const tookMs = performance.now() - since;
    // The first two starts follow each other at once; then come pauses of 0.5, 1, 2, ... s.
    let allowed = 2;
    for (let pauseMs: number = LIMITS.hubPauseMs, atMs = pauseMs; atMs <= tookMs; atMs += pauseMs *= 2)
      allowed++;
    expect(await startsSoFar()).toBeLessThanOrEqual(allowed);
    for (const why of told)
      expect(why).toMatch(
        /^(?:Error: )?exit \d|ended right after its last starts; it is started again in \d+ s/,
      );
    const wanted = await attach(home, { ...dying, isWanted: true });
    expect(await wanted.ended).toMatch(/^exit \d/);
    expect(told.filter((why) => why.includes("started again in")).length).toBeGreaterThan(0);
  });

  const running = onceForFile(async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    return { home, hub, peer: await joined(home) };
  });

  test.each<[string, Record<string, string>, string, RegExp]>([
    ["a program that is not there", {}, "/nowhere/program", /ENOENT/],
    ["an environment that is too long", { LONG: "x".repeat(200_000) }, process.execPath, /E2BIG/],
    ["an environment with a zero", { BAD: "a\0b" }, process.execPath, /null bytes/],
  ])("%s -> the session is told why, the hub and the others go on", async (_, env, program, why) => {
    const { home, hub, peer } = await running();
    const { PATH = "" } = process.env;
    const launch = { program, args: [], env: { PATH, ...env }, cwd: home.agentDir };
    await expect(attach(home, { launch })).rejects.toThrow(why);
    await alive(peer);
    expect(await reportOf(home)).toMatchObject({ pid: hub, servers: [{ sessions: [process.pid] }] });
  });

  test.runIf(process.platform === "linux")(
    "a hub without file descriptors left -> the session is told why, the others go on; later it starts again",
    async () => {
      const home = await hubHome();
      await startHub(home, { through: ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh"] });
      const peer = await joined(home);
      const more: Peer[] = [];
      let why = "";
      for (let i = 0; i < 20 && why === ""; i++) {
        const one = joined(home, { env: { N: String(i) } });
        await one.then(
          (started) => more.push(started),
          (error: unknown) => {
            why = String(error);
          },
        );
      }
      expect(why).toMatch(/EMFILE|file descriptors/);
      await alive(peer);
      for (const one of more) one.leave("now");
      await expect.poll(async () => (await reportOf(home)).servers.length).toBe(1);
      await alive(await joined(home, { env: { N: "again" }, isWanted: true }));
    },
  );
});

describe("deaths", () => {
  test("the hub is killed in calls -> each fails with the reason and is never repeated; the next session has another hub", async () => {
    const home = await recordedHome();
    const hub = await startHub(home);
    const peers = await Promise.all([1, 2, 3].map(() => joined(home, { env: home.env })));
    const open = peers.map((peer, i) => peer.call({ do: "hang", text: `hang ${i}` }));
    await expect
      .poll(async () => (await home.recorded()).filter((line) => line.startsWith("call")))
      .toHaveLength(3);
    const server = peers[0]?.process.pid ?? 0;
    process.kill(hub, "SIGKILL");
    for (const call of open) expect(await failed(call)).toContain("lost its connection to the hub");
    expect(await waitGone([server])).toEqual([]);
    const next = await joined(home, { env: home.env });
    await alive(next);
    expect((await reportOf(home)).pid).not.toBe(hub);
    const calls = (await home.recorded()).filter((line) => line.startsWith("call"));
    expect(calls.sort()).toEqual([
      "call echo alive",
      "call hang hang 0",
      "call hang hang 1",
      "call hang hang 2",
    ]);
  });

  test("the hub is killed, and its server ignores the end of stdin -> the next hub ends it, by pid and start time", {
    tags: "thorough",
  }, async () => {
    const home = await recordedHome();
    const hub = await startHub(home);
    const env = { ...home.env, IGNORES_END: "1" };
    const peer = await joined(home, { env });
    const server = Number(await peer.call({ do: "pid" }));
    await expect
      .poll(() => readFile(home.place.servers, "utf8").catch(() => ""))
      .toContain(`"pid":${server}`);
    process.kill(hub, "SIGKILL");
    expect(await peer.ended).toContain("lost its connection to the hub");
    const next = await joined(home, { env });
    expect(Number(await next.call({ do: "pid" }))).not.toBe(server);
    expect(await waitGone([server])).toEqual([]);
    await alive(next);
  });

  test("the server is killed in calls -> each session's call fails, others' servers go on, the next call has a new process", async () => {
    const home = await recordedHome();
    await startHub(home);
    const [one, two] = await Promise.all([joined(home, { env: home.env }), joined(home, { env: home.env })]);
    const other = await joined(home, { env: { ...home.env, N: "other" } });
    const kept = other.call({ do: "echo", text: "kept", ms: 500 });
    const open = [one.call({ do: "hang" }), two.call({ do: "hang" })];
    const died = two.call({ do: "die" });
    for (const call of [...open, died]) expect(await failed(call)).toBe("exit null SIGKILL");
    expect(await kept).toBe("kept");
    await alive(await joined(home, { env: home.env }));
    expect((await home.recorded()).filter((line) => line === "call die")).toHaveLength(1);
  });

  test("a session is killed in calls -> they are cancelled at the server, the other's call is answered, the lease is gone", async () => {
    const home = await recordedHome();
    await startHub(home);
    const peer = await joined(home, { env: home.env });
    const session = startSession(home, [{ do: "hang" }, { do: "hang" }], home.env);
    await expect
      .poll(async () => (await home.recorded()).filter((line) => line === "call hang"))
      .toHaveLength(2);
    const open = peer.call({ do: "echo", text: "mine", ms: 1_000 });
    expect((await reportOf(home)).servers[0]?.sessions).toEqual([process.pid, session.pid]);
    session.kill("SIGKILL");
    expect(await open).toBe("mine");
    await expect
      .poll(async () => (await home.recorded()).filter((line) => line === "cancelled number"))
      .toHaveLength(2);
    expect((await reportOf(home)).servers[0]?.sessions).toEqual([process.pid]);
    await alive(peer);
  });

  test("the last session is killed -> the server stays for its idle time, then it and the hub end", {
    tags: "thorough",
  }, async () => {
    const home = await recordedHome();
    const hub = await startHub(home, { times: { endMs: 5_000, lookMs: 5_000 } });
    const session = startSession(home, [{ do: "hang" }], home.env);
    const server = Number((await session.line("attached")).split(" ")[1]);
    // It has not ended before the session came.
    expect((await reportOf(home)).pid).toBe(hub);
    session.kill("SIGKILL");
    await sleep(300);
    expect(await waitGone([server], 0)).toEqual([server]);
    const next = await joined(home, { env: home.env, idleMs: 200 });
    expect(Number(await next.call({ do: "pid" }))).toBe(server);
    next.leave("keep");
    expect(await waitGone([server, hub])).toEqual([]);
  });
});

describe("sessions", () => {
  test("one that asks for its server when the hub has just been told to end, which another server holds up -> it has another hub by itself", async () => {
    const { agentDir, place, hub, join: joinHere } = await makeHub();
    onCleanup(() => endHub(agentDir, place));
    const slow = await joinHere(`${ANSWERS} process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6);`);
    await slow.ask(1, "ping");
    const attachTo = hub.attach.bind(hub);
    hub.attach = (...asked) => {
      hub.stop(asked[0], undefined);
      attachTo(...asked);
    };
    const { launch } = attachOf({ agentDir });
    const use = { agentDir, idleMs: 1, isWanted: false, onChange: () => undefined };
    const connection = await connectStdio(
      { command: launch.program, args: [...launch.args], env: { PMT_PLACE: agentDir }, cwd: agentDir },
      connectOptions({ hub: { ...use, onUnusable: (why) => expect.unreachable(why) } }),
    );
    expect((await connection.listTools(new AbortController().signal)).map(({ name }) => name)).toEqual([
      "work",
    ]);
    const { pid, servers } = await reportOf({ agentDir, place });
    expect(pid).not.toBe(process.pid);
    expect(servers).toMatchObject([{ pid: connection.pid }]);
    await connection.close(UNUSED_TIMES);
  });

  test("one that is stopped and reads nothing -> at 64 MB its connection ends; the others and the server go on meanwhile", {
    tags: "thorough",
  }, async () => {
    const home = await recordedHome();
    const hub = await startHub(home);
    const peer = await joined(home, { env: home.env });
    const session = startSession(home, [], home.env);
    await session.line("attached");
    session.kill("SIGSTOP");
    onCleanup(() => session.kill("SIGCONT"));
    const flooded = peer.call({ do: "flood", bytes: MORE_THAN_UNREAD_BYTES });
    expect(await flooded).toBe("flooded");
    await expect.poll(async () => (await reportOf(home)).servers[0]?.sessions).toEqual([process.pid]);
    await alive(peer);
    session.kill("SIGCONT");
    expect(await session.line("ended")).toContain("lost its connection to the hub");
    expect(await reportOf(home)).toMatchObject({ pid: hub, servers: [{ sessions: [process.pid] }] });
    expect(await startsOf(home)).toBe(1);
  });

  test.skipIf(process.platform === "win32")(
    "one that an MCP server has started, which starts the hub -> the end of that server with all that it has started leaves the hub",
    async () => {
      const home = await hubHome();
      const args = [
        sessionFile(),
        home.agentDir,
        "[]",
        "{}",
        join(import.meta.dirname, "../fixtures/servers/shared.mjs"),
      ];
      const source = `require("child_process").spawn(process.execPath, ${JSON.stringify(args)}, { stdio: "inherit" });`;
      const outer = spawnServer({
        program: process.execPath,
        args: ["-e", source],
        env: process.env as Record<string, string>,
        cwd: home.agentDir,
      });
      const end = new ProcessEnd(outer, {
        onExit: () => undefined,
        onEnd: () => undefined,
        onNote: () => undefined,
      });
      outer.stderr.resume();
      const [line] = (await once(outer.stdout, "data")) as [Buffer];
      const peer = await joined(home);
      expect(String(line)).toBe(`attached ${peer.process.pid}\n`);
      await end.closeWithin({ termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs });
      expect(await Promise.race([peer.call({ do: "echo", text: "alive" }), peer.ended])).toBe("alive");
      await expect.poll(async () => (await reportOf(home)).servers[0]?.sessions).toEqual([process.pid]);
    },
  );

  test("one whose hub dies between its answer and its first use -> the use ends at once, and nobody waits for it", async () => {
    const home = await hubHome();
    await startHub(home);
    const socket = await openHub(home.agentDir);
    socket.destroy();
    await once(socket, "close");
    await expect(attach(home, { socket: Promise.resolve(socket) })).rejects.toThrow(
      /lost its connection to the hub/,
    );
  });

  test.each(["while the hub is looked for", "before the process is asked for"])(
    "one that is given up %s, and lives on -> the hub does not wait for it",
    async (when) => {
      const home = await hubHome();
      const hub = await startHub(home, { times: { endMs: 300, lookMs: 5_000 } });
      const up = new AbortController();
      const { launch } = attachOf(home);
      const use = { agentDir: home.agentDir, idleMs: 1, isWanted: true };
      const starting = sharedStarter(launch, connectOptions({ signal: up.signal }), {
        ...use,
        onUnusable: (why) => expect.unreachable(why),
        onChange: () => undefined,
      });
      if (when === "while the hub is looked for") up.abort();
      expect(await starting).toBeTypeOf("function");
      up.abort();
      expect(await waitGone([hub], 10_000)).toEqual([]);
    },
  );

  test("one that is far behind and reads slowly -> it gets all of a flood: only one that reads nothing is dropped", {
    tags: "thorough",
  }, async () => {
    const home = await hubHome();
    await startHub(home);
    const slow = await joined(home);
    const { stdout } = slow.process;
    let read = 0;
    stdout.on("data", ({ length }: Buffer) => {
      read += length;
      if (read < 500_000) return;
      read = 0;
      stdout.pause();
      setTimeout(() => stdout.resume(), 50);
    });
    const flooded = slow.call({ do: "flood", bytes: MORE_THAN_UNREAD_BYTES });
    // Longer than the hub waits for one that takes nothing, so that all that fits is written for it at once.
    stdout.pause();
    setTimeout(() => stdout.resume(), 4 * LIMITS.hubStallMs);
    expect(await flooded).toBe("flooded");
    const logs = slow.messages.filter(({ method }) => method === "notifications/message");
    expect(logs).toHaveLength(Math.ceil(MORE_THAN_UNREAD_BYTES / 100_000));
  });

  test("one that sends a line without end -> it is dropped with the reason; another session of the server goes on", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const part = Buffer.alloc(8 * 1024 * 1024, "z");
    const { stdin } = one.process;
    stdin.on("error", () => undefined);
    for (let sent = 0; sent <= LIMITS.hubRequestBytes && stdin.writable; sent += part.length)
      if (!stdin.write(part)) await Promise.race([once(stdin, "drain"), one.ended]);
    expect(await one.ended).toContain("sent a message of more than 134,217,728 bytes");
    await alive(two);
    expect((await reportOf(home)).pid).toBe(hub);
  });

  test("200 open calls of each of two sessions, with equal ids, answered backwards -> each gets its own", async () => {
    const home = await recordedHome();
    await startHub(home);
    const peers = await Promise.all([joined(home, { env: home.env }), joined(home, { env: home.env })]);
    const ids = Array.from({ length: 200 }, (_, i) => (i % 2 ? `id-${i}` : 1_000 + i));
    const all = await Promise.all(
      peers.flatMap((peer, p) =>
        ids.map(async (id) => {
          const text = `${p} ${id}`;
          const answer = await peer.call({ do: "echo", text, ms: 200 - ids.indexOf(id) }, id);
          return answer === text;
        }),
      ),
    );
    expect(all).toEqual(all.map(() => true));
    const gathered = await Promise.all(
      peers.flatMap((peer) => ids.map((id) => peer.call({ do: "gather", of: 400 }, id))),
    );
    expect(new Set(gathered).size).toBe(400);
  });

  const pair = onceForFile(async () => {
    const home = await hubHome();
    await startHub(home);
    return Promise.all([joined(home), joined(home)]);
  });

  test.each<[string, number | string]>([
    ["a big number", Number.MAX_SAFE_INTEGER],
    ["a negative number", -1],
    ["a fraction", 1.5],
    ["a number with an exponent", 1e300],
    ["zero", 0],
    ["a text of a number", "7"],
    ["an empty text", ""],
    ["a text with quotes, escapes and signs", 'a"\\\u2028é😀\n'],
    ["a text like a key", '","id":1,"x":"'],
    ["a text of 200 characters", "x".repeat(200)],
  ])(
    "an id that is %s -> its answer has the same id, and the other session gets nothing of it",
    async (_, id) => {
      const [one, two] = await pair();
      const before = two.messages.length;
      expect(await one.call({ do: "echo", text: "x" }, id)).toBe("x");
      await alive(two);
      // What it got by mistake would have come before the answer to its own call.
      expect(two.messages.slice(before)).toHaveLength(1);
    },
  );

  test("messages of 60 MB to and from the server -> whole, and another session's calls are answered meanwhile", {
    tags: "thorough",
  }, async () => {
    const home = await hubHome();
    await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const chars = 60_000_000;
    const from = one.call({ do: "size", chars });
    for (let i = 0; i < 5; i++) await alive(two);
    expect((await from).length).toBe(chars);
    const to = one.call({ do: "length", text: "y".repeat(chars) });
    await alive(two);
    expect(await to).toBe(String(chars));
    await alive(one);
  });
});

describe("servers", () => {
  test("one that answers twice, and one that answers ids that nobody has sent -> one answer for each call, nothing for the other", async () => {
    const home = await hubHome();
    await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const others = two.messages.length;
    for (const what of ["twice", "foreign", "twice", "foreign"])
      expect(await one.call({ do: what, text: what })).toBe(what);
    await alive(one);
    const answered = ({ messages }: Peer): object[] =>
      messages.slice(others).filter(({ id, method }) => method === undefined && typeof id === "number");
    expect(answered(one)).toHaveLength(5);
    expect(answered(two)).toEqual([]);
    await alive(two);
    expect(await hubLog(home)).not.toContain("foreign");
  });

  test("one that answers 50,000 ids that nobody has sent -> few lines in the hub's log, calls are answered meanwhile", async () => {
    const home = await hubHome();
    await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const told = one.call({ do: "unasked", times: 50_000 });
    await alive(two);
    expect(await told).toBe("told");
    await alive(two);
    await expect.poll(() => hubLog(home)).toContain("answered a request that nobody has sent");
    const lines = (await hubLog(home)).split("\n");
    expect(lines.filter((line) => line.includes("nobody has sent")).length).toBeLessThanOrEqual(
      LIMITS.serverLogLines,
    );
  });

  test("one that floods all sessions -> each gets all of it, other servers answer meanwhile", async () => {
    const home = await hubHome();
    await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const other = await joined(home, { env: { N: "other" } });
    const bytes = amount(8_000_000, sized(MORE_THAN_UNREAD_BYTES, 400_000_000));
    const flooded = one.call({ do: "flood", bytes });
    let calls = 0;
    let isOver = false;
    const over = flooded.finally(() => {
      isOver = true;
    });
    // The test waits for it below: until then a failure is nobody's.
    over.catch(() => undefined);
    while (!isOver) {
      await alive(other);
      calls++;
    }
    expect(await flooded).toBe("flooded");
    expect(calls).toBeGreaterThan(3);
    await alive(two);
    const logs = (peer: Peer): number =>
      peer.messages.filter(({ method }) => method === "notifications/message").length;
    const lines = Math.ceil(bytes / 100_000);
    expect([logs(one), logs(two)]).toEqual([lines, lines]);
  });

  test("one that sends a line without end -> it ends and its sessions are told why; other servers go on; the next one starts", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const few = { maxMessageBytes: 5_000_000 };
    const [one, two] = await Promise.all([joined(home, few), joined(home, few)]);
    const other = await joined(home, { env: { N: "other" } });
    const open = [one.call({ do: "endless" }), two.call({ do: "hang" })];
    for (const call of open) expect(await failed(call)).toBe("one message of more than 4.8 MiB");
    expect(await waitGone([one.process.pid ?? 0])).toEqual([]);
    await alive(other);
    await alive(await joined(home, few));
    expect((await reportOf(home)).pid).toBe(hub);
  });

  test("one that never reads -> a session that sends much is dropped with the reason; another session of it and other servers go on", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const [one, two] = await Promise.all([joined(home), joined(home)]);
    const other = await joined(home, { env: { N: "other" } });
    expect(await one.call({ do: "deaf" })).toBe("deaf");
    const calls = [];
    for (let i = 0; i < 9; i++) calls.push(failed(one.call({ do: "length", text: "z".repeat(10_000_000) })));
    for (const why of await Promise.all(calls)) expect(why).toContain("does not read what it is sent");
    await alive(other);
    const server = two.process.pid ?? 0;
    expect(await waitGone([server], 0)).toEqual([server]);
    two.leave("end");
    expect(await waitGone([server])).toEqual([]);
    expect((await reportOf(home)).pid).toBe(hub);
  });
});
