/**
 * Owns: what a project's files do not get without the user: servers of his home, settings that write or widen, his
 * exclusions taken back, and his own disabled servers; on real files, without Pi.
 */
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import {
  answer,
  becomes,
  configOf,
  createHome,
  decisionsOf,
  type Home,
  open,
  put,
  server,
} from "./support.ts";

const positions = async (home: Home): Promise<string[]> => {
  const { running } = await open(home);
  return running.state.problems.map(
    ({ file, line, column, key, message }) =>
      `${file.slice(home.cwd.length + 1)}:${line}:${column}: ${key}: ${message}`,
  );
};

test("a model writes imports into .pi/mcp.json -> nothing is imported, the position is reported, at a later start too", async () => {
  const home = await createHome();
  const claude = dirname(home.cwd);
  vi.stubEnv("CLAUDE_CONFIG_DIR", claude);
  await put(join(claude, ".claude.json"), configOf({ danger: server(["danger"]) }));
  const pi = await open(home);
  const servers = { danger: { lifecycle: "keep-alive" }, own: server() };
  await put(home.projectPi, { imports: ["claude-code"], ...configOf(servers) });
  await becomes(pi.asked, ["own"]);
  expect(pi.running.state.problems).toMatchObject([
    {
      file: home.projectPi,
      line: 1,
      column: 12,
      key: "imports",
      message: "a project's file may not import",
      remedy: "Write imports into your own mcp.json.",
    },
    { message: "there is no server of this name in your own files to override" },
  ]);
  await answer(pi, "own", "allowed");
  expect(pi.runs()).toEqual(["own"]);
  await pi.running.close();
  expect((await open(home)).runs()).toEqual(["own"]);
});

test("files of other programs in the project folder -> each server is asked for, none runs before", async () => {
  const home = await createHome();
  await put(home.mcp, { imports: ["cursor", "vscode", "codex", "opencode"] });
  await put(join(home.cwd, ".cursor/mcp.json"), configOf({ cursor: server() }));
  await put(join(home.cwd, ".vscode/mcp.json"), { servers: { vscode: server() } });
  await put(join(home.cwd, ".codex/config.toml"), '[mcp_servers.codex]\ncommand = "x"\n');
  await put(join(home.cwd, "opencode.json"), { mcp: { opencode: { type: "local", command: ["x"] } } });
  const pi = await open(home);
  expect(pi.asked().sort()).toEqual(["codex", "cursor", "opencode", "vscode"]);
  expect(pi.runs()).toEqual([]);
});

test("settings of .mcp.json -> what writes files or widens is ignored, each reported with its position", async () => {
  const home = await createHome();
  const settings = { captureStats: { path: "/tmp/stats" }, outputGuard: false, proxyTool: true };
  await put(home.projectFile, `{"settings":\n${JSON.stringify(settings)}}`);
  expect(await positions(home)).toEqual([
    ".mcp.json:2:53: settings.outputGuard: a project's file may only make this stricter",
    ".mcp.json:2:71: settings.proxyTool: a project's file may not decide this: it changes the names under which your tools are called",
    ".mcp.json:2:17: settings.captureStats: a project's file may not decide this: it writes files",
  ]);
  const { running } = await open(home);
  expect(running.now.settings).toMatchObject({ captureStats: false, outputGuard: {}, proxyTool: false });
});

test(".mcp.json takes back the user's exclusions -> they hold; its own exclusions hold too", async () => {
  const home = await createHome();
  const rules = { excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } };
  await put(home.mcp, configOf({ db: server([], rules) }));
  const override = { excludeTools: [], toolExposure: { secret: "direct", other: "hidden" } };
  await writeFile(home.projectFile, JSON.stringify(configOf({ db: override }), null, 2));
  const reported = await positions(home);
  expect(reported).toEqual([
    expect.stringMatching(/^\.mcp\.json:4:23: mcpServers\.db\.excludeTools: a project's list adds to yours/),
    expect.stringMatching(/^\.mcp\.json:5:23: mcpServers\.db\.toolExposure: your own file hides these tools/),
  ]);
  const { running } = await open(home);
  expect(running.now.servers).toMatchObject([
    {
      toolExposure: { other: "hidden" },
      userRules: { excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } },
    },
  ]);
});

test(".pi/mcp.json enables what the user disables -> asked for at the start already, disabled until the answer", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server(["own"], { enabled: false }) }));
  await put(home.projectPi, configOf({ own: { enabled: true } }));
  const pi = await open(home);
  expect(pi.running.state.questions[0]?.question).toContain(
    `which ${home.mcp} switches off and ${home.projectPi} on`,
  );
  expect(pi.runs()).toEqual([]);
  expect(pi.running.now.servers).toMatchObject([{ name: "own", enabled: false }]);
});

/** What `/mcp enable own --project` does. */
async function enableInProject(
  home: Home,
  pi: Awaited<ReturnType<typeof open>>,
  text: unknown,
): Promise<void> {
  const own = pi.running.configured("own");
  if (!own) throw new Error("no such server");
  await pi.running.allowAsUser(own);
  await put(home.projectPi, text);
  await pi.running.written({ file: home.projectPi, text: JSON.stringify(text) });
}

test.each(["on", "ask"])(
  "hotReload %s, the user enables his own disabled server in the project -> it runs unasked, at a later start too; another command of it is asked for",
  async (hotReload) => {
    const home = await createHome();
    await put(home.mcp, configOf({ own: server(["own"], { enabled: false }) }, { hotReload }));
    const pi = await open(home);
    await enableInProject(home, pi, configOf({ own: { enabled: true } }));
    expect(pi.runs()).toEqual(["own"]);
    expect(pi.asked()).toEqual([]);
    expect(await decisionsOf(home)).toEqual(["own allowed"]);
    await pi.running.close();
    const again = await open(home);
    expect(again.runs()).toEqual(["own"]);
    await again.running.close();
    await put(home.mcp, configOf({ own: server(["other"], { enabled: false }) }, { hotReload }));
    const changed = await open(home);
    expect(changed.runs()).toEqual([]);
    expect(changed.asked()).toEqual(["own"]);
  },
);

test("a project's disabled server is enabled in its file -> still asked for", async () => {
  const home = await createHome();
  const pi = await open(home);
  await put(home.projectPi, configOf({ evil: server(["evil"], { enabled: false }) }));
  await becomes(() => pi.effects, ["mcp.json: + evil (disabled)"]);
  const text = configOf({ evil: server(["evil"], { enabled: true }) });
  await put(home.projectPi, text);
  await pi.running.written({ file: home.projectPi, text: JSON.stringify(text) });
  expect(pi.runs()).toEqual([]);
  expect(pi.asked()).toEqual(["evil"]);
});
