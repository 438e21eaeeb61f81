/**
 * Owns: tests of the limits of a project's files, which a model can write, in the real Pi: the questions to the user, and
 * that without the user's consent the files start no servers, write no files, undo no exclusion of the user, and switch
 * on no server of the user.
 */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { family } from "../support/long.ts";
import type { PiHome } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { dialogsOf, expectClean, live, PATIENCE_MS, serversOf } from "./rpc-support.ts";
import { call, searchFor } from "./support.ts";

const turn = inTurn();

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
const projectFile = (at: PiHome): string => join(at.cwd, ".pi", "mcp.json");

test("a model writes imports into .pi/mcp.json -> no imported server runs, a notice names the line; the same in a later session", async () => {
  const danger = (at: PiHome) => live(["danger"], { RECORD: join(at.cwd, "record") });
  const pi = await turn((at) => ({
    trusted: true,
    mcp: { mcpServers: {} },
    fill: (folder) =>
      writeFile(join(folder, ".claude.json"), JSON.stringify({ mcpServers: { danger: danger(at) } })),
  }));
  const { at } = pi;
  const record = join(at.cwd, "record");
  await pi.status();
  const content = JSON.stringify({
    imports: ["claude-code"],
    mcpServers: { danger: { lifecycle: "keep-alive" }, own: live([], {}, { lifecycle: "eager" }) },
  });
  await pi.prompt(call("write", { path: projectFile(at), content }));
  await pi.notice(
    /\.pi\/mcp\.json:1:12: imports: a project's file may not import\. Write imports into your own/,
  );
  // The other server of the file is asked for and runs, which proves that the file was applied.
  pi.answer(await pi.dialog(), { value: "Allow" });
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  expect(await exists(record)).toBe(false);
  expect(dialogsOf(pi.rpc)).toHaveLength(1);
  await pi.again();
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  expect(await exists(record)).toBe(false);
});

test("settings and rules in the .mcp.json of a folder without an answer of the user -> no file is written, the user's exclusions hold beside those of the file, a notice names each setting and its line", async () => {
  const stats = (at: PiHome): string => join(at.dir, "stats");
  const settings = (at: PiHome) => ({
    captureStats: { path: stats(at), flushDelayMs: 0 },
    outputGuard: false,
    proxyTool: true,
  });
  const env = { TOOLS: "drop_all,secret,other,work" };
  const rules = { lifecycle: "eager", excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } };
  const db = { excludeTools: [], toolExposure: { secret: "direct", other: "hidden" } };
  const text = (at: PiHome): string =>
    `{"settings":\n${JSON.stringify(settings(at))},\n"mcpServers":\n${JSON.stringify({ db })}}`;
  const pi = await turn((at) => ({
    mcp: { mcpServers: { db: live([], env, rules) } },
    files: { ".mcp.json": text(at) },
  }));
  await pi.notice(
    /\.mcp\.json:2:17: settings\.captureStats: a project's file may not decide this: it writes files\./,
  );
  await pi.notice(/\.mcp\.json:2:\d+: settings\.outputGuard: a project's file may only make this stricter\./);
  await pi.notice(/\.mcp\.json:2:\d+: settings\.proxyTool: a project's file may not decide this/);
  await pi.notice(/\.mcp\.json:4:23: mcpServers\.db\.excludeTools: a project's list adds to yours/);
  await pi.notice(/\.mcp\.json:4:41: mcpServers\.db\.toolExposure: your own file hides these tools/);
  const [found] = await pi.prompt(searchFor("select:db__work,db__drop_all,db__secret,db__other"));
  const hidden = ["db__drop_all", "db__secret", "db__other"];
  for (const name of hidden) expect(found?.text).toContain(`No such tool: ${name}.`);
  const ends = await pi.prompt({ toolCalls: hidden.map((name) => ({ name, args: {} })) });
  expect(ends.map(({ isError }) => isError)).toEqual([true, true, true]);
  expect((await pi.ask("db__work")).argv).toEqual([]);
  // Statistics are written at the latest when the session ends.
  await pi.again();
  expect(await exists(stats(pi.at))).toBe(false);
});

test("/mcp enable --project of the user's own switched-off server -> it runs without a question, in a later session too", {
  tags: "thorough",
}, async () => {
  const own = live(["own"], {}, { enabled: false, lifecycle: "eager" });
  const pi = await turn({ trusted: true, mcp: { mcpServers: { own } } });
  expect(await pi.status()).toContain("own: disabled");
  const said = notices(await pi.rpc.command("/mcp enable own --project", PATIENCE_MS));
  expect(said.map(({ message }) => message)).toContain(`own is enabled in ${projectFile(pi.at)}.`);
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  expect(dialogsOf(pi.rpc)).toEqual([]);
  await pi.again();
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  expect(dialogsOf(pi.rpc)).toEqual([]);
  // The command covers only the entry that the user's own file had at that time.
  await pi.at.writeMcp({ mcpServers: { own: live(["other"], {}, { enabled: false }) } });
  expect((await pi.dialog()).title).toContain("live.mjs other");
});

describe("consent", () => {
  const trustOf = async (at: PiHome): Promise<{ server: string; decision: string }[]> => {
    const text = await readFile(join(at.agentDir, "mcp-trust.json"), "utf8").catch(() => "");
    return text === "" ? [] : (JSON.parse(text) as { consents: [] }).consents;
  };
  const project = (servers: Record<string, unknown>) => ({ mcpServers: servers });
  const TITLE = /^This project wants to run an MCP server\.\n/;

  test.each(
    family([
      ["Refuse", "refused"],
      ["Not now", "awaiting"],
    ]),
  )(
    "a model that writes .pi/mcp.json, the user says %s -> nothing is started; the user allows another server -> it runs, another command is asked for again",
    async (value, decision) => {
      const pi = await turn({ trusted: true, mcp: project({ s: live() }) });
      const record = join(pi.at.cwd, "record");
      const file = projectFile(pi.at);
      const write = (servers: Record<string, unknown>) =>
        call("write", { path: file, content: JSON.stringify(project(servers)) });
      // `/mcp` answers when the configuration has been read.
      await pi.status();
      const [written] = await pi.prompt(write({ evil: live(["evil"], { RECORD: record }) }));
      expect(written?.isError).toBe(false);
      const asked = await pi.dialog();
      expect(asked.title).toMatch(TITLE);
      expect(asked.title).toContain("live.mjs evil");
      expect(asked.title).toContain(file);
      expect(asked.options).toEqual(["Not now", "Refuse", "Allow"]);
      expect(await exists(record)).toBe(false);
      pi.answer(asked, { value });
      await expect.poll(() => trustOf(pi.at), { timeout: PATIENCE_MS }).toMatchObject([{ decision }]);
      const [searched] = await pi.prompt(searchFor("select:evil__work,s__work"));
      expect(searched?.text).toContain("No such tool: evil__work");
      expect(await trustOf(pi.at)).toMatchObject([{ server: "evil", decision }]);
      expect(await serversOf(pi.at)).toHaveLength(1);
      expect(dialogsOf(pi.rpc)).toHaveLength(1);

      for (const arg of ["one", "two"]) {
        const since = pi.rpc.events.length;
        await pi.prompt(write({ mine: live([arg]) }));
        const again = await pi.dialog(since);
        expect(again.title).toContain(`live.mjs ${arg}`);
        pi.answer(again, { value: "Allow" });
        await pi.notice(/^mcp\.json: .*mine \(/, since);
        if (arg === "one") await pi.prompt(searchFor("select:mine__work"));
        expect((await pi.ask("mine__work")).argv).toEqual([arg]);
      }
      await expect.poll(() => trustOf(pi.at), { timeout: PATIENCE_MS }).toHaveLength(3);
      expect(await exists(record)).toBe(false);
      expectClean(pi);
    },
  );

  test("a .pi/mcp.json that is written before the worker has read any file -> asked for", async () => {
    const record = (at: PiHome): string => join(at.cwd, "record");
    // Handlers run in turn, so the worker is still starting when this handler writes.
    const writer = (at: PiHome): string => `
      import { mkdirSync, writeFileSync } from "node:fs";
      export default (pi) => pi.on("session_start", () => {
        const evil = ${JSON.stringify(live(["evil"], { RECORD: record(at) }))};
        mkdirSync(".pi", { recursive: true });
        writeFileSync(".pi/mcp.json", JSON.stringify({ mcpServers: { evil } }));
      });`;
    const pi = await turn((at) => ({
      trusted: true,
      files: { "writer.mjs": writer(at) },
      settings: { extensions: ["-builtin:mcp", join(at.cwd, "writer.mjs")] },
    }));
    expect((await pi.dialog()).title).toContain("live.mjs evil");
    expect(await pi.status()).toContain("waits for your consent: evil: ");
    expect(await exists(record(pi.at))).toBe(false);
    expectClean(pi);
  });

  test(".mcp.json -> asked for although the project counts as trusted; Refuse and Allow are remembered, /mcp trust asks again; without the stored answer its direct tool is not declared", async () => {
    const file = (args: string[]) => project({ s: live(args, {}, { directTools: true }) });
    const pi = await turn({ files: { ".mcp.json": file([]) } });
    const asked = await pi.dialog();
    expect(asked.title).toMatch(TITLE);
    expect(await serversOf(pi.at)).toEqual([]);
    expect(await pi.status()).toContain("waits for your consent: s: ");
    pi.answer(asked, { value: "Refuse" });
    const refused = /^MCP server s is not started: it was refused;/;
    await pi.notice(refused);
    expect(await trustOf(pi.at)).toMatchObject([{ server: "s", decision: "refused" }]);
    expectClean(pi);

    await pi.again();
    await pi.notice(refused);
    expect(dialogsOf(pi.rpc)).toEqual([]);
    expect(await serversOf(pi.at)).toEqual([]);
    let since = pi.rpc.events.length;
    await pi.rpc.command("/mcp trust", PATIENCE_MS);
    pi.answer(await pi.dialog(since), { value: "Allow" });
    await pi.statusLine("MCP: 1 server ready · 1 tool", since);
    expect(await trustOf(pi.at)).toMatchObject([{ server: "s", decision: "allowed" }]);
    expect((await stat(join(pi.at.agentDir, "mcp-trust.json"))).mode & 0o777).toBe(0o600);
    expectClean(pi);

    await pi.again();
    await pi.prompt({ text: "ok" });
    expect(pi.scripted.requests[0]?.toolNames).toContain("s__work");
    expect((await pi.ask("s__work")).argv).toEqual([]);
    expect(dialogsOf(pi.rpc)).toEqual([]);

    await pi.again({ removed: [".pi/agent/mcp-trust.json"] });
    const anew = await pi.dialog();
    expect(anew.method).toBe("select");
    await pi.prompt({ text: "ok" });
    expect(pi.scripted.requests[0]?.toolNames).not.toContain("s__work");
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
    pi.answer(anew, { value: "Allow" });
    // Its tool is known, so the allowed server is not connected before a call.
    await expect
      .poll(() => trustOf(pi.at), { timeout: PATIENCE_MS })
      .toMatchObject([{ decision: "allowed" }]);
    since = pi.rpc.events.length;
    await pi.at.writeFile(".mcp.json", file(["other"]));
    expect((await pi.dialog(since)).title).toContain("live.mjs other");
    expectClean(pi);
  });
});
