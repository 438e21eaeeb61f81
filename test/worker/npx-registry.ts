/**
 * Owns: a registry on loopback with the packages of npx.test.ts: real programs, each in one file, in the versions that
 * the tests name.
 * Must not: run npm. A test that asks for another version finds nothing.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { onCleanup } from "../support/cleanup.ts";
import { type Published, type Registry, startRegistry } from "../support/npm-registry.ts";
import { oneFile } from "../support/one-file.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";

export const MEMORY = "@modelcontextprotocol/server-memory";

const MODULES = join(import.meta.dirname, "..", "..", "node_modules");
const SEMVER = { name: "semver", bin: "semver", program: join(MODULES, "semver/bin/semver.js") };
/** The newest one last. */
const SEMVER_VERSIONS = [
  "6.3.1",
  "7.3.1",
  "7.3.2",
  "7.5.0",
  "7.5.1",
  "7.5.3",
  "7.6.3",
  "7.7.1",
  "7.7.2",
  "7.8.0",
];
const SERVER = { name: MEMORY, bin: "mcp-server-memory", program: join(MODULES, MEMORY, "dist/index.js") };

interface Program {
  name: string;
  /** The name of its command. */
  bin: string;
  program: string;
}

/** `more`: further keys of its package.json. */
async function packed(
  { name, bin, program }: Program,
  version: string,
  more: Record<string, unknown> = {},
): Promise<Published> {
  const manifest = { name, version, type: "module", bin: { [bin]: "program.mjs" }, ...more };
  const folder = await makeTempFolder("pmt-npx-package");
  try {
    await mkdir(join(folder, "package"));
    await writeFile(join(folder, "package", "package.json"), JSON.stringify(manifest));
    await copyFile(oneFile(bin, program).file, join(folder, "package", "program.mjs"));
    await promisify(execFile)("tar", ["-czf", "package.tgz", "package"], { cwd: folder });
    return { manifest, tarball: await readFile(join(folder, "package.tgz")) };
  } finally {
    await removeFolder(folder);
  }
}

/** The server depends on another package, so that npm installs more than the one that is asked for. */
export async function startNpxRegistry(): Promise<Registry> {
  const published = await Promise.all([
    ...SEMVER_VERSIONS.map((version) => packed(SEMVER, version)),
    packed(SERVER, "2026.8.31", { dependencies: { semver: "^7.0.0" } }),
  ]);
  const registry = await startRegistry(...published);
  onCleanup(() => registry.close());
  return registry;
}
