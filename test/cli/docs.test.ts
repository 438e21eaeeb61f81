/**
 * Owns: the commands for a shell that the documentation shows, each run by a shell as it stands there, in a home with the
 * servers that the pages name. Those that need a network or another program: test/support/doc-commands.ts.
 * @module-tag thorough
 */
import { spawnSync } from "node:child_process";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { commandsFor } from "../support/doc-commands.ts";
import { hasSandbox } from "../support/has-program.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI, filesystem, fixtureServer } from "./support.ts";

const COMMANDS = await commandsFor("test/cli/docs.test.ts");
const OWN = COMMANDS.filter((command) => command.startsWith("pi-mcp-threads "));
const OTHERS = COMMANDS.filter((command) => !OWN.includes(command));

/** A server with the skill that the page names. */
function skillsServer(): Record<string, unknown> {
  const { args = [], ...entry } = fixtureServer("skills.mjs");
  return { ...entry, args: [...(args as string[]), join(import.meta.dirname, "..", "fixtures", "skills")] };
}

let made: Promise<PiHome> | undefined;
/** A home whose servers have the names of the pages, with the command where `pi install` puts it. */
const madeHome = (): Promise<PiHome> =>
  (made ??= forWholeFile(async () => {
    const home = await makeHome({ files: { "README.md": "# A project\n" } });
    await home.writeMcp({
      mcpServers: { files: filesystem(home.cwd), context7: fixtureServer("shows.mjs"), docs: skillsServer() },
    });
    const bin = join(home.agentDir, "npm", "node_modules", ".bin");
    await mkdir(bin, { recursive: true });
    await symlink(CLI, join(bin, "pi-mcp-threads"));
    return home;
  }));

/** Runs the line in bash. `known`: the shell finds the command already. */
async function inBash(line: string, { known = true } = {}) {
  const home = await madeHome();
  const env = home.env();
  const bin = join(home.agentDir, "npm", "node_modules", ".bin");
  const path = known ? `${bin}${delimiter}${env.PATH}` : env.PATH;
  const options = { cwd: home.cwd, env: { ...env, PATH: path }, encoding: "utf8", timeout: 100_000 } as const;
  return spawnSync("bash", ["--norc", "-c", line], options);
}

test("the pages show commands of each kind", () => {
  expect(OWN.length).toBeGreaterThan(8);
  expect(OTHERS.map((line) => line.split(" ", 1)[0]).toSorted()).toEqual(["cd", "eval", "export"]);
});

const isSandboxed = hasSandbox();

test.each(OWN)("%s -> done", async (line) => {
  const { status, stdout, stderr } = await inBash(line);
  if (line.includes("--sandbox") && !isSandboxed) {
    expect({ status, stderr }).toMatchObject({ status: 3, stderr: expect.stringContaining("bubblewrap") });
    return;
  }
  expect({ status, stderr }).toMatchObject({ status: 0 });
  // `hub stop` ends nothing here, and says so.
  expect(`${stdout}${stderr}`).not.toBe("");
});

test("the line for PATH -> the shell finds the command; the completion is there", async () => {
  const [way = ""] = OTHERS.filter((line) => line.startsWith("export "));
  const [completion = ""] = OTHERS.filter((line) => line.startsWith("eval "));
  const lines = [way, "pi-mcp-threads --version", completion, "complete -p pi-mcp-threads"];
  const { status, stdout } = await inBash(lines.join("\n"), { known: false });
  expect({ status, stdout }).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n.*_pi_mcp_threads/),
  });
});

test("the line for an uninstall -> of all that is written, only the files of a person and of Pi stay", async () => {
  const home = await madeHome();
  const [line = ""] = OTHERS.filter((one) => one.startsWith("cd "));
  const written = (line.match(/mcp-[\w.-]+/g) ?? []).map((name) => name.replace(/\.log$/, ".log.1"));
  expect(written.length).toBeGreaterThan(10);
  for (const name of [...written, "mcp-threads.log", "mcp-auth.json", "mcp-keys"]) {
    await writeFile(join(home.agentDir, name), "x").catch((error: NodeJS.ErrnoException) => {
      // An earlier command has made the folder.
      if (error.code !== "EISDIR") throw error;
    });
  }
  const { status, stderr } = await inBash(line);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const left = (await readdir(home.agentDir)).filter((name) => name.startsWith("mcp"));
  expect(left.toSorted()).toEqual(["mcp-auth.json", "mcp-keys", "mcp.json"]);
});
