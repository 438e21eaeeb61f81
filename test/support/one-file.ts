/**
 * Owns: servers that load an SDK and programs of fixtures in TypeScript, each bundled into one file for the whole test run.
 * Such a program starts with half to a quarter of the processor time: Node finds, reads and links one file of JavaScript in
 * place of many, and keeps its compiled code.
 * Must not: change what the server does. A test whose subject is the files of a package starts the package itself.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { inject } from "vitest";

/** What an entry of mcp.json needs beside its other arguments and variables. */
export interface OneFile {
  file: string;
  env: { NODE_COMPILE_CACHE: string };
}

/** SDKs with CommonJS parts call `require`, which a module of ECMAScript does not have. */
const REQUIRE = 'import { createRequire as r } from "node:module"; const require = r(import.meta.url);';

export function bundle(script: string, outfile: string): void {
  // Only a test that needs a bundle pays for the bundler.
  const { buildSync } = createRequire(import.meta.url)("esbuild") as typeof import("esbuild");
  buildSync({
    entryPoints: [script],
    outfile,
    bundle: true,
    minify: true,
    platform: "node",
    format: "esm",
    // As in the build of the package: jsonc-parser's CommonJS files require each other in a way that nothing can bundle.
    mainFields: ["module", "main"],
    banner: { js: REQUIRE },
    logLevel: "error",
  });
}

/**
 * The bundle takes the place of a folder beside the program, because server-everything reads `../docs` from the folders of
 * its modules. Everything else that lies beside the program is a link.
 */
function bundleBelow(folder: string, script: string): void {
  const home = dirname(script);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(home)) symlinkSync(join(home, name), join(folder, name));
  bundle(script, join(folder, CODE, FILE));
}

const CODE = "one-file";
const FILE = "index.mjs";

/** The program in one file. `name` names its folder, so that a list of processes tells what runs. */
export function oneFile(name: string, script: string): OneFile {
  const caches = inject("piCaches");
  const folder = join(caches, name);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`;
    bundleBelow(unfinished, script);
    try {
      renameSync(unfinished, folder);
    } catch (error) {
      // Another process has bundled the same program meanwhile.
      if (!existsSync(folder)) throw error;
      rmSync(unfinished, { recursive: true });
    }
  }
  return { file: join(folder, CODE, FILE), env: { NODE_COMPILE_CACHE: join(caches, "programs") } };
}
