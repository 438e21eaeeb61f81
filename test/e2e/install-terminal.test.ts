/**
 * Owns: tests of an installation as a user makes it, and of the name under which Pi then lists the extension. Pi makes
 * that name from the path of the file that it loads.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { family } from "../support/long.ts";
import { startRegistry } from "../support/npm-registry.ts";
import { ensurePi } from "../support/pi-host.ts";
import type { PiHome } from "../support/pi-run.ts";
import { packedEntry, packedTarball } from "../support/run-package.ts";
import { openTerminal } from "../support/terminal.ts";
import { home, model, onCleanup, root } from "./support.ts";

interface SourceInfo {
  path: string;
  source: string;
}

/** Runs `pi <args>` to its end and resolves with its output. */
async function pi(at: PiHome, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { cli } = await ensurePi();
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [cli, ...args], { cwd: at.cwd, env: at.env(env) });
  return stdout;
}

/** An extension that writes down what Pi tells of the source of `/mcp`. */
const TELLS_SOURCE = `
import { writeFileSync } from "node:fs";
import { join } from "node:path";
export default (pi) => pi.on("session_start", () => {
  const mcp = pi.getCommands().find(({ name }) => name === "mcp");
  writeFileSync(join(import.meta.dirname, "source.json"), JSON.stringify(mcp?.sourceInfo ?? {}));
});`;

/** Resolves with the names below "[Extensions]" of Pi's first screen, and with the source of `/mcp`. */
async function listed(at: PiHome): Promise<{ extensions: string[]; source: SourceInfo }> {
  const extension = join(at.tmpDir, "tells-source.mjs");
  await writeFile(extension, TELLS_SOURCE);
  const terminal = await openTerminal({ home: at, model: await model([]), extension, columns: 100 });
  onCleanup(() => terminal.close());
  const screen = await terminal.until(/^\[Extensions\]$/m);
  const line = screen[screen.indexOf("[Extensions]") + 1] ?? "";
  const names = line.trim().split(/, /);
  const extensions = names.filter((name) => !name.includes("tells-source"));
  expect(extensions).toHaveLength(names.length - 1);
  return { extensions, source: JSON.parse(await readFile(join(at.tmpDir, "source.json"), "utf8")) };
}

async function fromRegistry(at: PiHome): Promise<SourceInfo> {
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
  return { path: join(folder, "index.js"), source: "npm:pi-mcp-threads" };
}

/** As docs/getting-started.md says: afterwards neither the settings nor the folder has it. */
async function remove(at: PiHome): Promise<void> {
  await pi(at, ["remove", "npm:pi-mcp-threads"]);
  expect(await pi(at, ["list"])).not.toContain("pi-mcp-threads");
  expect(existsSync(join(at.agentDir, "npm", "node_modules", "pi-mcp-threads"))).toBe(false);
}

async function fromFolder(at: PiHome): Promise<Partial<SourceInfo>> {
  const folder = dirname(await packedEntry());
  await pi(at, ["install", folder]);
  return { path: join(folder, "index.js") };
}

// Pi makes both names from the package's folder in the same way.
test.each(
  family<[string, (at: PiHome) => Promise<Partial<SourceInfo>>]>([
    ["npm:pi-mcp-threads", fromRegistry],
    ["of the package's folder", fromFolder],
  ]),
)("pi install %s -> Pi lists pi-mcp-threads", async (_what, install) => {
  const at = await home({});
  const expected = await install(at);
  const { extensions, source } = await listed(at);
  expect(extensions).toEqual(["pi-mcp-threads"]);
  expect(source).toMatchObject(expected);
  if (install === fromRegistry) await remove(at);
});
