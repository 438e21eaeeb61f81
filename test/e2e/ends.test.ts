/**
 * Owns: tests of Pi's ends, session changes and notices: no process outlives Pi, only one set of servers runs after a
 * change of session, and notices name servers that fail and recover. print-mode.test.ts tests the end of print mode.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { amount, family } from "../support/long.ts";
import {
  type PiExit,
  type PiHome,
  type PrintRun,
  type RpcSession,
  startPrint,
  startRpc,
} from "../support/pi-run.ts";
import { type ProcessInfo, processesWithMarker, waitGone } from "../support/processes.ts";
import { extensionErrors, notices, statuses } from "../support/rpc-events.ts";
import {
  expectNothingLeft,
  fiveProcesses,
  homeWithServers,
  plain,
  stubborn,
  unready,
} from "./ending-servers.ts";
import { open } from "./rpc-support.ts";
import { call, ENTRY, entryOf, fixtureServer, home, model, onCleanup, once, searchFor } from "./support.ts";

/** The tests of Pi's ends use the packed package, as users do. */
const packed = () => entryOf("packed package");

/** Repeats the check until it gives a value; the test's own time limit ends the wait. */
async function until<T>(check: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    await sleep(20);
  }
}

/** Resolves with the servers and the processes that they started. */
const serverProcesses = async (at: PiHome, piPid: number): Promise<ProcessInfo[]> =>
  (await processesWithMarker(at.dir)).filter(({ pid }) => pid !== piPid);

const pidsOf = (processes: readonly ProcessInfo[]): number[] => processes.map(({ pid }) => pid);

/** Connects all servers with a search, then holds the model's next turn open. */
function heldScript() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const hold = (): Promise<never> => {
    resolve();
    return new Promise(() => undefined);
  };
  return { script: [searchFor("work"), hold], held: promise };
}

type Mode = "print" | "rpc";
type End = Pick<PiExit, "code" | "signal">;

/** How Pi without this extension ends at each signal, in both modes alike. The first test below holds it. */
const BARE_ENDS = {
  SIGINT: { code: null, signal: "SIGINT" },
  SIGHUP: { code: 129, signal: null },
  SIGTERM: { code: 143, signal: null },
} as const satisfies Partial<Record<NodeJS.Signals, End>>;

type Row = [signal: keyof typeof BARE_ENDS, mode: Mode];

/** Pi leaves SIGINT to the system, so the extension's own listener ends the servers. */
const LEFT_TO_THE_SYSTEM: [Row, ...Row[]] = [
  ["SIGINT", "print"],
  ["SIGINT", "rpc"],
];
/**
 * Pi ends its session, and the extension the servers. The extension listens to SIGHUP as well and leaves it to Pi. The
 * first row ends the Pi of the last tests below.
 */
const HANDLED_BY_PI: [Row, ...Row[]] = [
  ["SIGHUP", "rpc"],
  ["SIGTERM", "print"],
  ["SIGTERM", "rpc"],
  ["SIGHUP", "print"],
];

/** Starts Pi in print mode and resolves while a request to the model is open. */
async function startHeldPrint(at: PiHome, extensions: readonly string[]): Promise<PrintRun> {
  const { script, held } = heldScript();
  const scripted = await model(extensions.length > 0 ? script : script.slice(1));
  const run = await startPrint({ home: at, model: scripted, extensions, prompt: "go" });
  await held;
  return run;
}

async function startConnectedRpc(at: PiHome): Promise<{ rpc: RpcSession; pids: number[] }> {
  const scripted = await model([searchFor("work"), { text: "ok" }]);
  const rpc = await startRpc({ home: at, model: scripted, extensions: await packed() });
  onCleanup(() => rpc.stop());
  await rpc.prompt("go");
  const before = await serverProcesses(at, rpc.pid);
  expect(before).toHaveLength(5);
  return { rpc, pids: pidsOf(before) };
}

describe("Pi ends by a signal", () => {
  test.each(family<Row>([...LEFT_TO_THE_SYSTEM, ...HANDLED_BY_PI]))(
    "%s in %s mode, without this extension -> its usual end",
    async (signal, mode) => {
      const at = await home({});
      let ended: Promise<PiExit>;
      if (mode === "print") {
        const run = await startHeldPrint(at, []);
        run.kill(signal);
        ended = run.done;
      } else {
        const rpc = await startRpc({ home: at, model: await model([]) });
        await rpc.ready();
        rpc.kill(signal);
        ended = rpc.exited;
      }
      expect(await ended).toMatchObject(BARE_ENDS[signal]);
    },
  );

  test.each([...family(LEFT_TO_THE_SYSTEM), ...family(HANDLED_BY_PI).slice(1)])(
    "%s in %s mode with servers connected -> no process is left, and Pi ends as without this extension",
    async (signal, mode) => {
      const at = await homeWithServers();
      let ended: Promise<PiExit>;
      let pids: number[];
      if (mode === "print") {
        const run = await startHeldPrint(at, [await packed()]);
        pids = pidsOf(await serverProcesses(at, run.pid));
        expect(pids).toHaveLength(5);
        run.kill(signal);
        ended = run.done.then((exit) => {
          expect(exit.timedOut).toBe(false);
          return exit;
        });
      } else {
        const connected = await startConnectedRpc(at);
        pids = connected.pids;
        connected.rpc.kill(signal);
        ended = connected.rpc.exited;
      }
      const { code, signal: by } = await ended;
      await expectNothingLeft(at, pids);
      expect({ code, signal: by }).toEqual(BARE_ENDS[signal]);
    },
  );

  test("SIGTERM twice over RPC, after which Pi does not wait for its extensions -> no process is left", {
    tags: "thorough",
  }, async () => {
    const at = await homeWithServers();
    const { rpc, pids } = await startConnectedRpc(at);
    rpc.kill("SIGTERM");
    rpc.kill("SIGTERM");
    await rpc.exited;
    await expectNothingLeft(at, pids);
  });
});

test("a second copy of the extension, two new sessions, SIGKILL of Pi -> it says so once, and only the server that ignores the end of its stdin is left", async () => {
  const at = await home({ mcp: { mcpServers: { a: plain(), b: plain(), stubborn: stubborn() } } });
  const scripted = await model([searchFor("work"), { text: "ok" }]);
  const rpc = await startRpc({ home: at, model: scripted, extensions: [ENTRY, await packed()] });
  onCleanup(() => rpc.stop());
  await rpc.ready();
  for (let session = 0; session < 2; session++) {
    await rpc.request({ type: "new_session" });
    await rpc.ready();
  }
  const told = notices(rpc.events).filter(({ message }) => message.includes("is loaded twice"));
  expect(told).toHaveLength(1);
  await rpc.prompt("go");
  const before = await serverProcesses(at, rpc.pid);
  expect(before).toHaveLength(3);
  rpc.kill("SIGKILL");
  await rpc.exited;
  const mortal = before.filter(({ command }) => !command.includes("ignores-end"));
  expect(await waitGone(pidsOf(mortal))).toEqual([]);
  const left = (await processesWithMarker(at.dir)).map(({ command }) => command);
  expect(left.filter((command) => !command.includes("ignores-end"))).toEqual([]);
});

/** An extension with a command that runs Pi's own reload, as `/reload` does in the terminal. */
const RELOADER = `
export default function (pi) {
  pi.registerCommand("again", { description: "x", handler: async (args, ctx) => { await ctx.reload(); } });
}
`;

test("a new session while a command asks the person, who answers then; a new session and a reload with the server up, then several of each at once, then the end of stdin -> at most one spawn for each session, one process, at the end none; nobody reads of a stale context", {
  tags: "thorough",
}, async () => {
  const at = await home({ mcp: { mcpServers: { hangs: fixtureServer("hangs.mjs") } } });
  const RECORD = join(at.dir, "record");
  const counted = { ...fixtureServer("counts.mjs", { RECORD }), lifecycle: "eager" };
  const reloader = await at.writeFile("reloader.mjs", RELOADER);
  const { rpc, prompt, dialog, answer } = await open({ at, extensions: [await packed(), reloader] });
  const running = async (): Promise<number[]> => pidsOf(await serverProcesses(at, rpc.pid));
  const starts = async (): Promise<number> =>
    (await readFile(RECORD, "utf8")).split("\n").filter((line) => line === "start").length;
  const status = async (): Promise<string> => notices(await rpc.command("/mcp"))[0]?.message ?? "";
  const connected = (name: string): Promise<true> =>
    until(async () => (await status()).includes(`${name}: connected`) || undefined);
  const newSession = (): Promise<unknown> => rpc.request({ type: "new_session" });
  const reload = (): Promise<unknown> => rpc.command("/again");

  for (const message of ["/mcp remove hangs", "/mcp add"]) {
    const since = rpc.events.length;
    const waits = rpc.request({ type: "prompt", message });
    const asked = await dialog(since);
    await newSession();
    answer(asked, { value: "hangs" });
    await Promise.allSettled([waits]);
    await rpc.ready();
  }
  expect(JSON.stringify(rpc.events)).not.toContain("stale");

  await at.writeMcp({ mcpServers: { s: counted } });
  await connected("s");
  let sessions = 1;
  for (const change of [newSession, reload]) {
    const before = await running();
    await change();
    await connected("s");
    sessions++;
    expect(await starts()).toBe(sessions);
    expect(await waitGone(before)).toEqual([]);
    expect(await running()).toHaveLength(1);
  }

  for (const change of [newSession, reload]) {
    const before = await starts();
    const atOnce = amount(2, 3);
    const changes = await Promise.allSettled(Array.from({ length: atOnce }, change));
    expect(changes.some(({ status }) => status === "fulfilled")).toBe(true);
    await connected("s");
    await until(async () => (await running()).length <= 1 || undefined);
    expect(await running()).toHaveLength(1);
    expect(await starts()).toBeLessThanOrEqual(before + atOnce);
  }

  await at.writeMcp({ mcpServers: { s: counted, ...fiveProcesses(at) } });
  await until(async () => (await status()).includes("stubborn: ") || undefined);
  await prompt(searchFor("work"));
  const pids = await running();
  expect(pids).toHaveLength(6);
  expect(extensionErrors(rpc.events)).toEqual([]);
  expect(await rpc.stop()).toMatchObject({ code: 0, signal: null });
  await expectNothingLeft(at, pids);
  expect(rpc.stderr).toBe("");
  // Sessions that Pi has replaced are told nothing.
  expect(JSON.stringify(rpc.events)).not.toContain("one at a time");
});

describe("notices and commands, then a signal", () => {
  const told = once(async () => {
    const at = await homeWithServers((bad) => ({
      bad: unready(bad),
      p: fixtureServer("progresses.mjs"),
      w: fixtureServer("waits.mjs"),
    }));
    const pi = await open({ at, extensions: [await packed()] });
    await pi.prompt(searchFor("work"));
    return pi;
  });

  test("RPC: a server that fails, is repaired and reconnected -> one notice for each, and the status line", async () => {
    const pi = await told();
    const { rpc } = pi;
    await pi.prompt(searchFor("work"));
    const failed = notices(rpc.events);
    expect(failed.map(({ level }) => level)).toEqual(["error"]);
    expect(failed[0]?.message).toMatch(/^MCP server bad: .*exited with code 3.*not ready/s);
    await until(
      async () =>
        statuses(rpc.events)["pi-mcp-threads"] === "MCP: 6 of 7 servers ready · bad failed: /mcp" ||
        undefined,
    );

    await writeFile(join(pi.at.dir, "ready"), "");
    const since = rpc.events.length;
    await rpc.command("/mcp reconnect bad");
    await until(
      async () => statuses(rpc.events)["pi-mcp-threads"] === "MCP: 7 servers ready · 7 tools" || undefined,
    );
    const said = notices(rpc.events.slice(since));
    expect(said.filter(({ message }) => message === "MCP server bad works now.")).toHaveLength(1);
    const shown = said.filter(({ message }) => message.startsWith("MCP: "));
    expect(shown.map(({ message }) => message)).toEqual([
      expect.stringContaining("MCP: 7 of 7 servers connected, 7 tools known\nbad: connected"),
    ]);
    expect(said).toHaveLength(2);
    expect(rpc.stderr).toBe("");
  });

  test("/mcp with tools, reconnect of an unknown server and an unknown word -> a list, an error and a usage line", async () => {
    const { at, rpc } = await told();
    const said = async (text: string) => notices(await rpc.command(text)).filter(({ message }) => message);
    const tools = "a: 1 tool\n  a__work - Does work.";
    expect(await said("/mcp tools a")).toEqual([{ message: tools, level: "info" }]);
    const [all, ...more] = await said("/mcp tools");
    expect(more).toEqual([]);
    expect(all?.level).toBe("info");
    expect(all?.message).toMatch(
      /^bad: (.|\n)*\np: (.|\n)*\na: 1 tool\n {2}a__work - Does work\.\nb: 1 tool\n {2}b__work - Does work\.$/,
    );
    expect(await said("/mcp reconnect nope")).toEqual([
      { message: expect.stringMatching(/^\/mcp: No server named nope is configured\./), level: "error" },
    ]);
    expect(await said("/mcp restart")).toEqual([
      { message: expect.stringMatching(/^\/mcp restart is not known\. \/mcp help /), level: "warning" },
    ]);
    const before = pidsOf(await serverProcesses(at, rpc.pid));
    expect((await said("/mcp reconnect a"))[0]?.message).toMatch(/^MCP: \d of 7 servers connected/);
    const after = pidsOf(await serverProcesses(at, rpc.pid));
    expect(after).toHaveLength(before.length);
    expect(after.filter((pid) => before.includes(pid))).toHaveLength(before.length - 1);
    expect(extensionErrors(rpc.events)).toEqual([]);
  });

  test("progress of a call -> at most ten updates a second; Esc during a call without an answer -> the call ends, the next call works", async () => {
    const { at, rpc, prompt } = await told();
    const since = rpc.events.length;
    const [end] = await prompt(call("p__work", { ms: 1_000 }));
    const events = rpc.events.slice(since);
    const { tookMs } = JSON.parse(end?.text ?? "{}");
    const updates = events.filter(
      (event) => event.type === "tool_execution_update" && event.toolName === "p__work",
    );
    expect(JSON.stringify(updates[0])).toContain("step 1");
    expect(updates.length).toBeGreaterThanOrEqual(3);
    expect(updates.length).toBeLessThanOrEqual(Math.ceil(tookMs / 100) + 1);

    const stopped = prompt(call("w__work", { file: join(at.dir, "never") }));
    await rpc.waitFor((event) => event.type === "tool_execution_start" && event.toolName === "w__work");
    await rpc.request({ type: "abort" });
    expect((await stopped).map(({ isError }) => isError)).toEqual([true]);
    const [again] = await prompt(call("w__work", { file: at.dir }));
    expect(again).toMatchObject({ toolName: "w__work", isError: false });
  });
  // The last test, because it ends this Pi.
  test("SIGHUP in rpc mode with servers connected -> no process is left, and Pi ends as without this extension", async () => {
    const { at, rpc } = await told();
    const pids = pidsOf(await serverProcesses(at, rpc.pid));
    expect(pids.length).toBeGreaterThan(5);
    rpc.kill("SIGHUP");
    const { code, signal } = await rpc.exited;
    await expectNothingLeft(at, pids);
    expect({ code, signal }).toEqual(BARE_ENDS.SIGHUP);
  });
});
