/** Owns: which sessions share a process of the hub, how long it lives, and how its end reaches them; with real processes. */
import { once } from "node:events";
import fs, { existsSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, test, vi } from "vitest";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { answerHub } from "../../../../workers/connection/hub/ask.ts";
import { findHub } from "../../../../workers/connection/hub/link.ts";
import { differences, keyOf } from "../../../../workers/hub/hub.ts";
import { type Attach, controlFrame, FrameReader, type FromHub } from "../../../../workers/shared/hub/wire.ts";
import { onCleanup } from "../../../support/cleanup.ts";
import { freePort } from "../../../support/free-port.ts";
import { waitGone } from "../../../support/processes.ts";
import { ANSWERS, makeHub } from "./make-hub.ts";

type Keyed = Pick<Attach, "launch" | "offer">;

const keyed = (launch: Partial<Attach["launch"]> = {}, offer = "auto"): Keyed => ({
  launch: { program: "/bin/node", args: ["a", "b"], env: { A: "1", B: "secret" }, cwd: "/x", ...launch },
  offer,
});

describe("which sessions share a process", () => {
  it.each<[string, Keyed, string[]]>([
    ["another program", keyed({ program: "/bin/bun" }), []],
    ["another argument", keyed({ args: ["a", "c"] }), []],
    ["arguments cut elsewhere", keyed({ args: ["a b"] }), []],
    ["another folder", keyed({ cwd: "/y" }), ["cwd"]],
    ["another value of a variable", keyed({ env: { A: "2", B: "secret" } }), ["A"]],
    ["a variable more", keyed({ env: { A: "1", B: "secret", C: "" } }), ["C"]],
    ["a variable less", keyed({ env: { A: "1" } }), ["B"]],
    ["values exchanged", keyed({ env: { A: "secret", B: "1" } }), ["A", "B"]],
    ["names and values cut elsewhere", keyed({ env: { A: '1","B', B: "" } }), ["A", "B"]],
    ["another offer", keyed({}, "legacy"), ["offered capabilities"]],
  ])("%s -> another key; the difference is told by names alone", (_name, other, differs) => {
    expect(keyOf(other)).not.toBe(keyOf(keyed()));
    expect(differences(keyed(), other)).toEqual(differs);
    expect(differences(other, keyed()).join()).not.toContain("secret");
  });

  test("variables in another order -> the same key, no difference", () => {
    const other = keyed({ env: { B: "secret", A: "1" } });
    expect(keyOf(other)).toBe(keyOf(keyed()));
    expect(differences(other, keyed())).toEqual([]);
  });

  test("equal launches under two names -> one process; another variable -> another", async () => {
    const { join } = await makeHub();
    const a = await join(ANSWERS);
    const b = await join(ANSWERS, { label: "other name" });
    const c = await join(ANSWERS, {}, { AWS_PROFILE: "work" });
    await Promise.all([a.sessions(2), b.sessions(2), c.sessions(1)]);
    expect(b.process.pid).toBe(a.process.pid);
    expect(c.process.pid).not.toBe(a.process.pid);
    expect(await b.ask("x", "tools/list")).toMatchObject({
      result: { method: "tools/list", pid: a.process.pid },
    });
    expect(a.got).toEqual([]);
  });
});

describe("how long a process lives", () => {
  const isGone = async (pid = 0, withinMs = 10_000): Promise<boolean> =>
    (await waitGone([pid], withinMs)).length === 0;

  test("the last session keeps it -> the next one finds it; it ends after the idle time of the last one", async () => {
    const { join } = await makeHub();
    const a = await join(ANSWERS);
    const { pid } = a.process;
    await a.ask(1, "ping");
    a.process.leave("keep");
    const b = await join(ANSWERS, { idleMs: 50 });
    expect(b.process.pid).toBe(pid);
    b.process.leave("keep");
    expect(await isGone(pid)).toBe(true);
  });

  test("a session comes within the idle time -> it does not end", async () => {
    const { join } = await makeHub();
    const idleMs = 1_500;
    const a = await join(ANSWERS, { idleMs });
    await a.ask(1, "ping");
    a.process.leave("keep");
    const b = await join(ANSWERS, { idleMs });
    await sleep(idleMs + 100);
    expect(await b.ask(1, "tools/list")).toMatchObject({ result: { pid: a.process.pid } });
  });

  test("now -> ends with the last session, not before", async () => {
    const { join } = await makeHub();
    const [a, b] = [await join(ANSWERS), await join(ANSWERS)];
    await a.ask(1, "ping");
    a.process.leave("now");
    await b.sessions(1);
    expect(await b.ask(1, "tools/list")).toMatchObject({ id: 1 });
    b.process.leave("now");
    expect(await isGone(a.process.pid)).toBe(true);
  });

  test("it never answered -> ends with the last session, whatever its idle time", async () => {
    const { join } = await makeHub();
    const a = await join("setInterval(() => undefined, 1_000)");
    a.process.leave("keep");
    expect(await isGone(a.process.pid)).toBe(true);
  });

  test("retire -> who uses it goes on, a newcomer gets another; it ends with its last session", async () => {
    const { join } = await makeHub();
    const [a, b] = [await join(ANSWERS), await join(ANSWERS)];
    await a.ask(1, "ping");
    a.process.leave("retire");
    await b.sessions(1);
    const c = await join(ANSWERS);
    expect(c.process.pid).not.toBe(b.process.pid);
    expect(await b.ask(1, "tools/list")).toMatchObject({ result: { pid: a.process.pid } });
    b.process.leave("keep");
    expect(await isGone(a.process.pid)).toBe(true);
    expect(await c.ask(1, "tools/list")).toMatchObject({ result: { pid: c.process.pid } });
  });

  test("end -> ends for all; the others see how", async () => {
    const { join } = await makeHub();
    const [a, b] = [await join(ANSWERS), await join(ANSWERS)];
    await a.ask(1, "ping");
    a.process.leave("end");
    expect(await isGone(a.process.pid)).toBe(true);
    expect((await b.ended).slice(0, 2)).toEqual([0, null]);
  });
});

describe("a session that comes while the process before still ends", () => {
  const listens = async (): Promise<string> =>
    `${ANSWERS} require("node:net").createServer().listen(${await freePort()}, "127.0.0.1");`;

  test("a server with a port, which lives on without stdin -> the next process starts when it has ended", async () => {
    const { join } = await makeHub();
    const source = await listens();
    for (let round = 0; round < 3; round++) {
      const one = await join(source);
      const answer = await Promise.race([one.ask(1, "ping"), one.ended]);
      expect(answer).toMatchObject({ result: { pid: one.process.pid } });
      one.process.leave(round === 0 ? "now" : "end");
    }
  });

  test("it leaves meanwhile -> it counts no more; the others that wait share one process", async () => {
    const { ask, join } = await makeHub();
    const source = await listens();
    const first = await join(source);
    await first.ask(1, "ping");
    first.process.leave("end");
    const left = await ask(source);
    const [a, b] = [join(source), join(source)];
    left.leave("keep");
    await Promise.all([(await a).sessions(2), (await b).sessions(2)]);
    expect((await b).process.pid).toBe((await a).process.pid);
  });
});

test.runIf(process.platform === "linux")(
  "the system does not tell the memory of processes -> the list comes without it, and the hub can be stopped",
  async () => {
    const { agentDir, join } = await makeHub();
    const { process: used } = await join(ANSWERS);
    const { readdir } = fs.promises;
    const refused = vi.spyOn(fs.promises, "readdir").mockImplementation((async (path: string) => {
      if (path === "/proc") throw Object.assign(new Error("EMFILE: injected"), { code: "EMFILE" });
      return readdir(path);
    }) as typeof readdir);
    onCleanup(() => {
      refused.mockRestore();
      syncBuiltinESMExports();
    });
    syncBuiltinESMExports();
    const { report, stopped } = await answerHub(agentDir, { stop: {} });
    expect(report?.servers.map(({ pid, memory }) => [pid, memory])).toEqual([[used.pid, undefined]]);
    expect(stopped).toBe(1);
  },
);

describe("a hub that is told to end", () => {
  const all = controlFrame({ do: "stop" });

  test.each<[string, Record<string, string>]>([
    ["a server that still ends", {}],
    ["another server", { OTHER: "1" }],
  ])(
    "a session asks for %s -> it loses the hub without a word, nothing starts, and its place is free at once",
    async (_, env) => {
      const { agentDir, place, join, ask, gone, log } = await makeHub();
      const first = await join(ANSWERS);
      await first.ask(1, "ping");
      const socket = await findHub(agentDir);
      // Frames of one connection are read in their order.
      socket?.write(all);
      const late = await ask(ANSWERS, {}, env, Promise.resolve(socket));
      await expect(once(late, "spawn")).rejects.toThrow(/lost its connection to the hub/);
      expect(late.isLost).toBe(true);
      expect(existsSync(place.socket)).toBe(false);
      expect((await first.ended).slice(0, 2)).toEqual([0, null]);
      await gone;
      expect((await log()).match(/process \d+ started/g)).toHaveLength(1);
    },
  );

  test("a connection that has asked for nothing yet -> closed without a word; who told it to end hears how many ended", async () => {
    const { agentDir, join } = await makeHub();
    await join(ANSWERS);
    const [idle, person] = [await findHub(agentDir), await findHub(agentDir)];
    const heardBy = async (socket = new Socket()): Promise<unknown[]> => {
      const frames = new FrameReader<FromHub>();
      const heard: unknown[] = [];
      for await (const chunk of socket as AsyncIterable<Buffer>) heard.push(...frames.push(chunk));
      return heard;
    };
    person?.write(all);
    expect(await Promise.all([heardBy(person), heardBy(idle)])).toEqual([
      [{ kind: "control", message: { is: "stopped", servers: 1 } }],
      [],
    ]);
  });
});

describe("how its end reaches the sessions", () => {
  test("it exits -> each session gets its last output, its stderr and its code", async () => {
    const { join } = await makeHub();
    const source = `${ANSWERS} process.stdin.once("data", () => process.stderr.write("out of ink\\n", () => process.exit(7)));`;
    const [a, b] = [await join(source), await join(source)];
    a.say({ method: "go" });
    for (const one of [a, b]) {
      expect((await one.ended).slice(0, 2)).toEqual([7, null]);
      expect(one.errors()).toBe("out of ink\n");
    }
  });

  test("it is killed -> each session gets the signal; the next one gets another process", async () => {
    const { join } = await makeHub();
    const a = await join(ANSWERS);
    await a.ask(1, "ping");
    process.kill(a.process.pid ?? 0, "SIGKILL");
    expect((await a.ended).slice(0, 2)).toEqual([null, "SIGKILL"]);
    const b = await join(ANSWERS);
    expect(b.process.pid).not.toBe(a.process.pid);
  });

  test("a program that is not there -> the system's error", async () => {
    const { join, agentDir } = await makeHub();
    const launch = { program: "/no/such/program", args: [], env: {}, cwd: agentDir };
    await expect(join("", { launch })).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("it ends at its start again and again -> after the second time one pause for all sessions, but not for a person", async () => {
    const { join } = await makeHub();
    const dies = async (pid: number, isWanted = false): Promise<void> => {
      const one = await join("process.exit(3)", { pid, isWanted });
      await one.ended;
    };
    await dies(1);
    await dies(2);
    // The pause doubles each time.
    for (let round = 0; round < 4; round++) await dies(3, true);
    const refused = await join("process.exit(3)", { pid: 3 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ThreadsError);
    expect(refused).toMatchObject({
      code: "connect_failed",
      message: expect.stringMatching(
        /^s could not be connected: it ended right after its last starts; .*in \d+ s\.$/,
      ),
    });
    await dies(4, true);
  });

  test.each([
    ["output", 1],
    ["input", 0],
  ])(
    "it closes its %s and lives on -> each session is told why, and the next one gets another process",
    async (pipe, fd) => {
      const { join } = await makeHub();
      const source = `process.stdin.once("data", () => {
      require("node:fs").closeSync(${fd});
      ${fd === 0 ? `console.log('{"jsonrpc":"2.0","method":"closed"}');` : ""}
    });
    setInterval(() => {}, 1e6)`;
      const [a, b] = [await join(source), await join(source)];
      const { pid } = a.process;
      a.say({ id: 1, method: "ping" });
      if (fd === 0) await expect.poll(() => a.got).toHaveLength(1);
      a.say({ id: 2, method: "ping" });
      expect(await a.ended).toEqual([null, null, `closed its ${pipe}`]);
      expect(await b.ended).toEqual([null, null, `closed its ${pipe}`]);
      expect(await waitGone([pid ?? 0])).toEqual([]);
      expect((await join(source)).process.pid).not.toBe(pid);
    },
  );

  test("it answers before it ends -> no pause: each session decides for itself", async () => {
    const { join } = await makeHub();
    for (let round = 0; round < 3; round++) {
      const one = await join(
        `${ANSWERS} process.stdin.once("data", () => setTimeout(() => process.exit(), 20));`,
      );
      await one.ask(1, "initialize");
      await one.ended;
    }
  });

  test("a line longer than any session takes -> each session's output breaks for that reason, the process is gone", async () => {
    const { join } = await makeHub();
    const source = `process.stdin.once("data", () => process.stdout.write("{" + " ".repeat(20_000)));`;
    const one = await join(source, { maxMessageBytes: 10_000 });
    const broken = new Promise((resolve) => one.process.stdout.once("error", resolve));
    one.say({ method: "go" });
    expect(await broken).toMatchObject({ excess: { data: { limitBytes: 10_000 } } });
    expect(await waitGone([one.process.pid ?? 0])).toEqual([]);
  });

  test("pings without end, whose answers it does not read -> it is ended, and the session is told why", async () => {
    const { join } = await makeHub();
    const source = `const line = JSON.stringify({ jsonrpc: "2.0", id: "p", method: "ping" }) + "\\n";
      const flood = () => process.stdout.write(line.repeat(500)) ? setImmediate(flood) : process.stdout.once("drain", flood);
      flood();`;
    const one = await join(source);
    expect((await one.ended)[2]).toMatch(/^(sent more than 10,000 requests|does not take the answers)/);
    expect(await waitGone([one.process.pid ?? 0])).toEqual([]);
  });
});
