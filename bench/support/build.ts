/**
 * Owns: the built extension that the benches measure: `dist/` made anew once a run, so that a figure is never
 * that of an older state, and the package as npm would publish it.
 * Must not: measure.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type UnpackedPackage, unpackTarball } from "../../test/support/package-under-node-modules.ts";

const ROOT = join(import.meta.dirname, "..", "..");

let building: Promise<void> | undefined;

/** Builds once per process. Throws what the build printed. */
export function ensureBuilt(): Promise<void> {
  building ??= promisify(execFile)(process.execPath, [join(ROOT, "scripts", "build.ts")], { cwd: ROOT }).then(
    () => undefined,
  );
  return building;
}

/** The connection worker as it is published. */
export async function builtWorkerUrl(): Promise<URL> {
  await ensureBuilt();
  return pathToFileURL(join(ROOT, "dist", "workers", "connection.js"));
}

/** The package below a folder named `node_modules`, alone; one copy a process. */
export async function packedExtension(): Promise<UnpackedPackage> {
  await ensureBuilt();
  return unpackTarball();
}
