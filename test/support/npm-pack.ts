/**
 * Owns: running `npm pack`, checking a tarball's integrity and unpacking it.
 * Must not: install anything, run package scripts or write outside the folders it is given.
 * Called by: pi-host.ts (the real Pi) and package-under-node-modules.ts (this package as published).
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { withProxies } from "./proxies.ts";
import { removeFolder } from "./temp-folder.ts";

const PACK_TIMEOUT_MS = 180_000;
const STDERR_TAIL_CHARS = 2_000;

export interface PackOptions {
  /** The package to pack as `name@version`; without it, npm packs the package in `cwd`. */
  spec?: string;
  /** The folder in which npm runs. For a `name@version` this is the destination, so that npm touches no project. */
  cwd: string;
  /** An existing, empty folder. */
  destination: string;
}

/** Packs one package and returns the path of its `.tgz` in `destination`. */
export async function packInto(options: PackOptions): Promise<string> {
  const spec = options.spec === undefined ? [] : [options.spec];
  const flags = [
    "--ignore-scripts",
    "--dry-run=false",
    "--json=false",
    "--workspaces=false",
    "--loglevel=error",
  ];
  await run(npmCommand(["pack", ...spec, ...flags, "--pack-destination", options.destination]), options.cwd);
  const tarballs = (await readdir(options.destination)).filter((name) => name.endsWith(".tgz"));
  const [tarball] = tarballs;
  if (tarball === undefined || tarballs.length > 1) {
    throw new Error(`npm pack left ${tarballs.length} tarballs in ${options.destination}, expected one`);
  }
  return join(options.destination, tarball);
}

/** Throws unless the file has this integrity, written as npm does: `sha512-<base64>`. */
export async function verifyIntegrity(file: string, expected: string): Promise<void> {
  const actual = `sha512-${createHash("sha512")
    .update(await readFile(file))
    .digest("base64")}`;
  if (actual !== expected) {
    throw new Error(`${basename(file)} has integrity ${actual}, the pinned one is ${expected}`);
  }
}

/** Unpacks a tarball so that its `package/` folder becomes `target`; the parent of `target` must exist. */
export async function unpackAs(tarball: string, target: string): Promise<void> {
  const staging = `${target}.unpacking`;
  await removeFolder(staging);
  await mkdir(staging);
  // GNU tar takes `C:\...` for a remote host, so tar gets a relative name and runs in the tarball's folder.
  await rename(tarball, join(staging, "package.tgz"));
  await run({ file: "tar", args: ["-xzf", "package.tgz"], shell: false }, staging);
  await rename(join(staging, "package"), target);
  await removeFolder(staging);
}

interface Command {
  file: string;
  args: string[];
  shell: boolean;
}

/** Only a shell starts `npm` on Windows, because it is a `.cmd` there; the script of a running npm needs no shell. */
function npmCommand(args: string[]): Command {
  const script = process.env.npm_execpath;
  if (script !== undefined && basename(script) === "npm-cli.js") {
    return { file: process.execPath, args: [script, ...args], shell: false };
  }
  return { file: "npm", args, shell: process.platform === "win32" };
}

function run(command: Command, cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command.file, command.args, {
      cwd,
      env: withProxies(),
      shell: command.shell,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: PACK_TIMEOUT_MS,
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = (stderr + chunk).slice(-STDERR_TAIL_CHARS);
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(`${command.file} ${command.args.join(" ")} ended with ${signal ?? code}: ${stderr}`),
        );
    });
  });
}
