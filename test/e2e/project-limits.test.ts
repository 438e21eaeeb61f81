/**
 * Owns: tests of the limits of a project's files, which a model can write, in the real Pi. Without the user's consent the
 * files start no imported servers, write no files, undo no exclusion of the user, and switch on no server of the user.
 */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PiHome } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { dialogsOf, live, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, home, searchFor } from "./support.ts";

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
const project = (at: PiHome): string => join(at.cwd, ".pi", "mcp.json");

test("a model writes imports into .pi/mcp.json -> no imported server runs, a notice names the line; the same at a later start", async () => {
  const at = await home({ trusted: true, mcp: { mcpServers: {} } });
  const record = join(at.cwd, "record");
  const danger = live(["danger"], { RECORD: record });
  await writeFile(join(at.dir, ".claude.json"), JSON.stringify({ mcpServers: { danger } }));
  const pi = await open({ at });
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
  await pi.rpc.stop();
  const again = await open({ at });
  await again.statusLine("MCP 1/1 · 1 tool");
  expect(await exists(record)).toBe(false);
});

test("files of other programs in the project folder -> each server is asked for, no server runs before the answer", async () => {
  const at = await home({ mcp: { imports: ["cursor", "vscode", "codex", "opencode"] } });
  const record = join(at.cwd, "record");
  const entry = (name: string) => live([name], { RECORD: record }) as { command: string; args: string[] };
  await at.writeFile(".cursor/mcp.json", { mcpServers: { cursor: entry("cursor") } });
  await at.writeFile(".vscode/mcp.json", { servers: { vscode: entry("vscode") } });
  const { command, args } = entry("codex");
  const toml = `[mcp_servers.codex]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\nenv = { RECORD = ${JSON.stringify(record)} }\n`;
  await at.writeFile(".codex/config.toml", toml);
  const opencode = { type: "local", command: [command, ...args], environment: { RECORD: record } };
  await at.writeFile("opencode.json", { mcp: { opencode } });
  const pi = await open({ at });
  const status = await pi.status();
  for (const name of ["cursor", "vscode", "codex", "opencode"])
    expect(status).toContain(`waits for your consent: ${name}: `);
  await pi.prompt(searchFor("work"));
  expect(await exists(record)).toBe(false);
});

test("settings in the .mcp.json of a folder without an answer of the user -> no file is written, a notice names each setting and its line", async () => {
  const at = await home({ mcp: { mcpServers: { own: live([], {}, { lifecycle: "eager" }) } } });
  const stats = join(at.dir, "stats");
  const settings = { captureStats: { path: stats, flushDelayMs: 0 }, outputGuard: false, proxyTool: true };
  await at.writeFile(".mcp.json", `{"settings":\n${JSON.stringify(settings)}}`);
  const pi = await open({ at });
  await pi.notice(
    /\.mcp\.json:2:17: settings\.captureStats: a project's file may not decide this: it writes files\./,
  );
  await pi.notice(/\.mcp\.json:2:\d+: settings\.outputGuard: a project's file may only make this stricter\./);
  await pi.notice(/\.mcp\.json:2:\d+: settings\.proxyTool: a project's file may not decide this/);
  await pi.prompt(searchFor("select:own__work"));
  expect((await pi.ask("own__work")).argv).toEqual([]);
  // Statistics are written at the latest when Pi ends.
  await pi.rpc.stop();
  expect(await exists(stats)).toBe(false);
});

test(".mcp.json undoes the user's exclusions -> the exclusions hold, and so do the exclusions of .mcp.json", async () => {
  const env = { TOOLS: "drop_all,secret,other,work" };
  const rules = { lifecycle: "eager", excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } };
  const at = await home({ mcp: { mcpServers: { db: live([], env, rules) } } });
  const override = { excludeTools: [], toolExposure: { secret: "direct", other: "hidden" } };
  await at.writeFile(".mcp.json", { mcpServers: { db: override } });
  const pi = await open({ at });
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

test(".pi/mcp.json switches on a server that the user switched off -> asked for at the start", async () => {
  const own = live(["own"], {}, { enabled: false });
  const at = await home({ trusted: true, mcp: { mcpServers: { own } } });
  await at.writeFile(".pi/mcp.json", { mcpServers: { own: { enabled: true } } });
  const pi = await open({ at });
  const asked = await pi.dialog();
  expect(asked.title).toContain(`which ${at.mcpFile} switches off and ${project(at)} on`);
  pi.answer(asked, { value: "Not now" });
  expect(await pi.status()).toContain("own: disabled");
});

test("/mcp enable --project of the user's own switched-off server -> it runs without a question, at a later start too", async () => {
  const own = live(["own"], {}, { enabled: false, lifecycle: "eager" });
  const pi = await open({ trusted: true, mcp: { mcpServers: { own } } });
  expect(await pi.status()).toContain("own: disabled");
  const said = notices(await pi.rpc.command("/mcp enable own --project", PATIENCE_MS));
  expect(said.map(({ message }) => message)).toContain(`own is enabled in ${project(pi.at)}.`);
  await pi.statusLine("MCP 1/1 · 1 tool");
  expect(dialogsOf(pi.rpc)).toEqual([]);
  await pi.rpc.stop();
  const again = await open({ at: pi.at });
  await again.statusLine("MCP 1/1 · 1 tool");
  expect(dialogsOf(again.rpc)).toEqual([]);
  // The command covers only the entry that the user's own file had at that time.
  await again.at.writeMcp({ mcpServers: { own: live(["other"], {}, { enabled: false }) } });
  expect((await again.dialog()).title).toContain("live.mjs other");
});

test("/mcp enable --project of a server that the project defines -> the server is still asked for", async () => {
  const pi = await open({ trusted: true });
  await pi.status();
  const evil = { mcpServers: { evil: live(["evil"], {}, { enabled: false }) } };
  await pi.prompt(call("write", { path: project(pi.at), content: JSON.stringify(evil) }));
  await pi.notice(/\+ evil \(disabled\)/);
  await pi.rpc.command("/mcp enable evil --project", PATIENCE_MS);
  expect((await pi.dialog()).title).toContain("live.mjs evil");
  expect(await readFile(project(pi.at), "utf8")).toContain('"enabled":true');
});
