/**
 * Owns: tests of a file that `--mcp-config` names, in the real Pi: it takes the place of the user's own file, with a
 * snapshot of its own, and commands read and write it.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { snapshotPath } from "../../src/catalog/store.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { writeFiles } from "./in-turn.ts";
import { dialogsOf, expectClean, live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { ENTRY, home, model, once, searchFor } from "./support.ts";

const usualSnapshot = ({ agentDir, cwd }: PiHome): string => snapshotPath(agentDir, { cwd });
const direct = ({ scripted }: Opened): string[] | undefined =>
  scripted.requests[0]?.toolNames.filter((name) => name.includes("__"));
const withConfigFile = once(async () => {
  const mcp = { mcpServers: { usual: live([], {}, { directTools: true }) } };
  const at = await home({ mcp, trusted: false });
  await writeFiles(at.agentDir, { [relative(at.agentDir, usualSnapshot(at))]: "kept" });
  const env = { MCP_DIRECT_TOOLS: "mine/extra,usual/work" };
  return open({ at, args: ["--mcp-config", "~/x.json"], env });
});

test("--mcp-config ~/x.json, no such file at first -> a notice names the path; /mcp edit opens the file, the BOM stays; it takes the place of the agent folder's file, also for MCP_DIRECT_TOOLS; an edit of it applies; a new session has a snapshot of the file's own, and the usual snapshot stays", async () => {
  const pi = await withConfigFile();
  const file = join(pi.at.dir, "x.json");
  expect(await pi.notice(/there is no such file/)).toContain(file);
  await writeFile(file, '\uFEFF{"mcpServers": {}}');
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).not.toContain("no such file");
  const edited = JSON.stringify({ mcpServers: { mine: live(["one"], { TOOLS: "work,extra" }) } });
  pi.rpc.answerUi({ value: edited });
  let since = pi.rpc.events.length;
  await pi.rpc.command("/mcp edit", PATIENCE_MS);
  expect(dialogsOf(pi.rpc)).toMatchObject([{ method: "editor", title: file, prefill: '{"mcpServers": {}}' }]);
  pi.rpc.answerUi(() => undefined);
  await pi.notice(/^mcp\.json: \+ mine/, since);
  expect(await readFile(file, "utf8")).toBe(`\uFEFF${edited}`);
  expect(await pi.status()).not.toContain("usual");
  await pi.prompt(searchFor("select:mine__work"));
  expect(direct(pi)).toEqual(["mine__extra"]);
  expect((await pi.ask("mine__work")).argv).toEqual(["one"]);

  since = pi.rpc.events.length;
  await writeFile(file, edited.replace('"one"', '"two"'));
  await pi.notice(/~ mine \(args\)/, since);
  expect((await pi.ask("mine__work")).argv).toEqual(["two"]);

  await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
  pi.scripted.forget();
  await pi.prompt();
  expect(direct(pi)).toEqual(["mine__extra"]);
  expect(JSON.stringify(pi.scripted.requests[0]?.tools)).toMatch(/- mine\b(?![\s\S]*- usual\b)/);
  expect(await readFile(usualSnapshot(pi.at), "utf8")).toBe("kept");
  const kept = await readdir(dirname(usualSnapshot(pi.at)));
  expect(kept.filter((name) => name.endsWith(".bin"))).toHaveLength(2);
  expectClean(pi);
});

test("--mcp-config ~/x.json, an unknown server, a project that is not trusted -> an error, nothing is written", async () => {
  const pi = await withConfigFile();
  const since = pi.rpc.events.length;
  const errors = async (command: string): Promise<string[]> =>
    notices(await pi.rpc.command(command, PATIENCE_MS))
      .filter(({ level }) => level === "error")
      .map(({ message }) => message);
  expect(await errors("/mcp disable nope")).toEqual([
    expect.stringContaining("No server named nope is configured."),
  ]);
  expect(await errors("/mcp disable mine --project")).toEqual([expect.stringContaining("is not trusted")]);
  expect(await errors("/mcp edit --project")).toEqual([expect.stringContaining("is not trusted")]);
  expect(dialogsOf(pi.rpc, since)).toEqual([]);
  expect(existsSync(join(pi.at.cwd, ".pi"))).toBe(false);
  expectClean(pi);
});

test("a session of a clone is resumed under a relative --mcp-config -> the clone's file of that name is not the user's own: its server does not start, and the user's does", async () => {
  const at = await home({ mcp: { mcpServers: {} }, trusted: false });
  await writeFiles(at.cwd, { "own.json": { mcpServers: { mine: live(["mine"]) } } });
  const clone = join(at.dir, "clone");
  const sessionPath = join(at.dir, "clone.jsonl");
  const header = {
    type: "session",
    version: 3,
    id: randomUUID(),
    timestamp: new Date().toISOString(),
    cwd: clone,
  };
  const evil = live(["evil"], {}, { lifecycle: "eager" });
  await writeFiles(at.dir, {
    "clone/own.json": { mcpServers: { evil } },
    "clone.jsonl": `${JSON.stringify(header)}\n`,
  });
  const pi = await open({ at, args: ["--mcp-config", "own.json"] });
  const { data } = await pi.rpc.request({ type: "switch_session", sessionPath }, PATIENCE_MS);
  expect(data).toEqual({ cancelled: false });
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^mine: connected/m);
  await pi.prompt(searchFor("select:mine__work"));
  expect((await pi.ask("mine__work")).argv).toEqual(["mine"]);
  expect(await pi.status()).not.toContain("evil");
  expectClean(pi);
});

const three = once(async () => {
  const mcp = { mcpServers: { one: live(["one"]), two: live(["two"]), three: live(["three"]) } };
  return home({ mcp, trusted: false });
});

test.each<[string, string[], Record<string, string>, string[]]>([
  // embedded.test.ts has the flag without the variable.
  ["--mcp-servers, which beats MCP_SERVERS", ["--mcp-servers=two, "], { MCP_SERVERS: "one,three" }, []],
  ["MCP_SERVERS", [], { MCP_SERVERS: " two ,two,gone" }, ["gone"]],
])(
  "%s -> the session has that server alone: in the catalogue, in searches, by name, in /mcp; a notice names what no file defines",
  async (_by, args, env, undefinedNames) => {
    const pi = await open({ at: await three(), args, env });
    for (const name of undefinedNames)
      expect(await pi.notice(new RegExp(name))).toContain(`no file defines a server named ${name}`);
    await pi.prompt(searchFor("select:one__work"), searchFor("select:two__work"), searchFor("work"));
    const told = JSON.stringify(pi.scripted.requests);
    expect(told).toContain("two__work");
    expect(told).not.toMatch(/three__work|- three|- one\b/);
    expect((await pi.ask("two__work")).argv).toEqual(["two"]);
    expect(await pi.status()).toContain("two: connected");
    expect(await pi.status()).not.toMatch(/^(?:one|three):/m);
    expectClean(pi);
  },
);

test("a later session without it -> it has all servers", async () => {
  const pi = await open({ at: await three() });
  await pi.prompt(searchFor("select:three__work"));
  expect((await pi.ask("three__work")).argv).toEqual(["three"]);
});

test("--no-mcp, Pi's own flag -> no tool of ours, no command, and no server runs", async () => {
  const at = await three();
  const scripted = await model([{ text: "ok" }, { text: "ok" }]);
  // A flag of ours beside it, as an alias may have, is none that Pi does not know.
  const args = ["--no-mcp", "--mcp-servers", "one", "/mcp status"];
  const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, args, prompt: "go" });
  expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" });
  // What is typed after /mcp is a message as any other, as it is with Pi's own MCP.
  expect(scripted.requests).toHaveLength(2);
  for (const { toolNames } of scripted.requests)
    expect(toolNames.filter((name) => /ToolSearch|__/.test(name))).toEqual([]);
});
