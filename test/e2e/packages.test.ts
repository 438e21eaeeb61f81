/**
 * Owns: tests of servers that a Pi package, an Agent Plugin and a Claude plugin bring, with the packed package in the real Pi: asked for once,
 * run with what their format promises, known to print mode, and asked for anew when what they start is another file.
 */
import { chmod, mkdir, readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, entryOf, home, model, searchFor } from "./support.ts";

const SCHEMAS = "https://agent-plugins.org/schemas/1.0.0";
const { command, args = [] } = live(["kept"]) as { command: string; args: string[] };

async function put(at: PiHome, path: string, content: unknown): Promise<string> {
  const file = join(at.dir, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

/** The program of the plugins: says where it runs and what it was given, then serves. */
const program = (root: string, data: string): string =>
  `#!/bin/sh\necho "$PWD $${root} $${data}" > "$${data}/seen"\nexec ${[command, ...args].join(" ")}\n`;

async function lay(at: PiHome): Promise<void> {
  await put(at, "kit/package.json", {
    name: "@acme/kit",
    pi: { mcp: "./servers.json", extensions: [] },
  });
  await put(at, "kit/servers.json", { mcpServers: { own: live(["kit"]) } });
  await put(at, "agent/plugin.json", { $schema: `${SCHEMAS}/plugin.schema.json`, name: "agent" });
  await put(at, "agent/mcp.json", {
    $schema: `${SCHEMAS}/mcp.schema.json`,
    mcpServers: { db: { type: "stdio", command: "./run" } },
  });
  await chmod(await put(at, "agent/run", program("PLUGIN_ROOT", "PLUGIN_DATA")), 0o755);
  await put(at, "claude/.mcp.json", { docs: { command: `\${CLAUDE_PLUGIN_ROOT}/run` } });
  await chmod(await put(at, "claude/run", program("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")), 0o755);
  await put(at, ".claude/settings.json", { enabledPlugins: { "docs@market": true } });
  await put(at, ".claude/plugins/installed_plugins.json", {
    version: 2,
    plugins: { "docs@market": [{ scope: "user", installPath: join(at.dir, "claude") }] },
  });
}

/** Allows what is asked, in the order of the questions. Resolves with the questions. */
async function allow(pi: Opened, count: number): Promise<string[]> {
  const titles: string[] = [];
  for (let since = 0; titles.length < count; since = pi.rpc.events.length) {
    const dialog = await pi.dialog(since);
    titles.push(dialog.title);
    // The next question follows this answer.
    since = pi.rpc.events.length;
    pi.answer(dialog, { value: "Allow" });
  }
  return titles;
}

test("each is asked for, runs as its format promises, and again in print mode; another file in its place is asked for anew", async () => {
  const at = await home({
    settings: { packages: ["../../kit"] },
    mcp: { imports: ["claude-plugins"], plugins: ["~/agent"] },
  });
  await lay(at);
  const packed = await entryOf("packed package");
  const pi = await open({ at, extensions: [packed] });
  const titles = await allow(pi, 3);
  expect(titles.map((title) => title.split("\n")[0])).toEqual(
    Array(3).fill("A package wants to run an MCP server."),
  );
  expect(titles.map((title) => title.split("\n")[1]?.split(":")[0])).toEqual([
    "acme_kit__own",
    "agent__db",
    "docs__docs",
  ]);
  await pi.statusLine("MCP: 3 servers ready · 3 tools");
  await pi.prompt(searchFor("select:acme_kit__own__work,agent__db__work,docs__docs__work"));
  expect((await pi.ask("acme_kit__own__work")).argv).toEqual(["kit"]);
  for (const [name, root, data, cwd] of [
    ["agent__db", "agent", /mcp-plugin-data\/agent-[0-9a-f]{8}$/, "agent"],
    ["docs__docs", "claude", /\.claude\/plugins\/data\/docs-market$/, "project"],
  ] as const) {
    expect((await pi.ask(`${name}__work`)).argv).toEqual(["kept"]);
    const status = await pi.status();
    expect(status).toContain(name);
    const folder = join(await realpath(at.dir), root);
    const seenIn = name === "agent__db" ? join(at.agentDir, "mcp-plugin-data") : join(at.dir, ".claude");
    const [ran, given, kept = ""] = (await readFile(await seenFile(seenIn), "utf8")).trim().split(" ");
    expect([ran, given]).toEqual([join(await realpath(at.dir), cwd), folder]);
    expect(kept).toMatch(data);
  }
  pi.rpc.kill("SIGTERM");
  await pi.rpc.exited;

  const scripted = await model([
    searchFor("select:agent__db__work"),
    call("agent__db__work", {}),
    { text: "ok" },
  ]);
  const run = await runPrint({
    home: at,
    model: scripted,
    extensions: packed,
    prompt: "go",
    timeoutMs: PATIENCE_MS,
  });
  expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" });
  const last = scripted.requests.at(-1);
  expect(last && toolResultTexts(last).at(-1)).toContain('"argv":["kept"]');

  await put(at, "agent/run", "#!/bin/sh\necho evil\n");
  const after = await model([searchFor("select:agent__db__work"), { text: "ok" }]);
  const refused = await runPrint({
    home: at,
    model: after,
    extensions: packed,
    prompt: "go",
    timeoutMs: PATIENCE_MS,
  });
  expect(refused.stderr).toBe("MCP server agent__db is not started: no one can be asked for consent here.\n");
});

/** The file `seen` somewhere below a folder. */
async function seenFile(folder: string): Promise<string> {
  const [name] = (await readdir(folder, { recursive: true })).filter((one) => one.endsWith("seen"));
  return join(folder, name ?? "none");
}

test("a package that an older Pi has installed globally -> Pi reads it there, and so do we", {
  tags: "thorough",
}, async () => {
  const at = await home({ settings: { packages: ["npm:acme-old"] } });
  const folder = "old/lib/node_modules/acme-old";
  await put(at, ".npmrc", `prefix=${join(at.dir, "old")}\n`);
  await put(at, `${folder}/package.json`, {
    name: "acme-old",
    version: "1.0.0",
    type: "module",
    pi: { mcp: "./servers.json", extensions: ["./own.js"] },
  });
  await put(at, `${folder}/own.js`, `export default (pi) => pi.registerCommand("old", { handler() {} });`);
  await put(at, `${folder}/servers.json`, { mcpServers: { own: live(["old"]) } });
  const pi = await open({ at });
  const { data } = await pi.rpc.request({ type: "get_commands" }, PATIENCE_MS);
  expect((data as { commands: { name: string }[] }).commands.map(({ name }) => name)).toContain("old");
  await allow(pi, 1);
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  await pi.prompt(searchFor("select:acme_old__own__work"));
  expect((await pi.ask("acme_old__own__work")).argv).toEqual(["old"]);
});
