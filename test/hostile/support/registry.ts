/**
 * Owns: a package registry on loopback, so that a user's own `npx` entry works without a network. Its only package is
 * `user-server`, a healthy MCP server.
 * Must not: serve anything else.
 * Called by: rows about npx.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Registry, startRegistry } from "../../support/npm-registry.ts";
import { makeTempFolder, removeFolder } from "../../support/temp-folder.ts";

export const PACKAGE = "user-server";

const SERVERS = join(import.meta.dirname, "..", "servers");
const MANIFEST = { name: PACKAGE, version: "1.0.0", type: "module", bin: { [PACKAGE]: "healthy.mjs" } };

async function packTarball(): Promise<Buffer> {
  const folder = await makeTempFolder("pmt-registry");
  try {
    const root = join(folder, "package");
    await mkdir(root);
    await writeFile(join(root, "package.json"), JSON.stringify(MANIFEST));
    await copyFile(join(SERVERS, "lib.mjs"), join(root, "lib.mjs"));
    const source = await readFile(join(SERVERS, "healthy.mjs"), "utf8");
    await writeFile(join(root, "healthy.mjs"), `#!/usr/bin/env node\n${source}`);
    await promisify(execFile)("tar", ["-czf", "package.tgz", "package"], { cwd: folder });
    return await readFile(join(folder, "package.tgz"));
  } finally {
    await removeFolder(folder);
  }
}

export async function startUserRegistry(): Promise<Registry> {
  return startRegistry({ manifest: MANIFEST, tarball: await packTarball() });
}
