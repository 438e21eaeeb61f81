/** Owns: which modules lie in one output, and which `import()` stays one. */
import { readdir } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Bundles the target of every `import("./run.ts")` in src into one output, `later.js`. esbuild alone would make a
 * file for each, and Pi's main thread opens and compiles one file faster than five.
 */
export const oneLaterFile: Plugin = {
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

/** The connection worker's first file. */
export const CONNECTION = "workers/connection.ts";

/**
 * Makes one file of what the connection worker evaluates at its start. esbuild puts modules into one chunk if the same
 * entries reach them, and every `import()` is an entry: without this the start would open thirty small files. So each
 * `import()` reaches the whole start, which has run by then.
 */
export const oneFileAtStart: Plugin = {
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
export const screensApart: Plugin = {
  name: "screens-apart",
  setup(build) {
    build.onResolve({ filter: /\/screens\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./dist/screens.js", external: true } : undefined,
    );
  },
};

/** The command's first file is read by an old Node, too, so it is built apart: `import("./main.ts")` stays an import. */
export const mainApart: Plugin = {
  name: "main-apart",
  setup(build) {
    build.onResolve({ filter: /\/main\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./cli-main.js", external: true } : undefined,
    );
  },
};

/** Relative to the project: a command that needs a worker has its file here. */
const LATER_COMMAND_FILES = [
  ...["call", "doctor", "import", "list", "login", "logs", "prompts", "resources", "setup"].map(
    (name) => `src/cli/commands/${name}.ts`,
  ),
  "src/cli/session/session.ts",
  "src/runtime/run.ts",
];

/** What the command loads only for a worker: every other `import()` of src/cli and of the runtime, in one output. */
export const oneLaterCommandFile: Plugin = {
  name: "one-later-command-file",
  setup(build) {
    const later = new Set<string>();
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import") return undefined;
      later.add(join(resolveDir, path));
      return { path: "cli-later", namespace: "later" };
    });
    build.onLoad({ filter: /.*/, namespace: "later" }, () => ({
      contents: LATER_COMMAND_FILES.map((file) => `export * from ${JSON.stringify(`./${file}`)};`).join("\n"),
      resolveDir: root,
    }));
    build.onEnd(() => {
      const listed = LATER_COMMAND_FILES.map((file) => join(root, file));
      const missing = [...later].filter((file) => !listed.includes(file));
      if (missing.length > 0) throw new Error(`cli-later.js lacks ${missing.join(", ")}`);
    });
  },
};
