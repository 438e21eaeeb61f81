/**
 * Owns: npx commands with the real npm: the resolved program is the one that npx itself runs, and no npm process stays.
 * All tests share one folder as npm's cache, which is empty at first; each test has its own cache file and project. The
 * packages come from a registry on loopback, which has them as small as npm allows. `npm run test:long` takes them from
 * npm's own registry.
 */
import { spawn } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { NpxLaunch } from "../../workers/connection/npx/launch.ts";
import { resolveNpx } from "../../workers/connection/npx/npx.ts";
import { connect } from "../../workers/connection/transports/transports.ts";
import { forWholeFile } from "../support/cleanup.ts";
import { connectOptions } from "../support/http-server.ts";
import { ALL_ROWS, amount, repeats } from "../support/long.ts";
import { descendants, waitGone } from "../support/processes.ts";
import { withProxies } from "../support/proxies.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { MEMORY, startNpxRegistry } from "./npx-registry.ts";

/** 1: npm's own registry, with packages of many files and versions. */
const isReal = process.env.NPX_REAL_REGISTRY === "1";
const DAY_MS = 24 * 60 * 60 * 1_000;
const live = new AbortController().signal;

let root: string;
let registry: Record<string, string>;
let npmCache: string;
let cwd: string;
let cacheFile: string;
let neutralFolder: string;
let env: Record<string, string>;
let notes: string[];
let spawned: number[];
let exited: number[];
let count = 0;

beforeAll(async () => {
  root = await makeTempFolder("pmt-npx");
  npmCache = join(root, "npm-cache");
  registry = isReal ? {} : { npm_config_registry: (await forWholeFile(startNpxRegistry)).url };
});
afterAll(() => removeFolder(root));
beforeEach(async () => {
  const folder = join(root, `test-${++count}`);
  cwd = join(folder, "project");
  cacheFile = join(folder, "agent", "mcp-npx-cache.json");
  neutralFolder = join(folder, "agent", "mcp-npm");
  await mkdir(join(folder, "agent"), { recursive: true });
  await mkdir(cwd, { recursive: true });
  // The settings of the person who runs the tests are left out: `yes=false` there would refuse installs.
  env = { npm_config_cache: npmCache, npm_config_userconfig: join(root, "npmrc"), ...registry };
  notes = [];
  spawned = [];
  exited = [];
});

const environment = (): Record<string, string> =>
  ({ ...(isReal ? withProxies() : process.env), ...env }) as Record<string, string>;

interface Options {
  signal?: AbortSignal;
  now?: () => number;
  onSpawn?: (pid: number) => void;
  /** The folder in which npm runs for the user's own servers. Default: the project, as for a project's server. */
  neutral?: string | undefined;
}

const npx = (args: string[], { signal = live, now = Date.now, onSpawn, neutral }: Options = {}) =>
  resolveNpx(
    { command: "npx", args, env: environment(), cwd, neutral },
    {
      server: "x",
      cacheFile,
      signal,
      now,
      onNote: (note) => notes.push(note),
      onSpawn: (pid) => {
        spawned.push(pid);
        onSpawn?.(pid);
      },
      onExit: (pid) => exited.push(pid),
    },
  );

/** Path of the started file below `node_modules` in npm's cache. */
function fileOf(launch: NpxLaunch | undefined): string {
  const path = launch?.args[0] ?? "";
  expect(path.startsWith(join(npmCache, "_npx"))).toBe(true);
  return path.slice(join(npmCache, "_npx", "0123456789abcdef/node_modules/").length);
}

/** Starts the program and answers its output after its end. */
async function outputOf(command: string, args: string[], more: Record<string, string> = {}): Promise<string> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env, ...more } });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  return text;
}

/** Connects the server of the package, as the worker does for the user's own server, and ends it. */
async function connectServer(): Promise<void> {
  const entry = { command: "npx", args: ["-y", MEMORY], env };
  const options = connectOptions(entry, {
    cwd,
    npxCacheFile: cacheFile,
    onSpawn: (pid) => spawned.push(pid),
    onExit: (pid) => exited.push(pid),
    onNote: (note) => notes.push(note),
  });
  const connection = await connect(options);
  try {
    expect((await connection.listTools(live)).length).toBeGreaterThan(5);
    const running = await descendants(process.pid);
    const ours = running.filter(({ command }) => /npm|npx|mcp-server-memory/.test(command));
    expect(ours.map(({ pid, ppid }) => ({ pid, ppid }))).toEqual([
      { pid: connection.pid, ppid: process.pid },
    ]);
    expect(ours[0]?.command).toMatch(
      /^\S*\/node \S+\/_npx\/[0-9a-f]{16}\/node_modules\/\.bin\/mcp-server-memory$/,
    );
  } finally {
    await connection.close({ termMs: 250, killMs: 800 });
  }
  expect(exited).toEqual(spawned);
}

test("an empty npm cache, a server with the command npx -> installed, its process is node, and no npm process stays; npx itself starts the same path; then without npm", async () => {
  await connectServer();
  const launch = await npx(["-y", MEMORY, "an argument", "--", "-x"]);
  expect(notes).toEqual([]);
  expect(fileOf(launch)).toBe(".bin/mcp-server-memory");
  expect(launch?.args.slice(1)).toEqual(["an argument", "--", "-x"]);
  expect(exited).toEqual(spawned);

  const child = spawn("npx", ["-y", MEMORY, "an argument", "--", "-x"], {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
  });
  try {
    // The server reports on stderr that it runs.
    await new Promise((resolve) => child.stderr.on("data", (text) => /running/i.test(text) && resolve(0)));
    const server = (await descendants(child.pid ?? 0)).at(-1);
    const [program, ...rest] = server?.command.split(" ") ?? [];
    expect(program).toMatch(/(^|\/)node$/);
    expect(rest.join(" ")).toBe(launch?.args.join(" "));
  } finally {
    process.kill(-(child.pid ?? 0), "SIGKILL");
  }
  await secondResolutions(await npx(["-y", MEMORY]));
});

/** A second resolution runs no npm, for the user's own servers also in another project. */
async function secondResolutions(first: NpxLaunch | undefined): Promise<void> {
  // What the connection of the user's own server has found.
  const users = await npx(["-y", MEMORY], { neutral: neutralFolder });
  spawned = [];
  expect(await npx(["-y", MEMORY])).toEqual(first);
  expect(await npx(["-y", MEMORY], { neutral: neutralFolder })).toEqual(users);
  cwd = join(root, "another");
  await mkdir(cwd);
  expect((await npx(["-y", MEMORY], { neutral: neutralFolder }))?.args).toEqual(first?.args);
  expect(spawned).toEqual([]);
}

const modulesOf = (launch: NpxLaunch | undefined): string => join(launch?.args[0] ?? "", "..", "..");

async function versionOf(launch: NpxLaunch | undefined): Promise<string> {
  const manifest = await readFile(join(modulesOf(launch), "semver", "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** How many of the lines npx itself runs as well. A run of npx takes half a second of processor time. */
const COMPARED = repeats("NPX_COMPARED", amount(0, 1));

const LINES = [
  { line: "-y semver@7.7.2 1.2.3 -i minor", output: "1.3.0", version: /^7\.7\.2$/ },
  { line: "--package=semver@~7.6 semver 1.2.3", output: "1.2.3", version: /^7\.6\./ },
  { line: "-y semver@^6 1.2.3 2.0.0 -r ^2", output: "2.0.0", version: /^6\./ },
  { line: "semver@latest 3.2.1", output: "3.2.1", version: /^7\.\d+\.\d+$/ },
].slice(0, amount(2, 4));

test("lines of npx -> each program is in a version of the range or none, and the same as npx itself starts if that is compared", {
  tags: "thorough",
}, async () => {
  const launches = await Promise.all(LINES.map(({ line }) => npx(line.split(" "))));
  expect(notes).toEqual([]);
  for (const [row, { line, output, version }] of LINES.entries()) {
    const launch = launches[row];
    expect(fileOf(launch)).toBe(".bin/semver");
    expect(await versionOf(launch)).toMatch(version);
    const ours = await outputOf(launch?.command ?? "", launch?.args ?? [], launch?.env);
    expect({ line, output: ours.trim() }).toEqual({ line, output });
    if (row < COMPARED) expect(await outputOf("npx", line.split(" "))).toBe(ours);
  }
  if (!ALL_ROWS) return;

  // An installed version outside of the range is not used. A unit test of the tree proves that, too.
  const file = join(modulesOf(launches[2]), "semver", "package.json");
  const manifest = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  await writeFile(file, JSON.stringify({ ...manifest, version: "5.0.0" }));
  expect(await npx(["-y", "semver@^6"])).toBeUndefined();
  expect(notes).toEqual([expect.stringMatching(/semver 5\.0\.0 is installed, \^6 is wanted$/)]);
});

test("an exact version in npm's cache, by npm exec and by npx -> for 24 hours no npm, no install as long as the package is there", {
  tags: "thorough",
}, async () => {
  const exec = { command: "npm", args: ["exec", "--yes", "--", "semver@7.7.2", "v1.2.3"] };
  const options = {
    server: "x",
    cacheFile,
    signal: live,
    onNote: () => {},
    onSpawn: () => {},
    onExit: () => {},
  };
  const first = await resolveNpx({ ...exec, env: environment(), cwd, neutral: undefined }, options);
  expect(fileOf(first)).toBe(".bin/semver");
  const args = "-y -p semver@7.7.2 -- semver v1.2.3".split(" ");

  // A corrupt cache file: one run of npm, and the file is replaced.
  await writeFile(cacheFile, '{"version":1,"entries":{"x":');
  spawned = [];
  // npm is asked for its folders only: it cannot reach a registry.
  const reached = env;
  env = { ...env, npm_config_registry: "http://127.0.0.1:9/" };
  expect((await npx(args))?.args).toEqual(first?.args);
  expect(spawned).toHaveLength(1);
  expect(JSON.parse(await readFile(cacheFile, "utf8"))).toMatchObject({ version: 1 });
  spawned = [];
  expect((await npx(args))?.args).toEqual(first?.args);
  expect(spawned).toEqual([]);
  expect(await outputOf(first?.command ?? "", first?.args ?? [], first?.env)).toBe("1.2.3\n");

  // npm is asked again a day later.
  const later = Date.now() + DAY_MS + 60_000;
  for (let i = 0; i < 2; i++) expect((await npx(args, { now: () => later }))?.args).toEqual(first?.args);
  expect(spawned).toHaveLength(1);

  // A package was deleted: installed again.
  spawned = [];
  env = reached;
  await rm(modulesOf(first), { recursive: true });
  expect(await npx(args)).toEqual(first);
  expect(spawned).toHaveLength(2);

  // A binary was deleted but not its package, which npx does not repair: npx itself is started.
  await rm(first?.args[0] ?? "");
  expect(notes).toEqual([]);
  expect(await npx(args)).toBeUndefined();
  expect(notes).toEqual([expect.stringMatching(/is missing$/)]);
  await rm(modulesOf(first), { recursive: true });
});

test("resolutions at once -> one shared run that tells npm's folders, one shared install for each spec, none without -y if npm's settings refuse it, one sentence for a package that does not exist", {
  tags: "thorough",
}, async () => {
  await writeFile(join(cwd, ".npmrc"), "yes=false\n");
  const installing = Promise.all(Array.from({ length: 5 }, () => npx(["-y", "semver@7.7.1"])));
  const refused = npx(["semver@7.5.3"]);
  const missing = npx(["-y", "pi-mcp-threads-no-such-package@1.0.0"]);
  missing.catch(() => undefined);
  const launches = await installing;
  expect(await Promise.all(launches.map(versionOf))).toEqual(launches.map(() => "7.7.1"));
  expect(new Set(launches.map((launch) => launch?.args[0])).size).toBe(1);
  // The refused package: npx itself is started. npx could not install the one that does not exist either.
  expect(await refused).toBeUndefined();
  await expect(missing).rejects.toMatchObject({
    code: "connect_failed",
    message: expect.stringMatching(
      /^x cannot be started: npm's registry \S+ has no package pi-mcp-threads-no-such-package\.$/,
    ),
  });
  expect(notes).toEqual([expect.stringMatching(/npx canceled due to missing packages/)]);
  expect(spawned).toHaveLength(4);
});

test.each([
  ["is asked for its folders", 1],
  ["installs", 2],
])("an abort while npm %s -> npm's whole process group ends before the rejection", async (_title, runs) => {
  const aborting = new AbortController();
  const resolving = npx(["-y", `semver@7.3.${runs}`], {
    signal: aborting.signal,
    onSpawn: () => {
      if (spawned.length === runs) aborting.abort(new Error("stop"));
    },
  });
  await expect(resolving).rejects.toThrow("stop");
  expect(spawned).toHaveLength(runs);
  expect(exited).toEqual(spawned);
  expect(await waitGone(spawned, 0)).toEqual([]);
});

test("npm_config_package is set -> npx itself is started, with a note", async () => {
  env.npm_config_package = "semver";
  expect(await npx(["-y", "semver"])).toBeUndefined();
  expect(notes).toEqual([expect.stringMatching(/npm_config_package is set/)]);
});
