/**
 * Builds the published files: `index.js` for Pi's main thread, `dist/later.js`, which loads after Pi's first
 * paint, `dist/chunk.js`, which both share, `dist/screens.js`, which loads when the person opens a screen, and the
 * command: `dist/cli.js`, `dist/cli-main.js`, and `dist/cli-later-*.js`, which loads if a worker is needed. The screens
 * and the command share `dist/chunk-*.js`. `index.js` lies in the package's own folder, since Pi shows an extension
 * under the name of the folder of its `index.js`.
 * `dist/workers` holds `connection.js` and `cache.js`, a file for each `import()` of the connection worker, and chunks
 * that these share.
 * The files import only `node:` modules and each other, so they run below `node_modules`, elsewhere, and in Pi's Bun
 * build.
 */
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/** CommonJS packages inside an ES module use these names. */
const COMMONJS_GLOBALS = [
  'import { createRequire as __createRequire } from "node:module";',
  "const require = __createRequire(import.meta.url);",
  "const __dirname = import.meta.dirname;",
  "const __filename = import.meta.filename;",
].join("\n");

/**
 * Modules that are imported but never run, by the end of their path: the SDK's schema compiler (this package gives the
 * SDK's client another validator), piscina's optional native `nice`, and what turns zod's schemas into JSON Schema.
 */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "validation/ajv-provider.js": "export class AjvJsonSchemaValidator {}",
  "@napi-rs/nice": "export {};",
  "zod-to-json-schema": "export const zodToJsonSchema = undefined;",
  "zod/v4/core/json-schema-generator.js": "export class JSONSchemaGenerator {}",
  "zod/v4/core/json-schema-processors.js": "export const toJSONSchema = undefined;",
  "zod/v4/core/to-json-schema.js":
    'const leftOut = () => { throw new Error("left out of the build"); };\n' +
    "export { leftOut as createStandardJSONSchemaMethod, leftOut as createToJSONSchemaMethod };",
};

const leftOutAs = (path: string): string | undefined =>
  Object.keys(LEFT_OUT).find((end) => path.replaceAll("\\", "/").endsWith(end));

const leaveOut: Plugin = {
  name: "leave-out",
  setup(build) {
    build.onResolve(
      {
        filter:
          /(ajv-provider|json-schema-generator|json-schema-processors|to-json-schema)\.js$|^@napi-rs\/nice$|^zod-to-json-schema$/,
      },
      ({ path, resolveDir }) => {
        const end = leftOutAs(path) ?? leftOutAs(join(resolveDir, path));
        return end === undefined ? undefined : { path: end, namespace: "left-out" };
      },
    );
    build.onLoad({ filter: /.*/, namespace: "left-out" }, ({ path }) => ({ contents: LEFT_OUT[path] ?? "" }));
  },
};

/**
 * Bundles the pure JavaScript build of msgpackr, because a single file cannot contain the optional native binary.
 * The files of msgpackr have no side effects, so a bundle can leave out unused parts.
 */
const pureMsgpackr: Plugin = {
  name: "pure-msgpackr",
  setup(build) {
    const folder = fileURLToPath(new URL("../node_modules/msgpackr/", import.meta.url));
    build.onResolve({ filter: /^msgpackr$/ }, () => ({ path: `${folder}index.js`, sideEffects: false }));
    build.onResolve({ filter: /^\.\/\w+\.js$/ }, ({ importer, path }) =>
      importer.startsWith(folder) ? { path: `${folder}${path.slice(2)}`, sideEffects: false } : undefined,
    );
  },
};

const ID_TABLES = [
  [/isInRange\(cp, largeIdStartRanges [^;]*;/, "/\\p{ID_Start}/u.test(String.fromCodePoint(cp));"],
  [/isInRange\(cp, largeIdContinueRanges [^;]*;/, "/\\p{ID_Continue}/u.test(String.fromCodePoint(cp));"],
] as const;

/** regexpp brings tables of the characters of names, 5 KB of them, which the engine knows as well. */
const idTables: Plugin = {
  name: "id-tables",
  setup(build) {
    build.onLoad({ filter: /regexpp[\\/]index\.mjs$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const [table, test] of ID_TABLES) {
        if (!table.test(contents)) throw new Error(`${path} has no ${table} any more`);
        contents = contents.replace(table, () => test);
      }
      return { contents };
    });
  },
};

/** Of package.json the code uses the name and the version alone. */
const ownManifest: Plugin = {
  name: "own-manifest",
  setup(build) {
    build.onLoad({ filter: /[\\/]package\.json$/, namespace: "file" }, async ({ path }) => {
      const { name, version } = JSON.parse(await readFile(path, "utf8")) as Record<string, string>;
      return { contents: JSON.stringify({ name, version }), loader: "json" };
    });
  },
};

/** A literal text, or several that are joined. */
const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const DESCRIPTION = new RegExp(String.raw`\bdescription:\s*${TEXT}(?:\s*\+\s*${TEXT})*,?`, "g");

/** The words about each key of mcp.json are for the JSON Schema and the tables of the docs. No session reads them. */
const withoutKeyWords: Plugin = {
  name: "without-key-words",
  setup(build) {
    build.onLoad(
      { filter: /[\\/]config[\\/]entry[\\/][\w-]+\.ts$/, namespace: "file" },
      async ({ path }) => ({
        contents: (await readFile(path, "utf8")).replaceAll(DESCRIPTION, ""),
        loader: "ts",
      }),
    );
  },
};

/**
 * Loads heavy modules of Node when code first uses one of their exports. A static import would load the module at once
 * and read all its properties: for `node:http` this loads undici, which takes 15 ms.
 */
const lateBuiltins: Plugin = {
  name: "late-builtins",
  setup(build) {
    const filter = /^node:(child_process|crypto|http|https|tls|zlib)$/;
    build.onResolve({ filter, namespace: "file" }, ({ path }) => ({ path, namespace: "builtin" }));
    build.onLoad({ filter, namespace: "builtin" }, async ({ path }) => {
      const names = Object.keys(await import(path)).filter((name) => name !== "default");
      return {
        contents: [
          `const load = (name) => ({ enumerable: true, get: () => require(${JSON.stringify(path)})[name] });`,
          `for (const name of ${JSON.stringify(names.join())}.split(","))`,
          "  Object.defineProperty(module.exports, name, load(name));",
        ].join("\n"),
      };
    });
  },
};

/**
 * Bundles the target of every `import("./run.ts")` in src into one output, `later.js`. esbuild alone would make a
 * file for each, and Pi's main thread opens and compiles one file faster than five.
 */
const oneLaterFile: Plugin = {
  name: "one-later-file",
  setup(build) {
    build.onResolve({ filter: /\/run\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "later", namespace: "later" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "later" }, async () => {
      const runs = (await readdir(join(root, "src"), { recursive: true })).filter(
        (file) => basename(file) === "run.ts",
      );
      const lines = runs
        .sort()
        .map((file) => `export * from ${JSON.stringify(`./src/${file.replaceAll("\\", "/")}`)};`);
      return { contents: lines.join("\n"), resolveDir: root };
    });
  },
};

const CONNECTION = "workers/connection.ts";

/**
 * Makes one file of what the connection worker evaluates at its start. esbuild puts modules into one chunk if the same
 * entries reach them, and every `import()` is an entry: without this the start would open thirty small files. So each
 * `import()` reaches the whole start, which has run by then.
 */
const oneFileAtStart: Plugin = {
  name: "one-file-at-start",
  setup(build) {
    build.onResolve({ filter: /\.ts$|^piscina$/ }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import") return undefined;
      const target = path.endsWith(".ts") ? `./${relative(root, join(resolveDir, path))}` : path;
      return { path: target.replaceAll("\\", "/"), namespace: "late" };
    });
    build.onLoad({ filter: /.*/, namespace: "late" }, ({ path }) => ({
      contents: `import "./${CONNECTION}";\nexport * from ${JSON.stringify(path)};`,
      resolveDir: root,
    }));
  },
};

/** The file that main loads when the person opens a screen: `import("./screens.ts")` of `index.js` stays an import. */
const screensApart: Plugin = {
  name: "screens-apart",
  setup(build) {
    build.onResolve({ filter: /\/screens\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./dist/screens.js", external: true } : undefined,
    );
  },
};

/** The command's first file is read by an old Node, too, so it is built apart: `import("./main.ts")` stays an import. */
const mainApart: Plugin = {
  name: "main-apart",
  setup(build) {
    build.onResolve({ filter: /\/main\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./cli-main.js", external: true } : undefined,
    );
  },
};

/** What the command loads only for a worker: every other `import()` of src/cli and of the runtime, in one output. */
const oneLaterCommandFile: Plugin = {
  name: "one-later-command-file",
  setup(build) {
    const later = new Set<string>();
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import") return undefined;
      later.add(join(resolveDir, path));
      return { path: "cli-later", namespace: "later" };
    });
    build.onLoad({ filter: /.*/, namespace: "later" }, () => ({
      contents: laterCommandFiles.map((file) => `export * from ${JSON.stringify(`./${file}`)};`).join("\n"),
      resolveDir: root,
    }));
    build.onEnd(() => {
      const listed = laterCommandFiles.map((file) => join(root, file));
      const missing = [...later].filter((file) => !listed.includes(file));
      if (missing.length > 0) throw new Error(`cli-later.js lacks ${missing.join(", ")}`);
    });
  },
};

const laterCommandFiles = [
  ...["call", "doctor", "import", "list", "login", "logs", "prompts", "resources", "setup"].map(
    (name) => `src/cli/commands/${name}.ts`,
  ),
  "src/cli/session/session.ts",
  "src/runtime/run.ts",
];

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
  logOverride: { "import-is-undefined": "silent" },
  plugins: [leaveOut, pureMsgpackr],
};

const worker: BuildOptions = {
  // The SDK parses with zod's second interface; the first one, which it has as well, has the same function.
  alias: { "zod/v4-mini": "zod/v4" },
  banner: { js: COMMONJS_GLOBALS },
  plugins: [leaveOut, pureMsgpackr, lateBuiltins, ownManifest, withoutKeyWords],
};

const builds: BuildOptions[] = [
  {
    entryPoints: { index: "src/index.ts" },
    plugins: [leaveOut, pureMsgpackr, oneLaterFile, screensApart],
    splitting: true,
    outdir: ".",
    chunkNames: "dist/[name]",
  },
  {
    ...worker,
    entryPoints: { connection: CONNECTION, cache: "workers/cache.ts" },
    splitting: true,
    outdir: "dist/workers",
    plugins: [oneFileAtStart, ...(worker.plugins ?? []), idTables],
  },
  {
    entryPoints: ["src/cli/cli.ts"],
    outfile: "dist/cli.js",
    target: "node14",
    banner: { js: "#!/usr/bin/env node" },
    plugins: [mainApart],
  },
  // Apart from Pi's main thread: what they shared with it would become chunks that each start had to load.
  // The screens and the command share a third of their code. Neither loads at Pi's start, so a chunk more costs nothing.
  {
    entryPoints: { screens: "src/ui/command/screens.ts", "cli-main": "src/cli/main.ts" },
    splitting: true,
    outdir: "dist",
    chunkNames: "[name]-[hash]",
    plugins: [leaveOut, pureMsgpackr, oneLaterCommandFile, ownManifest],
  },
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
    for (const [output, { inputs, imports, bytes }] of Object.entries(metafile.outputs)) {
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
