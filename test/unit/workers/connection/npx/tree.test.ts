/** Owns: which installed package npx would take, tested on folders that the tests make. */
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { type NpxRequest, parseNpxCommand } from "../../../../../workers/connection/npx/command.ts";
import {
  cacheFolderName,
  chooseTree,
  locate,
  readProject,
} from "../../../../../workers/connection/npx/tree.ts";
import { tempFolder } from "../../../temp-folder.ts";

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
