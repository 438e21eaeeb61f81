/**
 * Owns: a clone that holds a program or setting for each way in which a folder could decide which program starts, and
 * an npm cache that holds one package of node_modules, so that npx needs no registry.
 * Must not: start anything.
 * Called by: tests that prove which programs of such a clone run.
 */
import { chmod, mkdir, readFile, realpath, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseSpec } from "../../workers/connection/npx/command.ts";
import { cacheFolderName } from "../../workers/connection/npx/tree.ts";

const root = join(import.meta.dirname, "..", "..");

export const FILESYSTEM = "@modelcontextprotocol/server-filesystem";
const FILESYSTEM_BIN = "mcp-server-filesystem";
const PACKAGE = join(root, "node_modules", FILESYSTEM);

/** Names of programs that a search could find in the clone. */
const PROGRAMS = ["node", "npm", "npx", "sh", "git", "env", "python3", FILESYSTEM_BIN, "clone-tool"];

async function put(file: string, text: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, mode);
}

/** The package with the version that is installed in this checkout: `name@version`. */
export async function filesystemSpec(): Promise<string> {
  const manifest = JSON.parse(await readFile(join(PACKAGE, "package.json"), "utf8")) as { version: string };
  return `${FILESYSTEM}@${manifest.version}`;
}

/** Fills npm's cache as npx does; a link there leads to the package in `node_modules` of this checkout. */
export async function fillNpmCache(cache: string): Promise<void> {
  const spec = parseSpec(await filesystemSpec());
  if (!spec) throw new Error("no spec");
  const modules = join(cache, "_npx", cacheFolderName([spec]), "node_modules");
  await put(join(modules, ".package-lock.json"), "{}");
  await mkdir(join(modules, ".bin"));
  await mkdir(join(modules, dirname(FILESYSTEM)), { recursive: true });
  await symlink(await realpath(PACKAGE), join(modules, FILESYSTEM));
  await symlink(join("..", FILESYSTEM, "dist/index.js"), join(modules, ".bin", FILESYSTEM_BIN));
}

/** Names of the clone's programs that ran, one per line; empty if none ran. */
export const whatRan = (ran: string): Promise<string> => readFile(ran, "utf8").catch(() => "");

/**
 * Fills the folder of a clone. Each program of the clone that runs writes its name to the file `ran`. The program
 * `clone-tool` exists nowhere else.
 */
export async function fillHostileClone(clone: string, ran: string): Promise<void> {
  const shell = (name: string): string => `#!/bin/sh\necho "${name}: $*" >> "${ran}"\nexit 1\n`;
  const script = (name: string): string =>
    `require("node:fs").appendFileSync(${JSON.stringify(ran)}, ${JSON.stringify(`${name}\n`)});\n`;
  for (const name of PROGRAMS) {
    await put(join(clone, name), shell(name), 0o755);
    await put(join(clone, "node_modules/.bin", name), shell(`node_modules/.bin/${name}`), 0o755);
  }
  const spec = await filesystemSpec();
  const version = spec.slice(spec.lastIndexOf("@") + 1);
  const manifest = { name: FILESYSTEM, version, bin: { [FILESYSTEM_BIN]: "dist/index.js" } };
  const own = join(clone, "node_modules", FILESYSTEM);
  await put(join(own, "package.json"), JSON.stringify(manifest));
  await put(join(own, "dist/index.js"), `#!/usr/bin/env node\n${script("the clone's package")}`, 0o755);
  await put(join(clone, "sh.sh"), shell("script-shell"), 0o755);
  await put(join(clone, "evil.cjs"), script("node-options"));
  const settings = [
    "script-shell=./sh.sh",
    `node-options=--require=${join(clone, "evil.cjs")}`,
    "registry=http://127.0.0.1:9/",
    "cache=./npm-cache",
    "prefix=./global",
    "userconfig=./npmrc",
  ];
  await put(join(clone, ".npmrc"), `${settings.join("\n")}\n`);
  const scripts = { prenpx: "./sh.sh", npx: "./sh.sh", postnpx: "./sh.sh" };
  await put(join(clone, "package.json"), JSON.stringify({ name: "clone", version: "1.0.0", scripts }));
  for (const name of ["json", "keyring", "asyncio", "clone_module"]) {
    await put(join(clone, `${name}.py`), `open(${JSON.stringify(ran)}, "a").write("${name}.py\\n")\n`);
  }
}
