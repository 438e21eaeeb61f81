/** Builds the extension before the tests that run it if a source is newer, so that no test runs an old build. */
import { execFileSync } from "node:child_process";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const SOURCES = ["src", "workers", "scripts", "package.json"];
/** The build writes this file of `dist/` last. */
const BUILT = "dist/workers/worker.js";

/** Undefined if the file does not exist. */
const modifiedMs = (path: string): Promise<number | undefined> =>
  stat(join(root, path)).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );

async function newestSourceMs(): Promise<number> {
  const files = await Promise.all(
    SOURCES.map(async (source) => {
      if (source.endsWith(".json")) return [source];
      const names = await readdir(join(root, source), { recursive: true });
      // Folders count as well, because the removal of a file changes the time of its folder.
      return [source, ...names.map((name) => join(source, name))];
    }),
  );
  return Math.max(...(await Promise.all(files.flat().map(modifiedMs))).map((ms) => ms ?? 0));
}

export default async function setup(): Promise<void> {
  const builtMs = (await modifiedMs(BUILT)) ?? 0;
  if (builtMs >= (await newestSourceMs())) return;
  execFileSync(process.execPath, [join(root, "scripts", "build.ts")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}
