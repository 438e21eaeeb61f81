/**
 * Owns: `npx` servers from the user's own configuration and from a project, started in a clone that holds a trap for
 * each way in which a folder could decide which program starts. npm and the processes are real.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Connection } from "../../workers/connection/mcp/connection.ts";
import { type NpxLaunch, neutralFolder } from "../../workers/connection/npx/launch.ts";
import { resolveNpx } from "../../workers/connection/npx/npx.ts";
import { filesystemSpec, fillNpmCache, whatRan } from "../support/hostile-clone.ts";
import { family } from "../support/long.ts";
import { descendants } from "../support/processes.ts";
import { type ClonePlace, hostilePlace } from "./clone-support.ts";
import { fixtures } from "./support.ts";

const live = new AbortController().signal;
const server = join(fixtures, "servers", "noisy.mjs");

let at: ClonePlace;
beforeEach(async () => {
  at = await hostilePlace();
});

const listFolder = async (connection: Connection, path: string): Promise<string> => {
  const call = { tool: "list_directory", args: { path }, callId: "1", signal: live, timeoutMs: 20_000 };
  return JSON.stringify((await connection.callTool({ ...call, onProgress: () => {} })).content);
};

/** Starts the program and answers its output after its end. */
async function outputOf({ command, args, env, cwd }: NpxLaunch): Promise<string> {
  const child = spawn(command, args, { cwd, env });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  return text;
}

/** Puts first on the PATH a `node` whose version the current folder chooses, as version managers do. */
async function nodeByFolder(): Promise<string> {
  const bin = join(at.root, "bin");
  await mkdir(bin);
  const chooses = `#!/bin/sh\nif [ -e .node-choice ]; then exec ./sh.sh; fi\nexec "${process.execPath}" "$@"\n`;
  await writeFile(join(bin, "node"), chooses, { mode: 0o755 });
  await writeFile(join(at.clone, ".node-choice"), "");
  return bin;
}

// Both traps are in one clone; under ALL_ROWS each is alone, too.
test.each(
  family([
    { inPath: true, byFolder: true },
    { inPath: true, byFolder: false },
    { inPath: false, byFolder: true },
  ]),
)(
  "the user's own server, with the clone in the PATH: $inPath, a `node` that the clone chooses: $byFolder -> npm's cache decides which program starts, and the server runs in the clone",
  async ({ inPath, byFolder }) => {
    await fillNpmCache(at.npmCache);
    const folders = [inPath ? ":.:node_modules/.bin" : "", byFolder ? await nodeByFolder() : ""];
    const PATH = [...folders.filter((folder) => folder !== ""), process.env.PATH].join(":");
    const env = { PATH, ...at.npmSettings };
    const entry = { command: "npx", args: ["-y", await filesystemSpec(), "."], env };
    const connection = await at.start(entry, "user");
    expect(await listFolder(connection, ".")).toContain("clone-tool");
    expect(await whatRan(at.ran)).toBe("");
    // The only note is about PATH: the server was not started through npm itself.
    const told = expect.stringMatching(/PATH.*: "", "\.", "node_modules\/\.bin"$/);
    expect(at.notes).toEqual(inPath ? [told] : []);
    const ours = (await descendants(process.pid)).filter(({ pid }) => pid === connection.pid);
    expect(ours[0]?.command).toContain(join(at.npmCache, "_npx"));
  },
);

test.each(["project-file", "project-pi"] as const)(
  "a server of the project (%s) -> the published package runs, as the question says, and nothing of the clone",
  async (origin) => {
    await fillNpmCache(at.npmCache);
    const entry = { command: "npx", args: ["-y", await filesystemSpec(), "."], env: at.npmSettings };
    expect(await listFolder(await at.start(entry, origin), ".")).toContain("clone-tool");
    expect(await whatRan(at.ran)).toBe("");
  },
);

test("a server of the project that names the path of its own package -> that one runs", async () => {
  const bin = "node_modules/.bin/mcp-server-filesystem";
  await rm(join(at.clone, bin));
  await symlink("../@modelcontextprotocol/server-filesystem/dist/index.js", join(at.clone, bin));
  await expect(at.start({ command: bin }, "project-pi")).rejects.toThrow(/exited with code 0/);
  expect(await whatRan(at.ran)).toBe("the clone's package\n");
});

test("npm finds a package in the project -> not used for the user's own server", async () => {
  // A relative folder in the user's settings means another folder in each project. No registry can be reached.
  const settings = {
    ...at.npmSettings,
    npm_config_cache: "./npm-cache",
    npm_config_registry: "http://127.0.0.1:9/",
    npm_config_fetch_retries: "0",
  };
  const env = { ...process.env, ...settings } as Record<string, string>;
  await rm(at.clone, { recursive: true });
  await mkdir(at.clone);
  await writeFile(join(at.clone, "package.json"), "{}");
  await fillNpmCache(join(at.clone, "npm-cache"));
  const args = ["-y", await filesystemSpec()];
  let asked = 0;
  const options = {
    server: "x",
    cacheFile: join(at.agentDir, "mcp-npx-cache.json"),
    signal: live,
    onNote: (note: string) => at.notes.push(note),
    onSpawn: () => void asked++,
    onExit: () => {},
  };
  const projects = await resolveNpx(
    { command: "npx", args, env, cwd: at.clone, neutral: undefined },
    options,
  );
  expect(projects?.args[0]).toContain(at.clone);
  expect(asked).toBe(1);

  const elsewhere = join(at.root, "elsewhere");
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, "package.json"), "{}");
  const neutral = join(at.agentDir, "mcp-npm");
  for (const place of [neutral, undefined]) {
    asked = 0;
    await fillNpmCache(join(place ?? elsewhere, "npm-cache"));
    const target = { command: "npx", args, env, cwd: elsewhere, neutral: place };
    expect((await resolveNpx(target, options))?.args[0]).toContain(join(place ?? elsewhere, "npm-cache"));
    expect(asked).toBe(1);
  }
});

test("arguments that only npm understands -> npm runs outside the clone, the server runs in the clone", async () => {
  const call = `"${process.execPath}" "${server}"`;
  const entry = {
    command: "npx",
    args: ["--no-audit", "-c", call],
    env: { PATH: at.PATH, ...at.npmSettings },
  };
  const connection = await at.start(entry, "user");
  expect((await connection.listTools(live)).length).toBe(1);
  expect(at.notes).toContainEqual(expect.stringMatching(/^is started through npm itself: only npm knows/));
  expect(await whatRan(at.ran)).toBe("");
});

test("a command that npm starts -> runs in the clone, without this package's variables in its environment", async () => {
  const lines = "pwd; env; command -v node";
  const env = { ...process.env, ...at.npmSettings } as Record<string, string>;
  const target = {
    command: "npx",
    args: ["-c", lines],
    env,
    cwd: at.clone,
    neutral: join(at.agentDir, "mcp-npm"),
  };
  const options = {
    server: "x",
    cacheFile: "/none",
    signal: live,
    onNote: () => {},
    onSpawn: () => {},
    onExit: () => {},
  };
  const launch = await resolveNpx(target, options);
  if (!launch) throw new Error("nothing to start");
  const output = await outputOf(launch);
  expect(output).toMatch(new RegExp(`^${at.clone}$`, "m"));
  expect(output).toContain(`INIT_CWD=${at.clone}\n`);
  expect(output).not.toMatch(/PI_MCP_NPX|script_shell/);
  expect(output.trim().split("\n").at(-1)).not.toContain(at.clone);
  expect(await whatRan(at.ran)).toBe("");
});

test("a package's script -> npm's shell runs it in the package's own folder", async () => {
  const { path, shell = "" } = await neutralFolder(join(at.agentDir, "mcp-npm"));
  const run = (event: string, own = ""): string =>
    spawnSync(shell, ["-c", "pwd; echo $0; echo [$npm_config_script_shell$PI_MCP_NPX_FOLDER]"], {
      cwd: path,
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        npm_lifecycle_event: event,
        npm_config_script_shell: shell,
        PI_MCP_NPX_FOLDER: at.clone,
        PI_MCP_NPX_SHELL: own,
      },
    }).stdout;
  expect(run("npx")).toBe(`${at.clone}\n/bin/sh\n[]\n`);
  expect(run("postinstall")).toBe(`${path}\n/bin/sh\n[]\n`);
  const own = join(at.root, "own-shell");
  await symlink("/bin/sh", own);
  expect(run("npx", own)).toBe(`${at.clone}\n${own}\n[${own}]\n`);
  expect(JSON.parse(await readFile(join(path, "package.json"), "utf8"))).toMatchObject({ private: true });
});

test("npm's neutral folder cannot be made -> npm runs in the home folder", async () => {
  await writeFile(join(at.agentDir, "mcp-npm"), "");
  const { path, shell } = await neutralFolder(join(at.agentDir, "mcp-npm"));
  expect([path, shell]).toEqual([await realpath(homedir()), undefined]);
});
