/**
 * Owns: tests of shared servers with two and more real Pi processes: which process answers whom, edits, a project's files,
 * approval, deaths, and that no process is left. test/hostile/hub.test.ts has the attacks on the hub itself.
 */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { copyFile, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { hubPlace, placeFacts } from "../../workers/shared/hub/place.ts";
import { BUILT_HUB, hubHome, reportOf, SESSION, startSession } from "../support/hub.ts";
import { ALL_ROWS } from "../support/long.ts";
import { toolResultTexts } from "../support/model.ts";
import { bundle } from "../support/one-file.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { notices } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { expectClean, live, type Opened, open } from "./rpc-support.ts";
import {
  call,
  copyExtension,
  ENTRY,
  fixtureServer,
  home,
  model,
  once,
  readLog,
  SERVERS,
  searchFor,
} from "./support.ts";

const BUN = join(dirname(createRequire(import.meta.url).resolve("bun/package.json")), "bin", "bun.exe");

const shared = (args: string[] = [], env: Record<string, string> = {}, more: object = {}) =>
  live(args, env, { shared: true, ...more });

/** Pids of the home's processes with this in their command line. */
const running = async (at: PiHome, what: string): Promise<number[]> =>
  (await processesWithMarker(`HOME=${at.dir}`))
    .filter(({ command }) => command.includes(what))
    .map(({ pid }) => pid);
/** Whether Pi's own process has started the server. Pi starts the hub as well. */
const isOwn = async ({ at, rpc }: Opened, server: number): Promise<boolean> =>
  (await processesWithMarker(`HOME=${at.dir}`)).some(({ pid, ppid }) => pid === server && ppid === rpc.pid);
const hubsOf = (at: PiHome): Promise<number[]> => running(at, "hub.js");

/** Ends the hub as a person would. */
async function endHub(at: PiHome): Promise<void> {
  const pids = await hubsOf(at);
  for (const pid of pids) process.kill(pid, "SIGTERM");
  expect(await waitGone(pids)).toEqual([]);
}

/** Ends the hub, and expects that nothing of the home is left but these sessions. */
async function expectNothingLeft(at: PiHome, sessions: readonly Opened[] = []): Promise<void> {
  await endHub(at);
  const pis = sessions.map(({ rpc }) => rpc.pid);
  const left = async () => (await processesWithMarker(at.dir)).filter(({ pid }) => !pis.includes(pid));
  await waitGone((await left()).map(({ pid }) => pid));
  expect((await left()).map(({ command }) => command)).toEqual([]);
}

/** What two sessions have in common that share a server. */
const PROFILE = { AWS_PROFILE: "two" };

/** The tests of one session take turns with this Pi. */
const turn = inTurn({ env: PROFILE });

type Servers = Record<string, unknown>;

/** This Pi and another one of the same home, each in one session for all tests of two. They come before the tests of one. */
const pair = once(async (): Promise<[Opened, Opened]> => {
  const a = await turn({ mcp: { mcpServers: {} }, trusted: true });
  return [a, await open({ at: a.at, env: { ...PROFILE, TERM_SESSION_ID: "another window" } })];
});

/** Gives both sessions these servers while they run. Resolves with what they are told. */
async function edit(sessions: readonly Opened[], mcpServers: Servers): Promise<string[]> {
  const since = sessions.map(({ rpc }) => rpc.events.length);
  await sessions[0]?.at.writeMcp({ mcpServers });
  return Promise.all(sessions.map(({ notice }, at) => notice(/^mcp\.json: /, since[at])));
}

/** Two sessions of one home, each of which knows the tool. */
async function two(mcpServers: Servers, tool = "s__work"): Promise<[Opened, Opened]> {
  const sessions = await pair();
  await edit(sessions, mcpServers);
  for (const { prompt } of sessions) await prompt(searchFor(`select:${tool}`));
  return sessions;
}

/** Takes the servers from both sessions. */
async function end(sessions: readonly [Opened, Opened]): Promise<void> {
  await edit(sessions, {});
  await expectNothingLeft(sessions[0].at, sessions);
}

test("two print runs one after the other -> one process of the real npm server; after its idle time nothing is left", {
  tags: "thorough",
}, async () => {
  const mcp = {
    mcpServers: { everything: { ...SERVERS.everything, shared: true } },
    // Longer than a start of Pi on a busy machine.
    settings: { idleTimeout: 0.3 },
  };
  const at = await home({ mcp });
  const pids: number[][] = [];
  for (const message of ["first", "second"]) {
    const scripted = await model([
      searchFor("select:everything__echo"),
      call("everything__echo", { message }),
      { text: "ok" },
    ]);
    const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "", timedOut: false });
    const last = scripted.requests.at(-1);
    expect(last && toolResultTexts(last).at(-1)).toBe(`Echo: ${message}`);
    pids.push(await running(at, "server-everything"));
  }
  expect(pids[0]).toHaveLength(1);
  expect(pids[1]).toEqual(pids[0]);
  expect(await hubsOf(at)).toHaveLength(1);
  expect(await waitGone(pids.flat(), 60_000)).toEqual([]);
  // The hub itself ends half a minute after its last server.
  if (ALL_ROWS) expect(await waitGone(await hubsOf(at), 45_000)).toEqual([]);
  await expectNothingLeft(at);
  expect(await readLog(at)).not.toMatch(/ error /i);
});

describe("two sessions at once", () => {
  test("a shared server -> one process for both, an own one for each that is not shared; an edit gives both the new process, and the old one ends", async () => {
    const sessions = await two({ s: shared(["one"]), own: live() }, "s__work,own__work");
    const [a, b] = sessions;
    const first = await a.ask("s__work");
    expect(await b.ask("s__work")).toEqual(first);
    expect((await b.ask("own__work")).pid).not.toBe((await a.ask("own__work")).pid);
    expect(await isOwn(a, first.pid)).toBe(false);
    expect(await isOwn(b, (await b.ask("own__work")).pid)).toBe(true);

    const told = await edit(sessions, { s: shared(["two"]), own: live() });
    expect(told).toEqual(["mcp.json: ~ s (args)", "mcp.json: ~ s (args)"]);
    const second = await a.ask("s__work");
    expect(second).toMatchObject({ argv: ["two"] });
    expect(await b.ask("s__work")).toEqual(second);
    expect(await waitGone([first.pid])).toEqual([]);

    await edit(sessions, { s: live(["two"]), own: live() });
    const apart = [await a.ask("s__work"), await b.ask("s__work")];
    expect(new Set([second.pid, ...apart.map(({ pid }) => pid)]).size).toBe(3);
    expect(await waitGone([second.pid])).toEqual([]);
    sessions.forEach(expectClean);
    await end(sessions);
  });

  test("another value of a variable in one session -> a process each, although the entry is the same", {
    tags: "thorough",
  }, async () => {
    // The word is one of the arguments of our own command as well.
    const sessions = await two({ s: shared(["serve"]) });
    const [a, b] = sessions;
    const { at } = a;
    const c = await open({ at, env: { AWS_PROFILE: "one" } });
    await c.prompt(searchFor("select:s__work"));
    const [one, other, third] = [await a.ask("s__work"), await b.ask("s__work"), await c.ask("s__work")];
    expect(other.pid).toBe(one.pid);
    expect(third.pid).not.toBe(one.pid);
    expect(await hubsOf(at)).toHaveLength(1);
    await c.rpc.stop();
    await end(sessions);
  });

  test("approval of each call -> each session is asked for its own, and a no of one is no answer for the other", {
    tags: "thorough",
  }, async () => {
    const sessions = await two({ s: shared([], {}, { approve: "always" }) });
    const [a, b] = sessions;
    const since = [a.rpc.events.length, b.rpc.events.length];
    const denied = a.prompt(call("s__work", {}));
    const allowed = b.prompt(call("s__work", {}));
    const [mine, theirs] = [await a.dialog(since[0]), await b.dialog(since[1])];
    const yes = theirs.options?.find((option) => /^Allow|^Yes|once/i.test(option)) ?? "";
    b.answer(theirs, { value: yes });
    expect((await allowed)[0]).toMatchObject({ isError: false });
    a.answer(mine, { cancelled: true });
    expect((await denied)[0]).toMatchObject({ isError: true });
    await end(sessions);
  });

  test("the hub is killed while both call -> each call fails and says why, none is repeated; the next calls share a new process", async () => {
    const [{ at }] = await pair();
    const record = join(at.dir, "record");
    const s = { ...fixtureServer("shared.mjs", { RECORD: record }), shared: true };
    const sessions = await two({ s });
    const open = sessions.map(({ prompt }) => prompt(call("s__work", { do: "hang" })));
    await expect.poll(() => readFile(record, "utf8")).toMatch(/call hang\ncall hang\n/);
    for (const pid of await hubsOf(at)) process.kill(pid, "SIGKILL");
    for (const [end] of await Promise.all(open)) {
      expect(end?.isError).toBe(true);
      expect(end?.text).toContain("lost its connection to the hub of shared servers");
    }
    const pids = await Promise.all(
      sessions.map(async ({ prompt }) => (await prompt(call("s__work", { do: "pid" })))[0]?.text),
    );
    expect(pids[0]).toMatch(/^\d+$/);
    expect(pids[1]).toBe(pids[0]);
    const lines = (await readFile(record, "utf8")).split("\n");
    expect(lines.filter((line) => line === "call hang")).toHaveLength(2);
    await end(sessions);
  });

  test("the package is deleted while its hub runs, and installed again -> the sessions and the hub go on, the next session finds it", {
    tags: "thorough",
  }, async () => {
    const sessions = await pair();
    const [a] = sessions;
    const { at } = a;
    const copy = await copyExtension(at);
    // A session that alone has the server, so that it starts the hub: its file is another one.
    await writeFile(join(at.dir, "first.json"), JSON.stringify({ mcpServers: { s: shared() } }));
    const extensions = [join(copy, "index.js")];
    const first = await open({ at, extensions, args: ["--mcp-config", "~/first.json"], env: PROFILE });
    await first.prompt(searchFor("select:s__work"));
    const answer = await first.ask("s__work");
    expect(await running(at, join(copy, "dist", "workers", "hub.js"))).toHaveLength(1);
    await rm(copy, { recursive: true });
    expect(await first.ask("s__work")).toEqual(answer);
    await edit(sessions, { s: shared() });
    await a.at.useModel(a.scripted.url);
    await a.rpc.request({ type: "new_session" });
    await a.prompt(searchFor("select:s__work"));
    expect(await a.ask("s__work")).toEqual(answer);
    expect(await hubsOf(at)).toHaveLength(1);
    await first.rpc.stop();
    await end(sessions);
  });

  // The last test of two, because it ends one of them.
  test("a session is killed while both call -> the other's call is answered, by the same process", async () => {
    const [a, b] = await two({ s: shared() });
    const { at } = a;
    const { pid } = await a.ask("s__work");
    const go = join(at.dir, "go");
    const since = [a.rpc.events.length, b.rpc.events.length];
    void b.prompt(call("s__work", { file: join(at.dir, "never") })).catch(() => undefined);
    const called = a.prompt(call("s__work", { file: go }));
    for (const [i, { rpc }] of [a, b].entries())
      await rpc.waitFor(({ type }) => type === "tool_execution_start", undefined, since[i]);
    b.rpc.kill("SIGKILL");
    await b.rpc.exited;
    await writeFile(go, "");
    expect(JSON.parse((await called)[0]?.text ?? "")).toMatchObject({ pid });
    await edit([a], {});
    await expectNothingLeft(at, [a]);
  });
});

describe("one session", () => {
  test("results of a shared server -> the model reads what it reads of a server of its own", {
    tags: "thorough",
  }, async () => {
    const { everything } = SERVERS;
    const pi = await turn({
      mcp: { mcpServers: { alone: everything, both: { ...everything, shared: true } } },
    });
    const calls = (server: string) =>
      (
        [
          ["get-annotated-message", { messageType: "error", includeImage: true }],
          ["get-tiny-image", {}],
          ["get-structured-content", { location: "Chicago" }],
          ["get-resource-links", { count: 2 }],
        ] as const
      ).map(([tool, args]) => ({ name: `${server}__${tool}`, args }));
    const textsOf = async (server: string): Promise<string[]> => {
      const wanted = calls(server);
      await pi.prompt(searchFor(`select:${wanted.map(({ name }) => name).join(",")}`), { toolCalls: wanted });
      const last = pi.scripted.requests.at(-1);
      return last ? toolResultTexts(last).slice(-wanted.length) : [];
    };
    const alone = await textsOf("alone");
    expect((await textsOf("both")).map((text) => text.replaceAll("both", "alone"))).toEqual(alone);
    expect(alone).toHaveLength(4);
    await endHub(pi.at);
  });

  test("shared: true of a project's server, and of the project's settings -> no effect, and a warning with file and line", async () => {
    const text = `{"settings": {"shared": true},\n"mcpServers": {\n"theirs": ${JSON.stringify(shared([], {}, { lifecycle: "eager" }))}}}`;
    const pi = await turn({
      trusted: true,
      mcp: { mcpServers: { mine: live() } },
      files: { ".pi/mcp.json": text },
    });
    await pi.notice(/\.pi\/mcp\.json:3:\d+: mcpServers\.theirs\.shared: /);
    await pi.notice(/\.pi\/mcp\.json:1:\d+: settings\.shared: /);
    await pi.prompt(searchFor("select:theirs__work,mine__work"));
    for (const tool of ["theirs__work", "mine__work"])
      expect(await isOwn(pi, (await pi.ask(tool)).pid)).toBe(true);
    expect(await hubsOf(pi.at)).toEqual([]);
  });

  test("shared: false in a project's entry of the user's shared server -> this session has its own, without a question", {
    tags: "thorough",
  }, async () => {
    const pi = await turn({
      trusted: true,
      mcp: { mcpServers: { s: shared(), t: live() }, settings: { shared: true } },
      files: { ".pi/mcp.json": { mcpServers: { s: { shared: false } } } },
    });
    await pi.prompt(searchFor("select:s__work,t__work"));
    expect(await isOwn(pi, (await pi.ask("s__work")).pid)).toBe(true);
    expect(await isOwn(pi, (await pi.ask("t__work")).pid)).toBe(false);
    expect(pi.rpc.openDialogs).toEqual([]);
    await endHub(pi.at);
  });

  // The last test of this Pi, because it ends it.
  test("the hub cannot be started -> each shared server runs for the session alone, and one notice says why", async () => {
    let folder = "";
    const pi = await turn(({ agentDir, tmpDir }) => {
      const facts = placeFacts(agentDir, manifest.version);
      ({ folder } = hubPlace({ ...facts, runtimeFolder: undefined, tempFolder: tmpDir }));
      rmSync(folder, { recursive: true, force: true });
      writeFileSync(folder, "");
      return { mcp: { mcpServers: { s: shared(), t: shared() } } };
    });
    await pi.prompt(searchFor("select:s__work,t__work"));
    for (const tool of ["s__work", "t__work"]) expect(await isOwn(pi, (await pi.ask(tool)).pid)).toBe(true);
    const told = notices(pi.rpc.events).filter(({ message }) => message.includes("Shared servers"));
    expect(told.map(({ message }) => message)).toEqual([
      `Shared servers cannot be used: ${folder} is not a folder; remove it. This session runs its own.`,
    ]);
    await pi.rpc.stop();
    await expectNothingLeft(pi.at);
  });
});

test.runIf(process.platform === "linux")(
  "a program that Bun has compiled starts the hub, as Pi's own build -> the program runs the hub as Bun, a session on Node uses it too",
  { tags: "thorough" },
  async () => {
    const at = await hubHome();
    const compiled = join(at.agentDir, "compiled");
    const session = join(at.agentDir, "session.js");
    await writeFile(
      `${compiled}.ts`,
      "const [file] = process.argv.splice(2, 1); await import(String(file));",
    );
    execFileSync(BUN, ["build", "--compile", `${compiled}.ts`, "--outfile", compiled], { stdio: "ignore" });
    bundle(SESSION, session);
    await copyFile(BUILT_HUB, join(at.agentDir, "hub.js"));
    const a = startSession(at, [{ do: "echo", text: "compiled" }], { N: "1" }, [compiled, session]);
    await a.line("compiled");
    const { pid } = await reportOf(at);
    expect(await readlink(`/proc/${pid}/exe`)).toBe(compiled);
    const b = startSession(at, [{ do: "echo", text: "on Node" }], { N: "2" });
    await b.line("on Node");
    expect((await reportOf(at)).servers).toHaveLength(2);
  },
);
