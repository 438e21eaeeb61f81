/**
 * Owns: servers of the user's own and of a project, started in a clone that holds a trap for each way in which a
 * folder could decide what is started. Real npm, real processes.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { Connection } from "../../workers/connection/client.ts";
import { type Origin, parseEntry } from "../../workers/connection/config/definition.ts";
import { resolveTarget } from "../../workers/connection/config/resolve.ts";
import { connect } from "../../workers/connection/connect.ts";
import { neutralFolder } from "../../workers/connection/npx/neutral-folder.ts";
import { type NpxLaunch, resolveNpx } from "../../workers/connection/npx/resolve.ts";
import {
  FILESYSTEM,
  filesystemSpec,
  fillHostileClone,
  fillNpmCache,
  whatRan,
} from "../support/hostile-clone.ts";
import { descendants } from "../support/processes.ts";
import { fixtures } from "./support.ts";

const live = new AbortController().signal;
const server = join(fixtures, "servers", "noisy.mjs");
const python = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status === 0;

let root: string;
let clone: string;
let agentDir: string;
let npmCache: string;
let ran: string;
let notes: string[];
let open: Connection[];
/** With it each of these searches the current folder, in which Pi runs. */
let PATH: string;

beforeEach(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "pmt-clone-"));
  clone = join(root, "clone");
  agentDir = join(root, "agent");
  npmCache = join(root, "npm-cache");
  ran = join(root, "ran");
  notes = [];
  open = [];
  PATH = `:.:node_modules/.bin:${process.env.PATH}`;
  await mkdir(agentDir);
  await fillHostileClone(clone, ran);
});
afterEach(async () => {
  for (const connection of open) await connection.close({ termMs: 250, killMs: 800 });
  await rm(root, { recursive: true, force: true });
});

/** npm's own settings, of the user: nothing of whoever runs the tests. */
const npmSettings = (): Record<string, string> => ({
  npm_config_cache: npmCache,
  npm_config_userconfig: join(root, "npmrc"),
});

type Entry = Record<string, unknown>;

function definitionOf(entry: Entry, origin: Origin) {
  const { definition } = parseEntry("s", entry, { file: "mcp.json", origin });
  if (!definition) throw new Error("the entry is wrong");
  return definition;
}

/** Connects as the worker does, in the clone. */
async function start(entry: Entry, origin: Origin): Promise<Connection> {
  const connection = await connect({
    definition: definitionOf(entry, origin),
    cwd: clone,
    npxCacheFile: join(agentDir, "mcp-npx-cache.json"),
    signal: live,
    maxMessageBytes: LIMITS.messageBytes,
    onSpawn: () => {},
    onExit: () => {},
    onNote: (note) => notes.push(note),
    onClosed: () => {},
    onListChanged: () => {},
    onLogMessage: () => {},
    redact: (text) => text,
    onSecrets: () => {},
  });
  open.push(connection);
  return connection;
}

const listFolder = async (connection: Connection, path: string): Promise<string> => {
  const call = { tool: "list_directory", args: { path }, callId: "1", signal: live, timeoutMs: 20_000 };
  return JSON.stringify((await connection.callTool({ ...call, onProgress: () => {} })).content);
};

/** Runs until it ends by itself. */
async function outputOf({ command, args, env, cwd }: NpxLaunch): Promise<string> {
  const child = spawn(command, args, { cwd, env });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  return text;
}

describe("npx", () => {
  test("the user's own server: npm's cache decides, and the server runs in the clone", async () => {
    await fillNpmCache(npmCache);
    const entry = {
      command: "npx",
      args: ["-y", await filesystemSpec(), "."],
      env: { PATH, ...npmSettings() },
    };
    const connection = await start(entry, "user");
    expect(await listFolder(connection, ".")).toContain("clone-tool");
    expect(await whatRan(ran)).toBe("");
    // One note, on PATH: npm itself is not its parent.
    expect(notes).toEqual([expect.stringMatching(/PATH.*: "", "\.", "node_modules\/\.bin"$/)]);
    const ours = (await descendants(process.pid)).filter(({ pid }) => pid === connection.pid);
    expect(ours[0]?.command).toContain(join(npmCache, "_npx"));
  });

  test("a node that is chosen by the folder it runs in: the clone chooses none", async () => {
    await fillNpmCache(npmCache);
    // As version managers do it, with a file such as .tool-versions.
    const bin = join(root, "bin");
    await mkdir(bin);
    const chooses = `#!/bin/sh\nif [ -e .node-choice ]; then exec ./sh.sh; fi\nexec "${process.execPath}" "$@"\n`;
    await writeFile(join(bin, "node"), chooses, { mode: 0o755 });
    await writeFile(join(clone, ".node-choice"), "");
    const env = { PATH: `${bin}:${process.env.PATH}`, ...npmSettings() };
    const connection = await start(
      { command: "npx", args: ["-y", await filesystemSpec(), "."], env },
      "user",
    );
    expect(await listFolder(connection, ".")).toContain("clone-tool");
    expect(await whatRan(ran)).toBe("");
  });

  test("the server of the project: the project's own package runs", async () => {
    // What the project itself may set is its own affair; npm reads none of it for a package that lies there.
    for (const name of [".npmrc", "package.json", "node_modules/.bin/node", "node_modules/.bin/sh"]) {
      await rm(join(clone, name));
    }
    await writeFile(join(clone, "package.json"), "{}");
    const bin = join(clone, "node_modules/.bin/mcp-server-filesystem");
    await rm(bin);
    spawnSync("ln", ["-s", "../@modelcontextprotocol/server-filesystem/dist/index.js", bin]);
    const entry = { command: "npx", args: ["-y", FILESYSTEM], env: npmSettings() };
    await expect(start(entry, "project-pi")).rejects.toThrow(/exited with code 0/);
    expect(await whatRan(ran)).toBe("the clone's package\n");
  });

  test("what npm found in the project is not taken for the user's own server", async () => {
    // A relative folder in the user's settings is another one in each project. What is not there cannot be installed.
    const settings = {
      ...npmSettings(),
      npm_config_cache: "./npm-cache",
      npm_config_registry: "http://127.0.0.1:9/",
      npm_config_fetch_retries: "0",
    };
    const env = { ...process.env, ...settings } as Record<string, string>;
    await rm(clone, { recursive: true });
    await mkdir(clone);
    await writeFile(join(clone, "package.json"), "{}");
    await fillNpmCache(join(clone, "npm-cache"));
    const args = ["-y", await filesystemSpec()];
    let asked = 0;
    const options = {
      cacheFile: join(agentDir, "mcp-npx-cache.json"),
      signal: live,
      onNote: (note: string) => notes.push(note),
      onSpawn: () => void asked++,
      onExit: () => {},
    };
    const projects = await resolveNpx({ command: "npx", args, env, cwd: clone, neutral: undefined }, options);
    expect(projects?.args[0]).toContain(clone);
    expect(asked).toBe(1);

    const elsewhere = join(root, "elsewhere");
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, "package.json"), "{}");
    const neutral = join(agentDir, "mcp-npm");
    for (const place of [neutral, undefined]) {
      asked = 0;
      const target = { command: "npx", args, env, cwd: elsewhere, neutral: place };
      expect(JSON.stringify(await resolveNpx(target, options)) ?? "").not.toContain(clone);
      expect(asked).toBeGreaterThan(0);
    }
  });

  test("what only npm can tell: npm runs beside the clone, the server in it", async () => {
    const call = `"${process.execPath}" "${server}"`;
    const entry = { command: "npx", args: ["--no-audit", "-c", call], env: { PATH, ...npmSettings() } };
    const connection = await start(entry, "user");
    expect((await connection.listTools(live)).length).toBe(1);
    expect(notes).toContainEqual(expect.stringMatching(/^is started through npm itself: only npm knows/));
    expect(await whatRan(ran)).toBe("");
  });

  test("what npm starts by itself has the clone as its folder and nothing of ours in its environment", async () => {
    const lines = "pwd; env; command -v node";
    const env = { ...process.env, ...npmSettings() } as Record<string, string>;
    const target = {
      command: "npx",
      args: ["-c", lines],
      env,
      cwd: clone,
      neutral: join(agentDir, "mcp-npm"),
    };
    const options = {
      cacheFile: "/none",
      signal: live,
      onNote: () => {},
      onSpawn: () => {},
      onExit: () => {},
    };
    const launch = await resolveNpx(target, options);
    if (!launch) throw new Error("nothing to start");
    const output = await outputOf(launch);
    expect(output).toMatch(new RegExp(`^${clone}$`, "m"));
    expect(output).toContain(`INIT_CWD=${clone}\n`);
    expect(output).not.toMatch(/PI_MCP_NPX|script_shell/);
    expect(output.trim().split("\n").at(-1)).not.toContain(clone);
    expect(await whatRan(ran)).toBe("");
  });

  test("npm's shell leaves the scripts of packages in their own folder", async () => {
    const { path, shell = "" } = await neutralFolder(join(agentDir, "mcp-npm"));
    const run = (event: string, own = ""): string =>
      spawnSync(shell, ["-c", "pwd; echo $0; echo [$npm_config_script_shell$PI_MCP_NPX_FOLDER]"], {
        cwd: path,
        encoding: "utf8",
        env: {
          PATH: process.env.PATH,
          npm_lifecycle_event: event,
          npm_config_script_shell: shell,
          PI_MCP_NPX_FOLDER: clone,
          PI_MCP_NPX_SHELL: own,
        },
      }).stdout;
    expect(run("npx")).toBe(`${clone}\n/bin/sh\n[]\n`);
    expect(run("postinstall")).toBe(`${path}\n/bin/sh\n[]\n`);
    expect(run("npx", "/usr/bin/sh")).toBe(`${clone}\n/usr/bin/sh\n[/usr/bin/sh]\n`);
    expect(JSON.parse(await readFile(join(path, "package.json"), "utf8"))).toMatchObject({ private: true });
  });

  test("the folder of npm cannot be made: npm runs in the home folder", async () => {
    await writeFile(join(agentDir, "mcp-npm"), "");
    const { path, shell } = await neutralFolder(join(agentDir, "mcp-npm"));
    expect([path, shell]).toEqual([await realpath(homedir()), undefined]);
  });
});

describe("a program by its name", () => {
  test.each<[string, Origin, string]>([
    ["the user's own server", "user", ""],
    ["another program's server", "import", ""],
    ["an extension's server", "extension", ""],
    ["the project's server", "project-pi", "clone-tool: \n"],
  ])("%s, a program that lies in the clone only", async (_title, origin, expected) => {
    const entry = { command: "clone-tool", env: { PATH } };
    await expect(start(entry, origin)).rejects.toMatchObject({
      code: expected === "" ? "spawn_failed" : "connect_failed",
    });
    expect(await whatRan(ran)).toBe(expected);
  });

  test.each<Origin>(["user", "project-pi"])(
    "%s: a command with a separator is taken as it is written",
    async (origin) => {
      await expect(start({ command: "./clone-tool", args: ["x"] }, origin)).rejects.toThrow(
        /exited with code 1/,
      );
      expect(await whatRan(ran)).toBe("clone-tool: x\n");
    },
  );

  test("the user's own server finds no program of the clone later either", async () => {
    const entry = { command: "sh", args: ["-c", `clone-tool; exec node "${server}"`], env: { PATH } };
    expect((await (await start(entry, "user")).listTools(live)).length).toBe(1);
    expect(await whatRan(ran)).toBe("");
  });

  test.skipIf(!python).each<[Origin, string]>([
    ["user", ""],
    ["project-pi", "clone_module.py\n"],
  ])(
    "%s: python -m looks for a module in the clone only where the project says so",
    async (origin, expected) => {
      for (const name of ["json", "asyncio", "keyring"]) await rm(join(clone, `${name}.py`));
      const entry = { command: "python3", args: ["-u", "-m", "clone_module"] };
      await expect(start(entry, origin)).rejects.toThrow();
      expect(await whatRan(ran)).toBe(expected);
    },
  );
});

describe("a !command", () => {
  async function resolved(value: string, origin: Origin): Promise<string | undefined> {
    const target = await resolveTarget(definitionOf({ command: "x", env: { VALUE: value } }, origin), {
      env: { ...process.env, PATH },
      home: root,
      cwd: clone,
      signal: live,
      onSpawn: () => {},
      onExit: () => {},
    });
    return target.kind === "stdio" ? target.env.VALUE : undefined;
  }

  test("the user's own runs in the home folder and finds nothing of the clone", async () => {
    expect(await resolved("!pwd", "user")).toBe(root);
    expect(await resolved("!node -p 1; git --version >&2; echo $PATH", "user")).toBe(
      `1\n${process.env.PATH}`,
    );
    await expect(resolved("!clone-tool", "user")).rejects.toThrow(/ended with code 127/);
    expect(await whatRan(ran)).toBe("");
  });

  test.skipIf(!python)("the user's own python takes no module of the clone", async () => {
    expect(await resolved("!python3 -c 'import json; print(json.dumps([1]))'", "user")).toBe("[1]");
    expect(await whatRan(ran)).toBe("");
  });

  test("the project's runs in the project", async () => {
    expect(await resolved("!pwd", "project-pi")).toBe(clone);
    await expect(resolved("!clone-tool", "project-pi")).rejects.toThrow(/ended with code 1\./);
    expect(await whatRan(ran)).toBe("clone-tool: \n");
  });
});
