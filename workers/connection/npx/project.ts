/**
 * The project around a server's working directory as npm sees it: its prefix, the folders whose commands come first,
 * and the settings that let the project decide more than the registry.
 */
import { stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { readPackageJson, toManifest } from "./package-bin.ts";

export interface Project {
  /** npm's local prefix: the nearest folder with a package.json or node_modules, else `cwd`. */
  prefix: string;
  /** Folders above the prefix, nearest first. */
  above: string[];
  /** Folders in which a command that npx starts looks before PATH, nearest first. */
  binFolders: string[];
  /** Commands of the project's own package. */
  ownCommands: string[];
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

function foldersUpFrom(folder: string): string[] {
  const folders = [resolve(folder)];
  for (;;) {
    const last = folders.at(-1) ?? "";
    if (dirname(last) === last) return folders;
    folders.push(dirname(last));
  }
}

async function prefixOf(folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    if (await exists(join(folder, "package.json"))) return folder;
    if (await exists(join(folder, "node_modules"))) return folder;
  }
  return folders[0];
}

/** Never throws. `reason`: why only npm itself can tell. */
export async function readProject(cwd: string): Promise<Project | { reason: string }> {
  const folders = foldersUpFrom(cwd);
  const prefix = (await prefixOf(folders)) ?? cwd;
  const above = folders.slice(folders.indexOf(prefix) + 1);
  const own = await readPackageJson(prefix);
  const scripts: unknown = own?.scripts;
  // npm runs these scripts before and after every npx.
  if (typeof scripts === "object" && scripts !== null && ("prenpx" in scripts || "postnpx" in scripts)) {
    return { reason: "the project has scripts for npx" };
  }
  const directories: unknown = own?.directories;
  if (typeof directories === "object" && directories !== null && "bin" in directories) {
    return { reason: "the project has a folder of commands" };
  }
  for (const folder of own === undefined ? [] : above) {
    if ((await readPackageJson(folder))?.workspaces !== undefined) {
      return { reason: `${prefix} may be a workspace of ${folder}` };
    }
  }
  return {
    prefix,
    above,
    binFolders: folders.map((folder) => join(folder, "node_modules", ".bin")),
    ownCommands: Object.keys(toManifest({ name: "", version: "", ...own })?.bin ?? {}),
  };
}
