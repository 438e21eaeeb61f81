/** Owns: how the packed command starts: help and version, an older Node, folders that are gone or cannot be made. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI, type Run, runCli } from "./support.ts";

let home: PiHome;
const cli = (args: readonly string[]): Promise<Run> => runCli(home, args);
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
});

test("help and version need no home and no configuration", async () => {
  const { version } = JSON.parse(await readFile(join(CLI, "..", "..", "package.json"), "utf8")) as {
    version: string;
  };
  expect(await cli(["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
  expect(JSON.parse((await cli(["--version", "--json"])).stdout)).toEqual({ version });
  const help = await cli(["--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(await cli([])).toMatchObject({ code: 0, stdout: help.stdout });
  expect((await cli(["help", "call"])).stdout).toContain(
    "Usage: pi-mcp-threads call <server> <tool> [key=value]…",
  );
});

test.skipIf(process.platform === "win32")(
  "the current folder was deleted -> a sentence and code 2",
  async () => {
    const script = 'mkdir gone && cd gone && rmdir ../gone && "$0" "$1" list; echo "code $?"';
    const run = promisify(execFile);
    const { stdout, stderr } = await run("sh", ["-c", script, process.execPath, CLI], {
      cwd: home.cwd,
      env: home.env(),
    });
    expect(stdout).toBe("code 2\n");
    expect(stderr).toMatch(/^pi-mcp-threads: The current folder no longer exists \(ENOENT\)\./);
  },
);

test("an older Node -> one sentence and code 7, before anything else is read", async () => {
  const old = "Object.defineProperty(process.versions, 'node', { value: '20.1.0' })";
  const run = await runCli(home, ["list"], {
    node: ["--import", `data:text/javascript,${encodeURIComponent(old)}`],
  });
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(
    /^pi-mcp-threads needs Node 22\.19 or later\. This is Node 20\.1\.0 \(.*\)\.\n$/,
  );
});

test("an agent folder with a tilde, which no shell has replaced, and with a slash at its end -> the one that Pi means", async () => {
  await home.writeMcp({ mcpServers: { known: { command: "never-started", enabled: false } } });
  const asUsual = await cli(["list"]);
  expect(asUsual.stdout).toContain("known");
  const name = `~/${relative(home.dir, home.agentDir)}/`;
  expect(await runCli(home, ["list"], { env: { PI_CODING_AGENT_DIR: name } })).toEqual(asUsual);
  expect(await readdir(home.cwd)).not.toContain("~");
});

test("an agent folder that is no folder's address -> a sentence and code 7", async () => {
  const run = await runCli(home, ["list"], { env: { PI_CODING_AGENT_DIR: "file:///%2f" } });
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(/^pi-mcp-threads: PI_CODING_AGENT_DIR names no folder: /);
});

test("an agent folder that cannot be made -> an error and an end, where Node's recursive mkdir would never end", async () => {
  const file = await home.writeFile("file", "");
  const folders = [join(file, "agent"), ...(process.platform === "linux" ? ["/proc/nope"] : [])];
  for (const folder of folders) {
    const run = await runCli(home, ["list"], { env: { PI_CODING_AGENT_DIR: folder } });
    expect(run).toMatchObject({ code: 7, stdout: "" });
    expect(run.stderr).toMatch(/^pi-mcp-threads: Pi's agent folder .* cannot be made/);
  }
});
