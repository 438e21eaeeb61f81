/**
 * Owns: tests of an installation as a user makes it, and of the name under which Pi then lists the extension. Pi makes
 * that name from the path of the file that it loads.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startRegistry } from "../support/npm-registry.ts";
import { ensurePi } from "../support/pi-host.ts";
import { type PiHome, startRpc } from "../support/pi-run.ts";
import { packedEntry, packedTarball } from "../support/run-package.ts";
import { openTerminal } from "../support/terminal.ts";
import { home, model, onCleanup, root } from "./support.ts";

interface CommandInfo {
  name: string;
  sourceInfo: { path: string; source: string };
}

/** Runs `pi <args>` to its end and resolves with its output. */
async function pi(at: PiHome, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { cli } = await ensurePi();
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [cli, ...args], { cwd: at.cwd, env: at.env(env) });
  return stdout;
}

/** Resolves with the names below "[Extensions]" of Pi's first screen. */
async function listedExtensions(at: PiHome): Promise<string[]> {
  const terminal = await openTerminal({ home: at, model: await model([]), columns: 100 });
  onCleanup(() => terminal.close());
  const screen = await terminal.until(/^\[Extensions\]$/m);
  const line = screen[screen.indexOf("[Extensions]") + 1] ?? "";
  return line.trim().split(/, /);
}

/** Resolves with what Pi tells of the source of `/mcp`. */
async function sourceOfMcp(at: PiHome): Promise<CommandInfo["sourceInfo"] | undefined> {
  const rpc = await startRpc({ home: at, model: await model([]) });
  onCleanup(() => rpc.kill("SIGKILL"));
  const { data } = await rpc.request({ type: "get_commands" });
  await rpc.stop();
  return (data as { commands: CommandInfo[] }).commands.find(({ name }) => name === "mcp")?.sourceInfo;
}

test("pi install npm:pi-mcp-threads -> Pi lists pi-mcp-threads", async () => {
  const at = await home({});
  const tarball = await readFile(await packedTarball());
  const { devDependencies, scripts, ...manifest } = JSON.parse(
    await readFile(join(root, "package.json"), "utf8"),
  );
  const registry = await startRegistry({ manifest, tarball });
  onCleanup(() => registry.close());

  await pi(at, ["install", "npm:pi-mcp-threads"], { npm_config_registry: registry.url });
  const folder = join(at.agentDir, "npm", "node_modules", "pi-mcp-threads");
  expect((await pi(at, ["list"])).split("\n").map((line) => line.trim())).toEqual(
    expect.arrayContaining(["npm:pi-mcp-threads", folder]),
  );
  expect(await listedExtensions(at)).toEqual(["pi-mcp-threads"]);
  expect(await sourceOfMcp(at)).toMatchObject({
    path: join(folder, "index.js"),
    source: "npm:pi-mcp-threads",
  });
});

test("pi install of the package's folder -> Pi lists pi-mcp-threads", async () => {
  const at = await home({});
  const folder = dirname(await packedEntry());
  await pi(at, ["install", folder]);
  expect(await listedExtensions(at)).toEqual(["pi-mcp-threads"]);
  expect((await sourceOfMcp(at))?.path).toBe(join(folder, "index.js"));
});
