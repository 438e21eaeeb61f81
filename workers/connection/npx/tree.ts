/**
 * Owns: the trees in which packages are installed, and the one that npx uses: the project's, the global one, or npx's
 * own cache, in this order (libnpmexec 10, exec). Reads folders only.
 */
import { createHash } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { isFile } from "../../shared/programs/find-program.ts";
import { onWindows } from "../../shared/programs/processes.ts";
import type { NpxRequest } from "./command.ts";
import type { NpmFailure } from "./npm-words.ts";
import { chooseBin, readManifest } from "./package-bin.ts";
import type { Project } from "./project.ts";
import { isWanted, type PackageSpec } from "./spec.ts";

/** The folders of npm, as npm itself names them. */
export interface NpmFacts {
  cacheDir: string;
  globalPrefix: string;
  /** The file of the node that ran in npm's folder: a program called `node` may choose a version by its folder. */
  node: string;
}

type NpmFolders = Pick<NpmFacts, "cacheDir" | "globalPrefix">;

export interface Tree {
  kind: "project" | "global" | "cache";
  /** The `node_modules` folder. */
  modules: string;
  /** Folder of links to the commands. */
  bin: string;
  /** A command of exactly the given name lies there, and npx takes that one. */
  command?: string;
}

export interface Binary {
  /** The path that npx would start: the link, or on Windows the file behind the link. */
  path: string;
  /** The file behind the link. */
  file: string;
  /** Folder of the link: npx puts it first on the search path. */
  binFolder: string;
}

/** Why npm itself is to be run. `failure`: npm has failed, and as the server's parent it would fail again. */
export type Declined = { reason: string; failure?: NpmFailure };

/** Name of the cache folder: libnpmexec hashes the packages as the command line writes them, sorted. */
export function cacheFolderName(packages: readonly PackageSpec[]): string {
  const sorted = packages.map(({ raw }) => raw).sort((a, b) => a.localeCompare(b, "en"));
  return createHash("sha512").update(sorted.join("\n")).digest("hex").slice(0, 16);
}

export function cacheTree(
  { cacheDir }: Pick<NpmFolders, "cacheDir">,
  packages: readonly PackageSpec[],
): Tree {
  const modules = resolve(cacheDir, "_npx", cacheFolderName(packages), "node_modules");
  return { kind: "cache", modules, bin: join(modules, ".bin") };
}

const projectTree = (folder: string): Tree => ({
  kind: "project",
  modules: join(folder, "node_modules"),
  bin: join(folder, "node_modules", ".bin"),
});

const globalTree = (prefix: string): Tree =>
  onWindows
    ? { kind: "global", modules: join(prefix, "node_modules"), bin: prefix }
    : { kind: "global", modules: join(prefix, "lib", "node_modules"), bin: join(prefix, "bin") };

/** The tree if npx takes the package from there; undefined if the tree does not hold the package. */
async function preferred(tree: Tree, spec: PackageSpec): Promise<Tree | Declined | undefined> {
  const manifest = await readManifest(join(tree.modules, spec.name));
  const hasCommand = await isFile(join(tree.bin, spec.raw));
  if (!manifest && !hasCommand) return undefined;
  if (manifest?.name === spec.name && spec.kind !== "tag" && isWanted(spec, manifest.version)) {
    return hasCommand ? { ...tree, command: spec.raw } : tree;
  }
  const place = tree.kind === "global" ? "installed globally" : `in ${tree.modules}`;
  return { reason: `another ${spec.name} is ${place}` };
}

/** The tree that npx uses for these packages. Without a project only the user's own folders count. */
export const chooseTree = async (
  request: NpxRequest,
  project: Project | undefined,
  facts: NpmFolders,
): Promise<Tree | Declined> =>
  (project && (await treeInProject(request, project))) ?? treeOutside(request, facts);

/** The project's tree, if the project holds one of the packages. Undefined: it holds none of them. */
export async function treeInProject(
  { packages, bin }: NpxRequest,
  project: Project,
): Promise<Tree | Declined | undefined> {
  for (const spec of packages) {
    if (bin === undefined && project.ownCommands.includes(spec.raw)) {
      return { reason: `the project itself has a command ${spec.raw}` };
    }
    const local = await preferred(projectTree(project.prefix), spec);
    // With --package, npx takes the package from the project only depending on the other packages.
    if (local) return bin === undefined ? local : { reason: `the project has its own ${spec.name}` };
    for (const folder of project.above) {
      if (await preferred(projectTree(folder), spec)) return { reason: `${folder} has its own ${spec.name}` };
    }
  }
  return undefined;
}

async function treeOutside({ packages, bin }: NpxRequest, facts: NpmFolders): Promise<Tree | Declined> {
  const [spec] = packages;
  const global =
    spec && bin === undefined ? await preferred(globalTree(facts.globalPrefix), spec) : undefined;
  return global ?? cacheTree(facts, packages);
}

/** npm writes this file last: an install that was interrupted has none. */
export const isComplete = (tree: Tree): Promise<boolean> => isFile(join(tree.modules, ".package-lock.json"));

/** The binary of an installed package, or the reason: it is missing, of another version, or ambiguous. */
export async function locate(tree: Tree, { packages, bin }: NpxRequest): Promise<Binary | Declined> {
  const found: { folder: string; path: string; name: string }[] = [];
  for (const spec of packages) {
    const folder = join(tree.modules, spec.name);
    const manifest = await readManifest(folder);
    if (manifest?.name !== spec.name) return { reason: `${spec.name} is not installed` };
    if (!isWanted(spec, manifest.version)) {
      return { reason: `${spec.name} ${manifest.version} is installed, ${spec.wanted} is wanted` };
    }
    const name = bin ?? chooseBin(manifest);
    const path = name !== undefined && Object.hasOwn(manifest.bin, name) ? manifest.bin[name] : undefined;
    if (name !== undefined && path !== undefined) found.push({ folder, path, name });
  }
  const [first] = found;
  if (!first) return { reason: `no package named offers the command ${bin ?? "it stands for"}` };
  if (tree.command !== undefined && tree.command !== first.name) {
    return { reason: `${tree.command} is another package's command` };
  }
  return throughLink(tree, first);
}

/** Two packages may offer a command with the same name: the file behind the link is the one that runs. */
async function throughLink(
  tree: Tree,
  { folder, path, name }: { folder: string; path: string; name: string },
): Promise<Binary | Declined> {
  const link = join(tree.bin, name);
  try {
    const file = await realpath(join(folder, path));
    if (!(await stat(file)).isFile()) return { reason: `${file} is not a file` };
    if (onWindows) {
      const shim = await readTextOrThrow(`${link}.cmd`, SMALL_FILE_BYTES);
      const linked = shim.includes(relative(tree.bin, join(folder, path)));
      return linked
        ? { path: file, file, binFolder: tree.bin }
        : { reason: `${link}.cmd starts another file` };
    }
    if ((await realpath(link)) !== file) return { reason: `${link} is another package's command` };
    return { path: link, file, binFolder: tree.bin };
  } catch {
    return { reason: `${link} is missing` };
  }
}
