/**
 * Owns: tests of servers that a model wrote into `.pi/mcp.json`, across sessions and starts of the real Pi: such a server never runs
 * without consent. Also tests of an open question when the connection worker ends.
 */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { notices } from "../support/rpc-events.ts";
import { inTurn, NEXT_HOME, nextSession } from "./in-turn.ts";
import {
  breakableEntry,
  breakWorker,
  dialogsOf,
  live,
  type Opened,
  open,
  PATIENCE_MS,
} from "./rpc-support.ts";
import { call, ENTRY, home, model, searchFor } from "./support.ts";

const config = (servers: Record<string, unknown>) => ({ mcpServers: servers });

const recordOf = (at: PiHome): string => join(at.dir, "record");
const evil = (at: PiHome) => live(["evil"], { RECORD: recordOf(at) });
const projectFile = (at: PiHome): string => join(at.cwd, ".pi", "mcp.json");
/** Returns the model's turn that adds a server to the project's servers. */
const writesEvil = (at: PiHome, beside: Record<string, unknown> = {}) =>
  call("write", { path: projectFile(at), content: JSON.stringify(config({ ...beside, evil: evil(at) })) });

const hasRun = (at: PiHome): Promise<boolean> =>
  stat(recordOf(at)).then(
    () => true,
    () => false,
  );

const trustOf = async (at: PiHome): Promise<{ server: string; decision: string }[]> => {
  const text = await readFile(join(at.agentDir, "mcp-trust.json"), "utf8").catch(() => '{"consents":[]}');
  return (JSON.parse(text) as { consents: { server: string; decision: string }[] }).consents;
};

/** Checks that the server is asked for and has not run. */
async function expectAsked({ at, dialog }: Opened): Promise<void> {
  expect((await dialog()).title).toContain("live.mjs evil");
  expect(await hasRun(at)).toBe(false);
}

/** Starts Pi again with the same home. */
async function isAskedAgain(at: PiHome): Promise<Opened> {
  const pi = await open({ at, extensions: [ENTRY, NEXT_HOME] });
  await expectAsked(pi);
  return pi;
}

/** Runs `pi -p`; the model gives these turns and then ends. */
async function print(at: PiHome, ...turns: ReturnType<typeof call>[]) {
  const scripted = await model([...turns, { text: "ok" }]);
  return runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go", timeoutMs: PATIENCE_MS });
}

/** Renames the project folder, which Pi trusts under its new name. Returns the home with that folder. */
async function renamed(at: PiHome): Promise<PiHome> {
  const moved = { ...at, cwd: `${at.cwd}-renamed` };
  await rename(at.cwd, moved.cwd);
  const trust = join(at.agentDir, "trust.json");
  await writeFile(trust, (await readFile(trust, "utf8")).replaceAll(at.cwd, moved.cwd));
  return moved;
}

test("a model writes .pi/mcp.json as the last act of a print run, and session follows session, at last in a renamed folder -> asked for until the user allows it, then it runs without a question", async () => {
  const at = await home({ trusted: true });
  expect(await print(at, writesEvil(at))).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "awaiting" }]);

  const asked = await isAskedAgain(at);
  asked.answer(await asked.dialog(), { value: "Not now" });
  await nextSession(asked);
  await expectAsked(asked);
  asked.rpc.kill("SIGKILL");
  await asked.rpc.exited;

  // The search waits for the configuration; a run without a search may end before that.
  expect(await print(at, searchFor("select:evil__work"))).toMatchObject({
    code: 0,
    stdout: "ok\n",
    stderr: "MCP server evil is not started: no one can be asked for consent here.\n",
  });

  const moved = await renamed(at);
  const allowing = await isAskedAgain(moved);
  expect(await allowing.status()).toContain("waits for your consent: evil: ");
  expect(await hasRun(moved)).toBe(false);
  allowing.answer(await allowing.dialog(), { value: "Allow" });
  await allowing.statusLine("MCP: 1 server ready · 1 tool");
  expect(await trustOf(moved)).toContainEqual(
    expect.objectContaining({ server: "evil", decision: "allowed" }),
  );

  await nextSession(allowing);
  await allowing.prompt(searchFor("select:evil__work"));
  expect((await allowing.ask("evil__work")).argv).toEqual(["evil"]);
  expect(dialogsOf(allowing.rpc)).toEqual([]);
});

test("the same in a run that needs no thread, since all its servers are known -> awaits consent as well", async () => {
  const at = await home({ trusted: true, mcp: config({ own: live(["own"]) }) });
  const first = await open({ at });
  await first.statusLine("MCP: 1 server ready · 1 tool");
  const isKnown = async (): Promise<boolean> =>
    (await readdir(join(at.agentDir, "mcp-snapshots")).catch(() => [])).some((name) =>
      name.endsWith(".rest.json"),
    );
  await expect.poll(isKnown, { timeout: PATIENCE_MS }).toBe(true);
  await first.rpc.stop();
  expect(await print(at, writesEvil(at))).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "awaiting" }]);
  expect(await hasRun(at)).toBe(false);
});

describe("the connection worker ends while a question is open", () => {
  const turn = inTurn({ extensions: async (at) => [await breakableEntry(at)] });
  const pidsOf = async (at: PiHome): Promise<string[]> =>
    (await processesWithMarker(`HOME=${at.dir}`))
      .filter(({ command }) => command.includes("fixtures/servers"))
      .map(({ command }) => command.split(" ").at(-1) ?? "");

  test("the answer comes after the next worker -> it applies to the server of the question, asked once; earlier servers run again", async () => {
    const own = live(["own"], {}, { lifecycle: "eager" });
    const pi = await turn({ trusted: true, files: { ".pi/mcp.json": config({ own }) } });
    const { at } = pi;
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    await pi.prompt(writesEvil(at, { own }));
    const asked = await pi.dialog();
    await breakWorker(pi);
    expect(await pi.status()).toContain("waits for your consent: evil: ");
    expect(await hasRun(at)).toBe(false);
    expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "awaiting" }]);

    const since = pi.rpc.events.length;
    pi.answer(asked, { value: "Allow" });
    await pi.statusLine("MCP: 2 servers ready · 2 tools", since);
    expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "allowed" }]);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
    expect((await pidsOf(at)).sort()).toEqual(["evil", "own"]);
  });

  test("the answer comes before the next worker -> the next worker applies it", {
    tags: "thorough",
  }, async () => {
    const pi = await turn({ files: { ".mcp.json": config({ evil: live(["evil"]) }) } });
    const asked = await pi.dialog();
    await breakWorker(pi);
    pi.answer(asked, { value: "Allow" });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
  });

  test("the worker ends while it stores the answer -> the next worker applies it", {
    tags: "thorough",
  }, async () => {
    const pi = await turn({ files: { ".mcp.json": config({ evil: live(["evil"]) }) } });
    const { at } = pi;
    const asked = await pi.dialog();
    // A foreign lock on the file of consents keeps the worker from storing the answer.
    const lock = join(at.agentDir, ".mcp-trust.json.lock");
    await mkdir(lock);
    await writeFile(join(lock, "somebody"), "");
    pi.answer(asked, { value: "Allow" });
    const waiting = async (): Promise<string> => (await readdir(at.agentDir)).join(" ");
    await expect.poll(waiting, { timeout: PATIENCE_MS }).toMatch(/\.mcp-trust\.json\.lock\.\w+\.tmp/);
    await breakWorker(pi);
    await rm(lock, { recursive: true });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "allowed" }]);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
    expect(notices(pi.rpc.events).filter(({ level }) => level === "error")).toEqual([]);
  });
});
