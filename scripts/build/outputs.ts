/** Owns: which modules lie in one output, and which `import()` stays one. */
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The file that main loads when the person opens a screen. */
export const SCREENS = "src/ui/command/screens.ts";

/** The command's file that an old Node never reads. */
export const COMMAND = "src/cli/main.ts";

/** What `serve` loads of the SDK, which nobody else needs. */
export const SERVE = "src/cli/serve/endpoint.ts";

/** The process that runs the servers which sessions share. */
export const HUB = "workers/hub.ts";

/** What the files of these folders load by `import()`, relative to the project. */
async function importedLater(folders: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const folder of folders) {
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (!name.endsWith(".ts")) continue;
      const file = join(root, folder, name);
      for (const [, path = ""] of (await readFile(file, "utf8")).matchAll(/\bimport\("(\.[^"]+\.ts)"\)/g)) {
        found.add(fromRoot(join(dirname(file), path)));
      }
    }
  }
  return [...found].sort();
}

const fromRoot = (path: string): string => relative(root, path).replaceAll("\\", "/");

/**
 * Bundles what the files of `folders` load by `import()` into one output, `<name>.js`, but for the files that are built
 * `apart`. esbuild alone would make a file for each, and opening and compiling one file is faster than five.
 */
export const oneLaterFile = (name: string, folders: readonly string[], apart: readonly string[]): Plugin => ({
  name: "one-later-file",
  setup(build) {
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      const isApart = apart.includes(fromRoot(join(resolveDir, path)));
      return kind === "dynamic-import" && !isApart ? { path: name, namespace: "later" } : undefined;
    });
    build.onLoad({ filter: /.*/, namespace: "later" }, async () => {
      const files = (await importedLater(folders)).filter((file) => !apart.includes(file));
      return {
        contents: files.map((file) => `export * from ${JSON.stringify(`./${file}`)};`).join("\n"),
        resolveDir: root,
      };
    });
  },
});

/** Leaves `import()` of a file that is built apart an import of that output. */
export const builtApart = (file: string, output: string): Plugin => ({
  name: "built-apart",
  setup(build) {
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) =>
      kind === "dynamic-import" && fromRoot(join(resolveDir, path)) === file
        ? { path: output, external: true }
        : undefined,
    );
  },
});

/** The connection worker's first file. */
export const CONNECTION = "workers/connection.ts";

/** What the thread for long messages loads later, too: in the outputs below such an `import()` starts a connection worker. */
export const YAML = "workers/connection/skills/yaml.ts";

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
