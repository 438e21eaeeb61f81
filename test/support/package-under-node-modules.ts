/**
 * Owns: this package as users get it: packed by npm and unpacked alone below a folder named `node_modules`.
 * Must not: build (the caller runs `npm run build` first) or install dependencies.
 * Called by: run-package.ts for the tests, and the benches. A test of the published package fails if the package contains
 * `.ts` to run, which Node refuses below `node_modules`, or if a dependency is not bundled.
 */
import { existsSync, rmSync } from "node:fs";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { packInto, unpackAs } from "./npm-pack.ts";
import { makeTempFolder, removeFolder } from "./temp-folder.ts";

const PACKAGE_NAME = "pi-mcp-threads";
const PROJECT_DIR = join(import.meta.dirname, "..", "..");

export interface UnpackedPackage {
  /** Absolute path of `index.js`, the extension that Pi loads. */
  entry: string;
  /** `<tmp>/node_modules/pi-mcp-threads`. */
  dir: string;
  /** Removes the folder; the next call of `unpackTarball` makes a new one. */
  dispose(): Promise<void>;
}

let pending: Promise<UnpackedPackage> | undefined;

/** Packs and unpacks once per process, in about 0.2 s. `dispose` or the exit of the process removes the folder. */
export function unpackTarball(): Promise<UnpackedPackage> {
  pending ??= unpack();
  return pending;
}

/** The name of the tarball in the folder below which its package is unpacked. */
export const TARBALL = `${PACKAGE_NAME}.tgz`;

/** Packs the package, as `TARBALL`, and unpacks it to `<root>/node_modules/pi-mcp-threads`, whose path is the answer. */
export async function unpackBelow(root: string): Promise<string> {
  if (!existsSync(join(PROJECT_DIR, "index.js"))) {
    throw new Error("index.js is missing: run `npm run build` before the tests that use the package");
  }
  const destination = join(root, "tarball");
  const dir = join(root, "node_modules", PACKAGE_NAME);
  await mkdir(destination);
  await mkdir(join(root, "node_modules"));
  const tarball = await packInto({ cwd: PROJECT_DIR, destination });
  await copyFile(tarball, join(root, TARBALL));
  await unpackAs(tarball, dir);
  return dir;
}

async function unpack(): Promise<UnpackedPackage> {
  const root = await makeTempFolder("pi-package");
  const removeAtExit = (): void => rmSync(root, { recursive: true, force: true });
  process.once("exit", removeAtExit);
  const dir = await unpackBelow(root);
  const dispose = async (): Promise<void> => {
    pending = undefined;
    process.off("exit", removeAtExit);
    await removeFolder(root);
  };
  return { entry: join(dir, "index.js"), dir, dispose };
}
