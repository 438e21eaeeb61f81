/**
 * Owns: the built extension that the benches measure. The extension is built once per run, so that no figure comes from older
 * code, and the package is the one that npm would publish.
 * Must not: measure.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type UnpackedPackage, unpackTarball } from "../../test/support/package-under-node-modules.ts";

const ROOT = join(import.meta.dirname, "..", "..");

let building: Promise<void> | undefined;

/** Builds once per process. Throws an error with the build's output if the build fails. */
export function ensureBuilt(): Promise<void> {
  building ??= promisify(execFile)(process.execPath, [join(ROOT, "scripts", "build.ts")], { cwd: ROOT }).then(
    () => undefined,
  );
  return building;
}

/** The published file of the connection worker. */
export async function builtWorkerUrl(): Promise<URL> {
  await ensureBuilt();
  return pathToFileURL(join(ROOT, "dist", "workers", "connection.js"));
}

/** The package alone below a folder named `node_modules`; one copy per process. */
export async function packedExtension(): Promise<UnpackedPackage> {
  await ensureBuilt();
  return unpackTarball();
}
