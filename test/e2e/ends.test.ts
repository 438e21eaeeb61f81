/**
 * Owns: tests of Pi's ends, session changes and notices: no process outlives Pi, only one set of servers runs after a
 * change of session, and notices name servers that fail and recover.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { ModelScript } from "../support/model.ts";
import {
  type PiExit,
  type PiHome,
  type RpcSession,
  runPrint,
  startPrint,
  startRpc,
} from "../support/pi-run.ts";
import { type ProcessInfo, processesWithMarker, waitGone } from "../support/processes.ts";
import { extensionErrors, notices, statuses } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { call, ENTRY, entryOf, fixtureServer, home, model, onCleanup, searchFor } from "./support.ts";

/** The tests of Pi's ends use the packed package, as users do. */
const packed = () => entryOf("packed package");

type Entry = Record<string, unknown>;

/** Repeats the check until it gives a value; the test's own time limit ends the wait. */
async function until<T>(check: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    await sleep(20);
  }
}

const plain = (): Entry => fixtureServer("noisy.mjs");
const stubborn = (): Entry => fixtureServer("ignores-end.mjs");
const parent = (at: PiHome): Entry =>
  fixtureServer("with-child.mjs", { RECORD: join(at.dir, "child"), CHILD_STDIO: "inherit" });

/** Resolves with the servers and the processes that they started. */
const serverProcesses = async (at: PiHome, piPid: number): Promise<ProcessInfo[]> =>
  (await processesWithMarker(at.dir)).filter(({ pid }) => pid !== piPid);

const pidsOf = (processes: readonly ProcessInfo[]): number[] => processes.map(({ pid }) => pid);

/**
 * Makes a home with five server processes: a server with a child, a server that ignores SIGTERM and the end of its
 * stdin, and two plain servers.
 */
async function homeWithServers(): Promise<PiHome> {
  const at = await home({});
  const mcpServers = { parent: parent(at), stubborn: stubborn(), a: plain(), b: plain() };
  await at.writeMcp({ mcpServers });
  return at;
}

/** Connects all servers with a search, then holds the model's next turn open. */
function heldScript(): { script: ModelScript; held: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const script: ModelScript = [
    searchFor("work"),
    () => {
      resolve();
      return new Promise(() => undefined);
    },
  ];
  return { script, held: promise };
}

/** Resolves with how Pi without this extension ends at that signal. */
async function bareEnd(
  signal: NodeJS.Signals,
  mode: "print" | "rpc",
): Promise<Pick<PiExit, "code" | "signal">> {
  const { script, held } = heldScript();
  const at = await home({});
  const scripted = await model(mode === "print" ? [(script as [unknown, () => never])[1]] : []);
  let exit: PiExit;
  if (mode === "print") {
    const run = await startPrint({ home: at, model: scripted, prompt: "go" });
    await held;
    run.kill(signal);
    exit = await run.done;
  } else {
    const rpc = await startRpc({ home: at, model: scripted });
    await rpc.ready();
    rpc.kill(signal);
    exit = await rpc.exited;
  }
  return { code: exit.code, signal: exit.signal };
}

/**
 * Pi leaves SIGINT to the system and ends itself at SIGTERM and SIGHUP, in both modes alike. So a run of all tests sends
 * each signal in one mode, and `ENDS_ALL=1` in both.
 */
const inBothModes = process.env.ENDS_ALL === "1";
const IN_PRINT_MODE = inBothModes
  ? (["SIGTERM", "SIGINT", "SIGHUP"] as const)
  : (["SIGTERM", "SIGINT"] as const);
const IN_RPC_MODE = inBothModes ? (["SIGTERM", "SIGINT", "SIGHUP"] as const) : (["SIGHUP"] as const);

/** Expects that every process of the home ends, Pi's too; a failure names the others. */
async function expectNothingLeft(at: PiHome, pids: readonly number[]): Promise<void> {
  await waitGone(pids, 5_000);
  expect((await processesWithMarker(at.dir)).map(({ command }) => command)).toEqual([]);
}

describe("Pi ends, print mode", () => {
  test("the prompt is done -> no process is left, nothing on stderr", async () => {
    const at = await homeWithServers();
    const scripted = await model([searchFor("work"), { text: "ok" }]);
    const run = await runPrint({ home: at, model: scripted, extensions: await packed(), prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "", timedOut: false });
    await expectNothingLeft(at, []);
  });

  test.each(IN_PRINT_MODE)(
    "%s during a request to the model -> no process is left, and Pi ends as without this extension",
    async (signal) => {
      const bare = bareEnd(signal, "print");
      const at = await homeWithServers();
      const { script, held } = heldScript();
      const scripted = await model(script);
      const run = await startPrint({
        home: at,
        model: scripted,
        extensions: await packed(),
        prompt: "go",
      });
      await held;
      const before = await serverProcesses(at, run.pid);
      expect(before).toHaveLength(5);
      run.kill(signal);
      const { code, signal: by, timedOut } = await run.done;
      expect(timedOut).toBe(false);
      await expectNothingLeft(at, pidsOf(before));
      expect({ code, signal: by }).toEqual(await bare);
    },
  );
});

async function startConnectedRpc(at: PiHome): Promise<{ rpc: RpcSession; pids: number[] }> {
  const scripted = await model([searchFor("work"), { text: "ok" }]);
  const rpc = await startRpc({ home: at, model: scripted, extensions: await packed() });
  onCleanup(() => rpc.stop());
  await rpc.prompt("go");
  const before = await serverProcesses(at, rpc.pid);
  expect(before).toHaveLength(5);
  return { rpc, pids: pidsOf(before) };
}

describe("Pi ends, RPC mode", () => {
  test("the end of stdin -> no process is left", async () => {
    const at = await homeWithServers();
    const { rpc, pids } = await startConnectedRpc(at);
    expect(await rpc.stop()).toMatchObject({ code: 0, signal: null });
    await expectNothingLeft(at, pids);
    expect(rpc.stderr).toBe("");
    expect(extensionErrors(rpc.events)).toEqual([]);
  });

  test.each(IN_RPC_MODE)(
    "%s -> no process is left, and Pi ends as without this extension",
    async (signal) => {
      const bare = bareEnd(signal, "rpc");
      const at = await homeWithServers();
      const { rpc, pids } = await startConnectedRpc(at);
      rpc.kill(signal);
      const { code, signal: by } = await rpc.exited;
      await expectNothingLeft(at, pids);
      expect({ code, signal: by }).toEqual(await bare);
    },
  );

  test("SIGTERM twice, after which Pi does not wait for its extensions -> no process is left", async () => {
    const at = await homeWithServers();
    const { rpc, pids } = await startConnectedRpc(at);
    rpc.kill("SIGTERM");
    rpc.kill("SIGTERM");
    await rpc.exited;
    await expectNothingLeft(at, pids);
  });
});

test("SIGKILL of Pi -> only the server that ignores the end of its stdin is left", async () => {
  const at = await home({ mcp: { mcpServers: { a: plain(), b: plain(), stubborn: stubborn() } } });
  const scripted = await model([searchFor("work"), { text: "ok" }]);
  const rpc = await startRpc({ home: at, model: scripted, extensions: ENTRY });
  await rpc.prompt("go");
  const before = await serverProcesses(at, rpc.pid);
  expect(before).toHaveLength(3);
  rpc.kill("SIGKILL");
  await rpc.exited;
  const mortal = before.filter(({ command }) => !command.includes("ignores-end"));
  expect(await waitGone(pidsOf(mortal), 10_000)).toEqual([]);
  const left = (await processesWithMarker(at.dir)).map(({ command }) => command);
  expect(left.filter((command) => !command.includes("ignores-end"))).toEqual([]);
});

/** An extension with a command that runs Pi's own reload, as `/reload` does in the terminal. */
const RELOADER = `
export default function (pi) {
  pi.registerCommand("again", { description: "x", handler: async (args, ctx) => { await ctx.reload(); } });
}
`;

describe("session changes", () => {
  async function startCounting(): Promise<{
    at: PiHome;
    rpc: RpcSession;
    starts: () => Promise<number>;
    running: () => Promise<number[]>;
    connected: () => Promise<void>;
  }> {
    const at = await home({});
    const RECORD = join(at.dir, "record");
    await at.writeMcp({
      mcpServers: { s: { ...fixtureServer("counts.mjs", { RECORD }), lifecycle: "eager" } },
    });
    const reloader = await at.writeFile("reloader.mjs", RELOADER);
    const rpc = await startRpc({ home: at, model: await model([]), extensions: [ENTRY, reloader] });
    onCleanup(() => rpc.stop());
    await rpc.ready();
    return {
      at,
      rpc,
      starts: async () =>
        (await readFile(RECORD, "utf8")).split("\n").filter((line) => line === "start").length,
      running: async () => pidsOf(await serverProcesses(at, rpc.pid)),
      connected: async () => {
        await until(async () => {
          const [status] = notices(await rpc.command("/mcp"));
          return status?.message.includes("s: connected") || undefined;
        });
      },
    };
  }

  test("new sessions and reloads with the server up, then three of each at once -> at most one spawn for each session, one process", async () => {
    const { at, rpc, starts, running, connected } = await startCounting();
    const newSession = (): Promise<unknown> => rpc.request({ type: "new_session" });
    const reload = (): Promise<unknown> => rpc.command("/again");
    await connected();
    let sessions = 1;
    for (const change of [newSession, newSession, reload, reload]) {
      const before = await running();
      await change();
      await connected();
      sessions++;
      expect(await starts()).toBe(sessions);
      expect(await waitGone(before, 5_000)).toEqual([]);
      expect(await running()).toHaveLength(1);
    }

    for (const change of [newSession, reload]) {
      const before = await starts();
      const changes = await Promise.allSettled(Array.from({ length: 3 }, change));
      expect(changes.some(({ status }) => status === "fulfilled")).toBe(true);
      await connected();
      await until(async () => (await running()).length <= 1 || undefined);
      expect(await running()).toHaveLength(1);
      expect(await starts()).toBeLessThanOrEqual(before + 3);
    }
    expect(extensionErrors(rpc.events)).toEqual([]);
    expect(await rpc.stop()).toMatchObject({ code: 0 });
    expect(rpc.stderr).toBe("");
    await expectNothingLeft(at, []);
  });
});

describe("notices and commands", () => {
  const turn = inTurn();
  const unready = (at: PiHome): Entry =>
    fixtureServer("fails-until.mjs", { RECORD: join(at.dir, "record"), READY: join(at.dir, "ready") });

  test("RPC: a server that fails, is repaired and reconnected -> one notice for each, and the status line", async () => {
    const pi = await turn((at) => ({ mcp: { mcpServers: { bad: unready(at), good: plain() } } }));
    const { rpc } = pi;
    await pi.prompt(searchFor("work"));
    await pi.prompt(searchFor("work"));
    const failed = notices(rpc.events);
    expect(failed.map(({ level }) => level)).toEqual(["error"]);
    expect(failed[0]?.message).toMatch(/^MCP server bad: .*exited with code 3.*not ready/s);
    await until(async () => statuses(rpc.events)["pi-mcp-threads"] === "MCP 1/2 · 1 tool" || undefined);

    await writeFile(join(pi.at.dir, "ready"), "");
    const since = rpc.events.length;
    await rpc.command("/mcp reconnect bad");
    await until(async () => statuses(rpc.events)["pi-mcp-threads"] === "MCP 2/2 · 2 tools" || undefined);
    const told = notices(rpc.events.slice(since));
    expect(told.filter(({ message }) => message === "MCP server bad works again.")).toHaveLength(1);
    const shown = told.filter(({ message }) => message.startsWith("MCP: "));
    expect(shown.map(({ message }) => message)).toEqual([
      expect.stringContaining("MCP: 2 of 2 servers connected, 2 tools known\nbad: connected"),
    ]);
    expect(told).toHaveLength(2);
    expect(rpc.stderr).toBe("");
  });

  test("print: a server that fails -> one line on stderr, the answer on stdout", async () => {
    const at = await home({});
    await at.writeMcp({ mcpServers: { bad: unready(at), good: plain() } });
    const scripted = await model([searchFor("work"), { text: "ok" }]);
    const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(run.stderr).toMatch(/^MCP server bad: .*exited with code 3.*not ready.*\n$/);
    expect(run.stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("/mcp with tools, reconnect of an unknown server and an unknown word -> a list, an error and a usage line", async () => {
    const { at, rpc, prompt } = await turn({ mcp: { mcpServers: { good: plain(), other: plain() } } });
    await prompt(searchFor("work"));
    const said = async (text: string) => notices(await rpc.command(text)).filter(({ message }) => message);
    const goodTools = "good: 1 tool\n  good__work - Does work.";
    expect(await said("/mcp tools good")).toEqual([{ message: goodTools, level: "info" }]);
    expect(await said("/mcp tools")).toEqual([
      { message: `${goodTools}\nother: 1 tool\n  other__work - Does work.`, level: "info" },
    ]);
    expect(await said("/mcp reconnect nope")).toEqual([
      { message: expect.stringMatching(/^\/mcp: No server named nope is configured\./), level: "error" },
    ]);
    expect(await said("/mcp restart")).toEqual([
      { message: expect.stringMatching(/^\/mcp restart is not known\. Usage: /), level: "warning" },
    ]);
    const before = pidsOf(await serverProcesses(at, rpc.pid));
    expect((await said("/mcp reconnect good"))[0]?.message).toMatch(/^MCP: 2 of 2 servers connected/);
    const after = pidsOf(await serverProcesses(at, rpc.pid));
    expect(after.filter((pid) => before.includes(pid))).toHaveLength(1);
    expect(extensionErrors(rpc.events)).toEqual([]);
  });

  test("progress of a call -> at most ten updates a second; Esc during a call without an answer -> the call ends, the next call works", async () => {
    const { at, rpc, prompt } = await turn({
      mcp: { mcpServers: { p: fixtureServer("progresses.mjs"), w: fixtureServer("waits.mjs") } },
    });
    const since = rpc.events.length;
    const [, end] = await prompt(searchFor("work"), call("p__work", { ms: 1_000 }));
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
});
