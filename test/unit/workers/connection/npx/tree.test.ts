/** Owns: which installed package npx would take, tested on folders that the tests make. */

import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, test } from "vitest";
import {
  isWanted,
  type NpxRequest,
  parseNpxCommand,
  parseSpec,
} from "../../../../../workers/connection/npx/command.ts";
import { neutralFolder, runnerOf } from "../../../../../workers/connection/npx/launch.ts";
import { createTaskSharing, readNpxEntry, writeNpxEntry } from "../../../../../workers/connection/npx/npx.ts";
import {
  cacheFolderName,
  chooseBin,
  chooseTree,
  locate,
  readProject,
  toManifest,
} from "../../../../../workers/connection/npx/tree.ts";
import { tempFolder } from "../../../temp-folder.ts";

const specOf = (raw: string) => {
  const spec = parseSpec(raw);
  if (!spec) throw new Error(`${raw} is no spec`);
  return spec;
};

test.each([
  ["p", "p", "range"],
  ["@s/p", "@s/p", "range"],
  ["p@1.2.3", "p", "version"],
  ["p@v1.2.3-rc.1", "p", "version"],
  ["@s/p@1.x", "@s/p", "range"],
  ["p@>=1 <2 || 3", "p", "range"],
  ["p@latest", "p", "tag"],
  ["@s/p@next", "@s/p", "tag"],
])("parseSpec: %s -> %s, %s", (raw, name, kind) => {
  expect(parseSpec(raw)).toMatchObject({ raw, name, kind });
});

test.each(["p@npm:q", "p@https://h/x.tgz", "p@file:x", "p@a b", "p@\ud800", "p/q", "p.tgz"])(
  "parseSpec: %j, which no registry has -> nothing",
  (raw) => {
    expect(parseSpec(raw)).toBeUndefined();
  },
);

test.each([
  ["p", "0.0.1-beta", true],
  ["p@latest", "9.9.9", true],
  ["p@1.2.3", "1.2.3", true],
  ["p@1.2.3", "1.2.4", false],
  ["p@^1.2", "1.9.0", true],
  ["p@^1.2", "2.0.0", false],
  ["p@^1.2", "1.3.0-rc.1", false],
  ["p@>=1 <2 || 3", "3.1.0", true],
])("isWanted: %s with %s installed -> %s", (raw, version, expected) => {
  expect(isWanted(specOf(raw), version)).toBe(expected);
});

test.each([
  ["p", "cli.js", "p > cli.js"],
  ["@s/p", "./cli.js", "p > cli.js"],
  ["@s/p", { other: "cli.js" }, "other > cli.js"],
  ["@s/p", { a: "a.js", p: "p.js" }, "p > p.js"],
  ["p", { a: "same.js", b: "same.js" }, "a > same.js"],
  ["p", { a: "a.js", b: "b.js" }, undefined],
  ["p", {}, undefined],
  ["p", undefined, undefined],
  ["p", 7, undefined],
  ["p", { p: 7 }, undefined],
  ["p", { constructor: "a.js", b: "b.js" }, undefined],
  ["p", { "../../p": "../../../evil.js" }, "p > evil.js"],
  ["p", { "..": "a.js" }, undefined],
])("chooseBin: package %s with bin %j -> %s", (name, bin, expected) => {
  const manifest = toManifest({ name, version: "1.0.0", bin });
  const chosen = manifest && chooseBin(manifest);
  expect(chosen === undefined ? undefined : `${chosen} > ${manifest?.bin[chosen]}`).toBe(expected);
});

test.each([
  ["a.js", "#!/usr/bin/env node", "node"],
  ["a", "#!/usr/bin/env node", "node"],
  [
    "a.ts",
    "#!/usr/bin/env -S node --no-warnings --max-old-space-size=64",
    "node --no-warnings --max-old-space-size=64",
  ],
  ["a.js", "import 'x';", "node"],
  ["a.mjs", "", "node"],
  ["A.CJS", "", "node"],
  ["a.js", "#!/usr/bin/env bun", "itself"],
  ["a.js", "#!/usr/bin/env -S node -r 'x y'", "itself"],
  ["a.js", "#!/opt/node/bin/node", "itself"],
  ["a", "#!/bin/sh", "itself"],
  ["a", "\x7fELF", "itself"],
])("runnerOf: %s with first line %j -> %s", (file, line, expected) => {
  const runner = runnerOf(file, line);
  expect(runner.kind === "node" ? ["node", ...runner.flags].join(" ") : "itself").toBe(expected);
});

test("cacheFolderName is the hash that npm's own folders have, whatever the order", () => {
  expect(cacheFolderName([specOf("@modelcontextprotocol/server-memory")])).toBe("15b07286cbcc3329");
  expect(cacheFolderName([specOf("b"), specOf("a@1")])).toBe(cacheFolderName([specOf("a@1"), specOf("b")]));
});

const FILE = "#!/usr/bin/env node\n";

function requestOf(line: string): NpxRequest {
  const parsed = parseNpxCommand("npx", line.split(" "));
  if (parsed.kind !== "npx") throw new Error(`${line} is not read`);
  return parsed.request;
}

async function put(file: string, content: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
}

async function install(
  modules: string,
  {
    name,
    version,
    bins,
    binFolder = join(modules, ".bin"),
  }: {
    name: string;
    version: string;
    bins: string[];
    binFolder?: string;
  },
): Promise<void> {
  const bin = Object.fromEntries(bins.map((command) => [command, `${command}.js`]));
  await put(join(modules, name, "package.json"), { name, version, bin });
  await mkdir(binFolder, { recursive: true });
  for (const command of bins) {
    const file = join(modules, name, `${command}.js`);
    await put(file, FILE);
    await rm(join(binFolder, command), { force: true });
    await symlink(relative(binFolder, file), join(binFolder, command));
  }
}

interface World {
  root: string;
  cwd: string;
  facts: { cacheDir: string; globalPrefix: string };
  /** `project p.js`, or the reason. */
  answer(line: string): Promise<string>;
  installCached(line: string, of: { name: string; version: string; bins: string[] }): Promise<void>;
}

async function world(): Promise<World> {
  const root = await tempFolder();
  const cwd = join(root, "work", "project");
  await put(join(cwd, "package.json"), { name: "project" });
  const facts = { cacheDir: join(root, "cache"), globalPrefix: join(root, "global") };
  return {
    root,
    cwd,
    facts,
    async answer(line) {
      const request = requestOf(line);
      const project = await readProject(cwd);
      if ("reason" in project) return project.reason;
      const tree = await chooseTree(request, project, facts);
      if ("reason" in tree) return tree.reason;
      const binary = await locate(tree, request);
      if ("reason" in binary) return binary.reason;
      return `${tree.kind} ${relative(tree.modules, binary.file)}`;
    },
    async installCached(line, of) {
      const folder = cacheFolderName(requestOf(line).packages);
      await install(join(facts.cacheDir, "_npx", folder, "node_modules"), of);
    },
  };
}

test("a package in npm's cache -> found by the hash of the written packages", async () => {
  const { answer, installCached } = await world();
  await installCached("@s/p@^1", { name: "@s/p", version: "1.4.0", bins: ["p"] });
  expect(await answer("@s/p@^1")).toBe("cache @s/p/p.js");
  expect(await answer("@s/p")).toBe("@s/p is not installed");
});

test("a range without the installed version -> not taken", async () => {
  const { answer, installCached } = await world();
  await installCached("p@^2", { name: "p", version: "1.4.0", bins: ["p"] });
  expect(await answer("p@^2")).toBe("p 1.4.0 is installed, ^2 is wanted");
});

test("--package -> the command of any package that offers it", async () => {
  const { answer, installCached } = await world();
  const line = "-p p -p q@1 tool";
  await installCached(line, { name: "p", version: "1.0.0", bins: ["p", "other"] });
  await installCached(line, { name: "q", version: "1.0.0", bins: ["q", "tool"] });
  expect(await answer(line)).toBe("cache q/tool.js");
  expect(await answer("-p p -p q@1 node")).toMatch(/no package named offers the command node/);
});

test("a command whose link leads to another package -> left to npx", async () => {
  const { answer, installCached } = await world();
  await installCached("p", { name: "p", version: "1.0.0", bins: ["p"] });
  await installCached("p", { name: "dependency", version: "1.0.0", bins: ["p"] });
  expect(await answer("p")).toMatch(/is another package's command/);
});

test("a link without a file -> left to npx", async () => {
  const { answer, installCached, facts } = await world();
  await installCached("p", { name: "p", version: "1.0.0", bins: ["p"] });
  await rm(join(facts.cacheDir, "_npx", cacheFolderName(requestOf("p").packages), "node_modules/p/p.js"));
  expect(await answer("p")).toMatch(/is missing/);
});

test("a package of the project -> comes first if its version is wanted", async () => {
  const { answer, installCached, cwd } = await world();
  for (const line of ["@s/p", "@s/p@^1", "@s/p@^2"]) {
    await installCached(line, { name: "@s/p", version: "2.0.0", bins: ["p"] });
  }
  await install(join(cwd, "node_modules"), { name: "@s/p", version: "1.0.0", bins: ["p"] });
  expect(await answer("@s/p")).toBe("project @s/p/p.js");
  expect(await answer("@s/p@^1")).toBe("project @s/p/p.js");
  expect(await answer("@s/p@^2")).toMatch(/another @s\/p is in/);
  expect(await answer("@s/p@latest")).toMatch(/another @s\/p is in/);
  expect(await answer("-p @s/p p")).toBe("the project has its own @s/p");
});

test("a command with the name of the package but of another package -> left to npx", async () => {
  const { answer, cwd } = await world();
  await install(join(cwd, "node_modules"), { name: "p", version: "1.0.0", bins: ["tool"] });
  expect(await answer("p")).toBe("project p/tool.js");
  await install(join(cwd, "node_modules"), { name: "q", version: "1.0.0", bins: ["p"] });
  expect(await answer("p")).toBe("p is another package's command");
});

test("a package in a folder above the project -> left to npx", async () => {
  const { answer, root } = await world();
  await install(join(root, "node_modules"), { name: "p", version: "1.0.0", bins: ["p"] });
  expect(await answer("p")).toMatch(/has its own p$/);
});

test("a global package -> comes before npm's cache, but not with --package", async () => {
  const { answer, installCached, facts } = await world();
  for (const line of ["p", "-p p p"]) await installCached(line, { name: "p", version: "2.0.0", bins: ["p"] });
  await install(join(facts.globalPrefix, "lib", "node_modules"), {
    name: "p",
    version: "1.0.0",
    bins: ["p"],
    binFolder: join(facts.globalPrefix, "bin"),
  });
  expect(await answer("p")).toBe("global p/p.js");
  expect(await answer("p@2")).toBe("another p is installed globally");
  expect(await answer("-p p p")).toBe("cache p/p.js");
});

test.each([
  ["a command of the project's own package", { name: "p", bin: "cli.js" }, /itself has a command p/],
  ["scripts around npx", { scripts: { prenpx: "true" } }, /scripts for npx/],
  ["a folder of commands", { directories: { bin: "./bin" } }, /folder of commands/],
])("%s -> left to npx", async (_title, manifest, reason) => {
  const { answer, cwd } = await world();
  await put(join(cwd, "package.json"), manifest);
  expect(await answer("p")).toMatch(reason);
});

test("a workspace -> left to npx; its root is not", async () => {
  const { answer, root, cwd } = await world();
  await put(join(root, "work", "package.json"), { workspaces: ["*"] });
  expect(await answer("p")).toMatch(/may be a workspace/);
  await rm(join(root, "work", "package.json"));
  await put(join(cwd, "package.json"), { workspaces: ["packages/*"] });
  expect(await answer("p")).toBe("p is not installed");
});

const FILES = ["package.json", "shell.sh"];

let folder: string;
beforeEach(async () => {
  folder = join(await tempFolder(), "mcp-npm");
});

const contents = (): Promise<string[]> =>
  Promise.all(FILES.map((name) => readFile(join(folder, name), "utf8")));

test("a new folder -> a package of its own and a shell, for the user alone", async () => {
  expect(await neutralFolder(folder)).toEqual({ path: folder, shell: join(folder, "shell.sh") });
  expect((await readdir(folder)).toSorted()).toEqual(FILES);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, "package.json"))).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, "shell.sh"))).mode & 0o777).toBe(0o700);
});

test("made before -> its files are not written again", async () => {
  await neutralFolder(folder);
  const inodes = (): Promise<number[]> =>
    Promise.all(FILES.map(async (name) => (await stat(join(folder, name))).ino));
  const before = await inodes();
  await neutralFolder(folder);
  expect(await inodes()).toEqual(before);
});

describe("a file that is not ours lies there -> replaced", () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ["another text", (path) => writeFile(path, '{"workspaces":["/evil"]}')],
    ["a text of 2 MiB", (path) => writeFile(path, "x".repeat(2 ** 21))],
    ["a named pipe that nobody writes to", (path) => promisify(execFile)("mkfifo", [path])],
  ])("%s", async (_name, put) => {
    await neutralFolder(folder);
    const ours = await contents();
    for (const name of FILES) {
      await rm(join(folder, name));
      await put(join(folder, name));
    }
    expect((await neutralFolder(folder)).shell).toBe(join(folder, "shell.sh"));
    expect(await contents()).toEqual(ours);
    expect((await readdir(folder)).toSorted()).toEqual(FILES);
  });
});

test("a folder where a file should be -> npm runs in the home folder, without a shell of ours", async () => {
  await mkdir(join(folder, "package.json"), { recursive: true });
  expect(await neutralFolder(folder)).toEqual({ path: homedir(), shell: undefined });
});

const DAY_MS = 24 * 60 * 60 * 1_000;
const NOW = 1_700_000_000_000;
const entry = (checkedAt: number) => ({
  packages: ["p"],
  from: "cache" as const,
  cacheDir: "/c",
  globalPrefix: "/g",
  node: "/n/node",
  checkedAt,
});

test("an entry -> valid for 24 hours, and not if it is from the future", async () => {
  const file = join(await tempFolder(), "a.json");
  await writeNpxEntry(file, "k", entry(NOW));
  expect(await readNpxEntry(file, "k", NOW + DAY_MS - 1)).toEqual(entry(NOW));
  expect(await readNpxEntry(file, "k", NOW + DAY_MS)).toBeUndefined();
  expect(await readNpxEntry(file, "k", NOW - DAY_MS)).toBeUndefined();
  expect(await readNpxEntry(file, "toString", NOW)).toBeUndefined();
});

test.each([
  ["nothing", undefined],
  ["an empty file", ""],
  ["half a file", '{"version":1,"entries":{"k":{"checked'],
  ["binary", "\0\x01\xff"],
  ["another version", JSON.stringify({ version: 2, entries: { k: entry(NOW) } })],
  ["another shape", "[]"],
  ["entries of another shape", JSON.stringify({ version: 1, entries: { k: { checkedAt: NOW } } })],
  ["a relative folder", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), cacheDir: "x" } } })],
  ["a relative node", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), node: "node" } } })],
  ["no node", JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), node: undefined } } })],
  [
    "a time that is no number",
    JSON.stringify({ version: 1, entries: { k: { ...entry(NOW), checkedAt: "1" } } }),
  ],
])("%s -> read as empty, replaced by the next write", async (_title, content) => {
  const file = join(await tempFolder(), "a.json");
  if (content !== undefined) await writeFile(file, content);
  expect(await readNpxEntry(file, "k", NOW)).toBeUndefined();
  await writeNpxEntry(file, "k", entry(NOW));
  expect(await readNpxEntry(file, "k", NOW)).toEqual(entry(NOW));
});

test("a folder in place of the file -> read as empty, and the write rejects", async () => {
  const file = join(await tempFolder(), "a.json");
  await mkdir(file);
  expect(await readNpxEntry(file, "k", NOW)).toBeUndefined();
  await expect(writeNpxEntry(file, "k", entry(NOW))).rejects.toThrow();
  expect(await readdir(dirname(file))).toEqual(["a.json"]);
});

test("parallel writes of one process -> all kept; entries older than 24 hours are dropped", async () => {
  const file = join(await tempFolder(), "a.json");
  await writeNpxEntry(file, "old", entry(NOW - DAY_MS));
  const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
  await Promise.all(keys.map((key) => writeNpxEntry(file, key, entry(NOW))));
  const written = JSON.parse(await readFile(file, "utf8")) as { entries: Record<string, unknown> };
  expect(Object.keys(written.entries).sort()).toEqual(keys.sort());
  expect(await readdir(dirname(file))).toEqual(["a.json"]);
});

/** A task that ends when it is told to, or some turns after its abort. */
function controlled() {
  const done = Promise.withResolvers<string>();
  const state = { runs: 0, ended: false };
  const task = async (signal: AbortSignal): Promise<string> => {
    state.runs++;
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => aborted.reject(signal.reason));
    try {
      return await Promise.race([done.promise, aborted.promise]);
    } finally {
      await new Promise((resolve) => setImmediate(resolve));
      state.ended = true;
    }
  };
  return { done, state, task };
}

const live = new AbortController().signal;

test("callers with one key -> one run; another key -> its own run", async () => {
  const share = createTaskSharing<string>();
  const { done, state, task } = controlled();
  const calls = [share("a", live, task), share("a", live, task), share("b", live, task)];
  done.resolve("x");
  expect(await Promise.all(calls)).toEqual(["x", "x", "x"]);
  expect(state.runs).toBe(2);
  await share("a", live, task);
  expect(state.runs).toBe(3);
});

test("one caller aborts -> the run goes on for the others", async () => {
  const share = createTaskSharing<string>();
  const { done, state, task } = controlled();
  const leaving = new AbortController();
  const left = share("a", leaving.signal, task);
  const stays = share("a", live, task);
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(state.ended).toBe(false);
  done.resolve("x");
  expect(await stays).toBe("x");
});

test("the last caller aborts -> the run ends before the caller rejects", async () => {
  const share = createTaskSharing<string>();
  const { state, task } = controlled();
  const controllers = [new AbortController(), new AbortController()];
  const calls = controllers.map(({ signal }) => share("a", signal, task));
  for (const controller of controllers) controller.abort(new Error("gone"));
  const results = await Promise.allSettled(calls);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(state.ended).toBe(true);
});

test("a run fails -> all its callers fail, and the next caller starts another run", async () => {
  const share = createTaskSharing<string>();
  const fail = () => Promise.reject(new Error("no"));
  const calls = [share("a", live, fail), share("a", live, fail)];
  for (const call of calls) await expect(call).rejects.toThrow("no");
  expect(await share("a", live, () => Promise.resolve("x"))).toBe("x");
});
