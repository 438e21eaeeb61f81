/**
 * Owns: tests of the limits of a project's files, which a model can write, in the real Pi. Without the user's consent the
 * files start no imported servers, write no files, undo no exclusion of the user, and switch on no server of the user.
 */
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PiHome } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { dialogsOf, live, PATIENCE_MS } from "./rpc-support.ts";
import { call, searchFor } from "./support.ts";

const turn = inTurn();

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
const project = (at: PiHome): string => join(at.cwd, ".pi", "mcp.json");

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
  await pi.prompt(call("write", { path: project(at), content }));
  await pi.notice(
    /\.pi\/mcp\.json:1:12: imports: a project's file may not import\. Write imports into your own/,
  );
  // The other server of the file is asked for and runs, which proves that the file was applied.
  pi.answer(await pi.dialog(), { value: "Allow" });
  await pi.statusLine("MCP 1/1 · 1 tool");
  expect(await exists(record)).toBe(false);
  expect(dialogsOf(pi.rpc)).toHaveLength(1);
  await pi.again();
  await pi.statusLine("MCP 1/1 · 1 tool");
  expect(await exists(record)).toBe(false);
});

test("settings in the .mcp.json of a folder without an answer of the user -> no file is written, a notice names each setting and its line", async () => {
  const stats = (at: PiHome): string => join(at.dir, "stats");
  const settings = (at: PiHome) => ({
    captureStats: { path: stats(at), flushDelayMs: 0 },
    outputGuard: false,
    proxyTool: true,
  });
  const pi = await turn((at) => ({
    mcp: { mcpServers: { own: live([], {}, { lifecycle: "eager" }) } },
    files: { ".mcp.json": `{"settings":\n${JSON.stringify(settings(at))}}` },
  }));
  await pi.notice(
    /\.mcp\.json:2:17: settings\.captureStats: a project's file may not decide this: it writes files\./,
  );
  await pi.notice(/\.mcp\.json:2:\d+: settings\.outputGuard: a project's file may only make this stricter\./);
  await pi.notice(/\.mcp\.json:2:\d+: settings\.proxyTool: a project's file may not decide this/);
  await pi.prompt(searchFor("select:own__work"));
  expect((await pi.ask("own__work")).argv).toEqual([]);
  // Statistics are written at the latest when the session ends.
  await pi.again();
  expect(await exists(stats(pi.at))).toBe(false);
});

test(".mcp.json undoes the user's exclusions -> the exclusions hold, and so do the exclusions of .mcp.json", async () => {
  const env = { TOOLS: "drop_all,secret,other,work" };
  const rules = { lifecycle: "eager", excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } };
  const override = { excludeTools: [], toolExposure: { secret: "direct", other: "hidden" } };
  const pi = await turn({
    mcp: { mcpServers: { db: live([], env, rules) } },
    files: { ".mcp.json": { mcpServers: { db: override } } },
  });
  await pi.notice(/\.mcp\.json:4:23: mcpServers\.db\.excludeTools: a project's list adds to yours/);
  await pi.notice(/\.mcp\.json:5:23: mcpServers\.db\.toolExposure: your own file hides these tools/);
  const [found] = await pi.prompt(searchFor("select:db__work,db__drop_all,db__secret,db__other"));
  for (const tool of ["drop_all", "secret", "other"]) {
    expect(found?.text).toContain(`No such tool: db__${tool}.`);
    const [end] = await pi.prompt(call(`db__${tool}`, {}));
    expect(end?.isError).toBe(true);
  }
  expect((await pi.ask("db__work")).argv).toEqual([]);
});

test("/mcp enable --project of the user's own switched-off server -> it runs without a question, in a later session too", async () => {
  const own = live(["own"], {}, { enabled: false, lifecycle: "eager" });
  const pi = await turn({ trusted: true, mcp: { mcpServers: { own } } });
  expect(await pi.status()).toContain("own: disabled");
  const said = notices(await pi.rpc.command("/mcp enable own --project", PATIENCE_MS));
  expect(said.map(({ message }) => message)).toContain(`own is enabled in ${project(pi.at)}.`);
  await pi.statusLine("MCP 1/1 · 1 tool");
  expect(dialogsOf(pi.rpc)).toEqual([]);
  await pi.again();
  await pi.statusLine("MCP 1/1 · 1 tool");
  expect(dialogsOf(pi.rpc)).toEqual([]);
  // The command covers only the entry that the user's own file had at that time.
  await pi.at.writeMcp({ mcpServers: { own: live(["other"], {}, { enabled: false }) } });
  expect((await pi.dialog()).title).toContain("live.mjs other");
});
