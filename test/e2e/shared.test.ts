/**
 * Owns: tests of shared servers with two and more real Pi processes: which process answers whom, edits, a project's files,
 * approval, deaths, and that no process is left. test/hostile/hub.test.ts has the attacks on the hub itself.
 */
import { execFileSync } from "node:child_process";
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
import { expectClean, live, type Opened, open } from "./rpc-support.ts";
import {
  call,
  copyExtension,
  ENTRY,
  fixtureServer,
  home,
  model,
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

/** Ends the hub as a person would, and expects that nothing of the home is left. */
async function expectNothingLeft(at: PiHome, sessions: readonly Opened[] = []): Promise<void> {
  await Promise.all(sessions.map(({ rpc }) => rpc.stop()));
  for (const pid of await hubsOf(at)) process.kill(pid, "SIGTERM");
  const left = (await processesWithMarker(`HOME=${at.dir}`)).map(({ pid }) => pid);
  await waitGone(left);
  expect((await processesWithMarker(at.dir)).map(({ command }) => command)).toEqual([]);
}

/** Two sessions of one home, each of which knows the tool. */
async function two(at: PiHome, tool = "s__work"): Promise<[Opened, Opened]> {
  const [one, other] = [await open({ at }), await open({ at })];
  for (const { prompt } of [one, other]) await prompt(searchFor(`select:${tool}`));
  return [one, other];
}

test("two print runs one after the other -> one process of the real npm server; after its idle time nothing is left", async () => {
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
    const at = await home({ mcp: { mcpServers: { s: shared(["one"]), own: live() } } });
    const sessions = await two(at, "s__work,own__work");
    const [a, b] = sessions;
    const first = await a.ask("s__work");
    expect(await b.ask("s__work")).toEqual(first);
    expect((await b.ask("own__work")).pid).not.toBe((await a.ask("own__work")).pid);
    expect(await isOwn(a, first.pid)).toBe(false);
    expect(await isOwn(b, (await b.ask("own__work")).pid)).toBe(true);

    const since = [a.rpc.events.length, b.rpc.events.length];
    await at.writeMcp({ mcpServers: { s: shared(["two"]), own: live() } });
    expect(await a.notice(/^mcp\.json: /, since[0])).toBe("mcp.json: ~ s (args)");
    expect(await b.notice(/^mcp\.json: /, since[1])).toBe("mcp.json: ~ s (args)");
    const second = await a.ask("s__work");
    expect(second).toMatchObject({ argv: ["two"] });
    expect(await b.ask("s__work")).toEqual(second);
    expect(await waitGone([first.pid])).toEqual([]);

    const again = [a.rpc.events.length, b.rpc.events.length];
    await at.writeMcp({ mcpServers: { s: live(["two"]), own: live() } });
    await a.notice(/^mcp\.json: /, again[0]);
    await b.notice(/^mcp\.json: /, again[1]);
    const apart = [await a.ask("s__work"), await b.ask("s__work")];
    expect(new Set([second.pid, ...apart.map(({ pid }) => pid)]).size).toBe(3);
    expect(await waitGone([second.pid])).toEqual([]);
    sessions.forEach(expectClean);
    await expectNothingLeft(at, sessions);
  });

  test("another value of a variable in one session -> a process each, although the entry is the same", async () => {
    // The word is one of the arguments of our own command as well.
    const at = await home({ mcp: { mcpServers: { s: shared(["serve"]) } } });
    const a = await open({ at, env: { AWS_PROFILE: "one" } });
    const b = await open({ at, env: { AWS_PROFILE: "two" } });
    const c = await open({ at, env: { AWS_PROFILE: "two", TERM_SESSION_ID: "another window" } });
    for (const { prompt } of [a, b, c]) await prompt(searchFor("select:s__work"));
    const [one, other, third] = [await a.ask("s__work"), await b.ask("s__work"), await c.ask("s__work")];
    expect(one.pid).not.toBe(other.pid);
    expect(third.pid).toBe(other.pid);
    expect(await hubsOf(at)).toHaveLength(1);
    await expectNothingLeft(at, [a, b, c]);
  });

  test("approval of each call -> each session is asked for its own, and a no of one is no answer for the other", async () => {
    const at = await home({ mcp: { mcpServers: { s: shared([], {}, { approve: "always" }) } } });
    const sessions = await two(at);
    const [a, b] = sessions;
    const denied = a.prompt(call("s__work", {}));
    const allowed = b.prompt(call("s__work", {}));
    const [mine, theirs] = [await a.dialog(), await b.dialog()];
    const yes = theirs.options?.find((option) => /^Allow|^Yes|once/i.test(option)) ?? "";
    b.answer(theirs, { value: yes });
    expect((await allowed)[0]).toMatchObject({ isError: false });
    a.answer(mine, { cancelled: true });
    expect((await denied)[0]).toMatchObject({ isError: true });
    await expectNothingLeft(at, sessions);
  });

  test("results of a shared server -> the model reads what it reads of a server of its own", async () => {
    const { everything } = SERVERS;
    const at = await home({
      mcp: { mcpServers: { alone: everything, both: { ...everything, shared: true } } },
    });
    const pi = await open({ at });
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
    await expectNothingLeft(at, [pi]);
  });
});

describe("a project's files", () => {
  test("shared: true of a project's server, and of the project's settings -> no effect, and a warning with file and line", async () => {
    const text = `{"settings": {"shared": true},\n"mcpServers": {\n"theirs": ${JSON.stringify(shared([], {}, { lifecycle: "eager" }))}}}`;
    const at = await home({
      trusted: true,
      mcp: { mcpServers: { mine: live() } },
      files: { ".pi/mcp.json": text },
    });
    const pi = await open({ at });
    await pi.notice(/\.pi\/mcp\.json:3:\d+: mcpServers\.theirs\.shared: /);
    await pi.notice(/\.pi\/mcp\.json:1:\d+: settings\.shared: /);
    await pi.prompt(searchFor("select:theirs__work,mine__work"));
    for (const tool of ["theirs__work", "mine__work"])
      expect(await isOwn(pi, (await pi.ask(tool)).pid)).toBe(true);
    expect(await hubsOf(at)).toEqual([]);
    await expectNothingLeft(at, [pi]);
  });

  test("shared: false in a project's entry of the user's shared server -> this session has its own, without a question", async () => {
    const at = await home({
      trusted: true,
      mcp: { mcpServers: { s: shared(), t: live() }, settings: { shared: true } },
      files: { ".pi/mcp.json": { mcpServers: { s: { shared: false } } } },
    });
    const pi = await open({ at });
    await pi.prompt(searchFor("select:s__work,t__work"));
    expect(await isOwn(pi, (await pi.ask("s__work")).pid)).toBe(true);
    expect(await isOwn(pi, (await pi.ask("t__work")).pid)).toBe(false);
    expect(pi.rpc.openDialogs).toEqual([]);
    await expectNothingLeft(at, [pi]);
  });
});

describe("bad cases", () => {
  test("the hub cannot be started -> each shared server runs for the session alone, and one notice says why", async () => {
    const at = await home({ mcp: { mcpServers: { s: shared(), t: shared() } } });
    const facts = placeFacts(at.agentDir, manifest.version);
    const { folder } = hubPlace({ ...facts, runtimeFolder: undefined, tempFolder: at.tmpDir });
    await writeFile(folder, "");
    const pi = await open({ at });
    await pi.prompt(searchFor("select:s__work,t__work"));
    for (const tool of ["s__work", "t__work"]) expect(await isOwn(pi, (await pi.ask(tool)).pid)).toBe(true);
    const told = notices(pi.rpc.events).filter(({ message }) => message.includes("Shared servers"));
    expect(told.map(({ message }) => message)).toEqual([
      `Shared servers cannot be used: ${folder} is not a folder; remove it. This session runs its own.`,
    ]);
    await expectNothingLeft(at, [pi]);
  });

  test("the hub is killed while both call -> each call fails and says why, none is repeated; the next calls share a new process", async () => {
    const at = await home({});
    const record = join(at.dir, "record");
    await at.writeMcp({
      mcpServers: { s: { ...fixtureServer("shared.mjs", { RECORD: record }), shared: true } },
    });
    const sessions = await two(at);
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
    await expectNothingLeft(at, sessions);
  });

  test("a session is killed while both call -> the other's call is answered, by the same process", async () => {
    const at = await home({ mcp: { mcpServers: { s: shared() } } });
    const [a, b] = await two(at);
    const { pid } = await a.ask("s__work");
    const go = join(at.dir, "go");
    void b.prompt(call("s__work", { file: join(at.dir, "never") })).catch(() => undefined);
    const since = a.rpc.events.length;
    const called = a.prompt(call("s__work", { file: go }));
    await a.rpc.waitFor(({ type }) => type === "tool_execution_start", undefined, since);
    await b.rpc.waitFor(({ type, toolName }) => type === "tool_execution_start" && toolName === "s__work");
    b.rpc.kill("SIGKILL");
    await b.rpc.exited;
    await writeFile(go, "");
    expect(JSON.parse((await called)[0]?.text ?? "")).toMatchObject({ pid });
    await expectNothingLeft(at, [a]);
  });

  test("the package is deleted while its hub runs, and installed again -> the sessions and the hub go on, the next session finds it", async () => {
    const at = await home({ mcp: { mcpServers: { s: shared() } } });
    const copy = await copyExtension(at);
    const a = await open({ at, extensions: [join(copy, "index.js")] });
    await a.prompt(searchFor("select:s__work"));
    const first = await a.ask("s__work");
    await rm(copy, { recursive: true });
    expect(await a.ask("s__work")).toEqual(first);
    const b = await open({ at });
    await b.prompt(searchFor("select:s__work"));
    expect(await b.ask("s__work")).toEqual(first);
    expect(await hubsOf(at)).toHaveLength(1);
    await expectNothingLeft(at, [a, b]);
  });
});

test("Pi's Bun build starts the hub, then Pi on Node -> both use it, one process answers both", async () => {
  const at = await home({ mcp: { mcpServers: { s: shared() } } });
  const a = await open({ at, runtime: BUN });
  await a.prompt(searchFor("select:s__work"));
  const first = await a.ask("s__work");
  const [hub] = await processesWithMarker(`HOME=${at.dir}`).then((all) =>
    all.filter(({ command }) => command.includes("hub.js")),
  );
  expect(hub?.command).toContain("bun");
  const b = await open({ at });
  await b.prompt(searchFor("select:s__work"));
  expect(await b.ask("s__work")).toEqual(first);
  await a.rpc.stop();
  expect(await b.ask("s__work")).toEqual(first);
  expect(await hubsOf(at)).toHaveLength(1);
  await expectNothingLeft(at, [b]);
});

test.runIf(process.platform === "linux")(
  "a program that Bun has compiled starts the hub, as Pi's own build -> the program runs the hub as Bun, a session on Node uses it too",
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
