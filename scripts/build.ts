/**
 * Builds the published files: `index.js` for Pi's main thread, `dist/later.js`, which loads after Pi's first
 * paint, `dist/chunk.js`, which both share, `dist/screens.js`, which loads when the person opens a screen, and the
 * command: `dist/cli.js`, `dist/cli-main.js`, and `dist/cli-later-*.js`, which loads if a worker is needed. The screens
 * and the command share `dist/chunk-*.js`. `index.js` lies in the package's own folder, since Pi shows an extension
 * under the name of the folder of its `index.js`.
 * `dist/workers` holds `connection.js`, `heavy.js` and `cache.js`, a file for each `import()` of the connection worker, and
 * chunks that these share: the thread for long messages finds in them what the connection worker has compiled already.
 * The files import only `node:` modules and each other, so they run below `node_modules`, elsewhere, and in Pi's Bun
 * build.
 */
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import {
  builtApart,
  COMMAND,
  CONNECTION,
  HUB,
  oneFileAtStart,
  oneLaterFile,
  root,
  SCREENS,
  SERVE,
  YAML,
} from "./build/outputs.ts";
import {
  idTables,
  lateBuiltins,
  leaveOut,
  ownManifest,
  plainLimits,
  pureMsgpackr,
  withoutKeyWords,
} from "./build/sources.ts";

/** CommonJS packages inside an ES module use these names. */
const COMMONJS_GLOBALS = [
  'import { createRequire as __createRequire } from "node:module";',
  "const require = __createRequire(import.meta.url);",
  "const __dirname = import.meta.dirname;",
  "const __filename = import.meta.filename;",
].join("\n");
const COMMONJS_NAMES = /\b(?:require|__dirname|__filename)\b/;

/** esbuild writes the banner into each file; most of them use none of its names. Answers the bytes of the file. */
async function withoutUnusedGlobals(output: string): Promise<number> {
  const file = join(root, output);
  const text = await readFile(file, "utf8");
  const code = text.startsWith(COMMONJS_GLOBALS) ? text.slice(COMMONJS_GLOBALS.length).trimStart() : text;
  if (code === text || COMMONJS_NAMES.test(code)) return text.length;
  await writeFile(file, code);
  return code.length;
}

const shared: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node22.19",
  format: "esm",
  // The ES module build comes first, because jsonc-parser's CommonJS build hides its requires from a bundler.
  mainFields: ["module", "main"],
  minifySyntax: true,
  minifyWhitespace: true,
  // A third of a worker's bytes and of its compile time are names. Names of methods stay readable in the log's stacks.
  minifyIdentifiers: true,
  legalComments: "none",
  // The output is an ES module and so strict already. Without this esbuild writes "use strict" into each module of a
  // worker, 4 KB in all, because the compiler's own settings ask for it.
  tsconfigRaw: {
    compilerOptions: { alwaysStrict: false, useDefineForClassFields: true, verbatimModuleSyntax: true },
  },
  // With one character beyond Latin-1, V8 would hold a whole file with two bytes a character.
  charset: "ascii",
  logLevel: "warning",
  // zod names the functions that are left out, and calls none of them.
  // Two files of one later output that export one name would both lose it.
  logOverride: { "import-is-undefined": "silent", "ambiguous-reexport": "error" },
  plugins: [leaveOut, pureMsgpackr],
};

const worker: BuildOptions = {
  // The SDK parses with zod's second interface; the first one, which it has as well, has the same function.
  alias: { "zod/v4-mini": "zod/v4" },
  banner: { js: COMMONJS_GLOBALS },
  plugins: [leaveOut, pureMsgpackr, lateBuiltins, ownManifest, withoutKeyWords, plainLimits],
};

/** Folders whose code Pi's main thread runs. */
const MAIN_FOLDERS = [
  "src/catalog",
  "src/pi",
  "src/runtime",
  "src/session",
  "src/skills",
  "src/tools",
  "src/ui",
];

const builds: BuildOptions[] = [
  {
    entryPoints: { index: "src/index.ts" },
    plugins: [
      leaveOut,
      pureMsgpackr,
      // Only dist/later.js loads it.
      builtApart(SCREENS, "./screens.js"),
      oneLaterFile("later", MAIN_FOLDERS, [SCREENS]),
      ownManifest,
      plainLimits,
    ],
    splitting: true,
    outdir: ".",
    chunkNames: "dist/[name]",
  },
  {
    ...worker,
    entryPoints: {
      connection: CONNECTION,
      cache: "workers/cache.ts",
      heavy: "workers/heavy.ts",
      serve: SERVE,
    },
    splitting: true,
    outdir: "dist/workers",
    plugins: [builtApart(YAML, "./yaml.js"), oneFileAtStart, ...(worker.plugins ?? []), idTables],
  },
  {
    entryPoints: ["src/cli/cli.ts"],
    outfile: "dist/cli.js",
    target: "node14",
    banner: { js: "#!/usr/bin/env node" },
    plugins: [builtApart(COMMAND, "./cli-main.js")],
  },
  // Apart from Pi's main thread: what they shared with it would become chunks that each start had to load.
  // The screens and the command share a third of their code. Neither loads at Pi's start, so a chunk more costs nothing.
  {
    entryPoints: { screens: SCREENS, "cli-main": COMMAND },
    splitting: true,
    outdir: "dist",
    chunkNames: "[name]-[hash]",
    plugins: [
      leaveOut,
      pureMsgpackr,
      builtApart(SERVE, "./workers/serve.js"),
      oneLaterFile("cli-later", ["src/cli", "src/runtime"], [COMMAND, SERVE]),
      ownManifest,
      plainLimits,
    ],
  },
  // A process of its own, which outlives an update of the package: it must not load a file later.
  {
    ...worker,
    entryPoints: { hub: HUB },
    outdir: "dist/workers",
    plugins: [...(worker.plugins ?? []), idTables],
  },
  { entryPoints: { yaml: YAML }, outdir: "dist/workers" },
  // piscina starts its threads from a separate file, which it expects beside the bundle.
  {
    entryPoints: ["node_modules/piscina/dist/worker.js"],
    outfile: "dist/workers/worker.js",
    ...worker,
  },
];

async function buildAll(): Promise<void> {
  for (const built of ["../dist", "../index.js"]) {
    await rm(new URL(built, import.meta.url), { recursive: true, force: true });
  }
  /** What each output holds and imports, for the tests. */
  const outputs: Record<string, { sources: string[]; imports: { path: string; kind: string }[] }> = {};
  for (const options of builds) {
    const { metafile } = await build({ ...shared, ...options, metafile: true });
    for (const [output, { inputs, imports }] of Object.entries(metafile.outputs)) {
      const bytes = await withoutUnusedGlobals(output);
      const sources = Object.keys(inputs).filter((source) => !/^(late|later|builtin|left-out):/.test(source));
      outputs[output] = { sources, imports };
      console.log(`${output}  ${(bytes / 1024).toFixed(1)} KB`);
    }
  }
  await chmod(new URL("../dist/cli.js", import.meta.url), 0o755);
  const cache = new URL("../node_modules/.cache/", import.meta.url);
  await mkdir(cache, { recursive: true });
  await writeFile(new URL("build-outputs.json", cache), JSON.stringify(outputs, null, 1));
}

await buildAll();
