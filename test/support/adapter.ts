/**
 * Owns: one verified copy of `pi-mcp-adapter` with its own dependencies under `node_modules/.cache/peers/`.
 * Must not: install it as a dependency of this package or hand out a copy that differs from its pin.
 * Called by: tests that read the files that the adapter stores, and benches that compare with it.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { packInto, verifyIntegrity } from "./npm-pack.ts";
import { withProxies } from "./proxies.ts";
import { removeFolder } from "./temp-folder.ts";

export const ADAPTER_VERSION = "2.36.0";

const SPEC = `pi-mcp-adapter@${ADAPTER_VERSION}`;
/** The output of `npm view pi-mcp-adapter@2.36.0 dist.integrity`. */
const INTEGRITY =
  "sha512-aX7Hf1FMGoHFjjx2Y4t12Hkue83CiBQmZaeQQ0mg+2wxOzbIOYdWzEkh1bmKlLHKiH6zRWlxWitsr+RaiXvoRQ==";
const TARGET = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "peers", SPEC);
const INSTALL_TIMEOUT_MS = 180_000;

/** Answers the folder of the installed package. Its dependencies lie beside it, as after `pi install`. */
export async function ensureAdapter(): Promise<string> {
  if (!existsSync(join(TARGET, "stamp"))) await prepare();
  return join(TARGET, "node_modules", "pi-mcp-adapter");
}

async function prepare(): Promise<void> {
  await mkdir(dirname(TARGET), { recursive: true });
  const copy = await mkdtemp(join(dirname(TARGET), "new-"));
  try {
    const tarball = await packInto({ spec: SPEC, cwd: copy, destination: copy });
    await verifyIntegrity(tarball, INTEGRITY);
    await writeFile(join(copy, "package.json"), JSON.stringify({ private: true }));
    // Pi gives its own modules, which are the adapter's peers, to every extension.
    const flags = ["--ignore-scripts", "--legacy-peer-deps", "--omit=dev", "--no-audit", "--no-fund"];
    const args = ["install", `./${basename(tarball)}`, ...flags, "--package-lock=false", "--loglevel=error"];
    const shell = process.platform === "win32";
    await promisify(execFile)("npm", args, {
      cwd: copy,
      env: withProxies(),
      shell,
      timeout: INSTALL_TIMEOUT_MS,
    });
    await writeFile(join(copy, "stamp"), `${SPEC} ${INTEGRITY}\n`);
    await rename(copy, TARGET);
  } catch (error) {
    await removeFolder(copy);
    // Another process may have published its copy first.
    if (!existsSync(join(TARGET, "stamp"))) throw error;
  }
}
