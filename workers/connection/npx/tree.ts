/**
 * Owns: the trees in which packages are installed, and the one that npx uses: the project's, the global one, or npx's
 * own cache, in this order (libnpmexec 10, exec). Reads folders only.
 */

import { createHash } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, join, normalize, relative, resolve } from "node:path";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { isFolder } from "../../shared/files/file-system.ts";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { type Env, isFile, valueIn } from "../../shared/programs/find-program.ts";
import { onWindows } from "../../shared/programs/processes.ts";
import { isWanted, type NpxRequest, type PackageSpec, parseNpxCommand } from "./command.ts";
import type { Declined, NpmFacts } from "./npm.ts";

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

/** Name of the cache folder: libnpmexec hashes the packages as the command line writes them, sorted. */
export function cacheFolderName(packages: readonly PackageSpec[]): string {
  const sorted = packages.map(({ raw }) => raw).sort((a, b) => a.localeCompare(b, "en"));
  return createHash("sha512").update(sorted.join("\n")).digest("hex").slice(0, 16);
}

function cacheTree({ cacheDir }: Pick<NpmFolders, "cacheDir">, packages: readonly PackageSpec[]): Tree {
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

interface Manifest {
  name: string;
  version: string;
  /** Command name -> path below the package. */
  bin: Record<string, string>;
}

const unscoped = (name: string): string => name.replace(/^@[^/]+\//, "");

/** Follows npm-normalize-package-bin: no command and no path leads out of the package's folder. */
function normalizeBin(name: string, bin: unknown): Record<string, string> {
  const entries =
    typeof bin === "string" ? [[unscoped(name), bin]] : isObject(bin) ? Object.entries(bin) : [];
  const normal = entries.flatMap(([key, path]): [string, string][] => {
    const command = basename(String(key).replaceAll("\\", "/"));
    if (typeof path !== "string" || command === "" || /^\.+$/.test(command)) return [];
    const inside = normalize(join("/", path)).slice(1);
    return inside === "" ? [] : [[command, inside]];
  });
  return Object.fromEntries(normal);
}

/** `value`: content of a package.json. Undefined if such a package could not be installed. */
export function toManifest(value: unknown): Manifest | undefined {
  if (!isObject(value) || typeof value.name !== "string" || typeof value.version !== "string") {
    return undefined;
  }
  return { name: value.name, version: value.version, bin: normalizeBin(value.name, value.bin) };
}

/** Content of the package.json in a folder; undefined if there is none that can be read. */
async function readPackageJson(folder: string): Promise<Record<string, unknown> | undefined> {
  try {
    const parsed: unknown = JSON.parse(await readTextOrThrow(join(folder, "package.json"), SMALL_FILE_BYTES));
    return isObject(parsed) ? parsed : undefined;
  } catch {
    // A package.json that is absent, unreadable or broken is no package for npx either.
    return undefined;
  }
}

const readManifest = async (folder: string): Promise<Manifest | undefined> =>
  toManifest(await readPackageJson(folder));

/**
 * The command that npx runs for a package (libnpmexec, get-bin-from-manifest): the only command, or any of several
 * names of one file, or the command with the package's own name. Undefined: npx fails.
 */
export function chooseBin({ name, bin }: Manifest): string | undefined {
  if (new Set(Object.values(bin)).size === 1) return Object.keys(bin)[0];
  return Object.hasOwn(bin, unscoped(name)) ? unscoped(name) : undefined;
}

export interface NpxState {
  /** As the command line writes them. */
  packages: string[];
  /** `broken`: an install was interrupted, or files were removed since. `installing`: npm is at work there. */
  kind: "absent" | "installing" | "installed" | "broken";
  /** npx's folder for these packages. */
  folder: string;
  /** What is broken about it; empty otherwise. */
  reason: string;
}

interface NpmHome {
  env: Env;
  home: string;
  platform: NodeJS.Platform;
}

/** npm's cache folder, unless a file of npm's settings names another one. */
function npmCache({ env, home, platform }: NpmHome): string {
  const set = valueIn(env, "npm_config_cache", platform);
  if (set) return set;
  const local = valueIn(env, "LOCALAPPDATA", platform);
  return platform === "win32" && local ? join(local, "npm-cache") : join(home, ".npm");
}

/** npm holds this lock while it installs, and touches it each second; an older one is of an npm that was killed (libnpmexec, with-lock). */
const LOCK = "concurrency.lock";
const LOCK_MS = 60_000;

const isLocked = (folder: string): Promise<boolean> =>
  stat(join(folder, LOCK)).then(
    ({ mtimeMs }) => Date.now() - mtimeMs < LOCK_MS,
    () => false,
  );

/** Undefined for a command that is none of npm's, or that only npm understands. Never rejects. */
export async function npxState(
  command: string,
  args: readonly string[],
  npm: NpmHome,
): Promise<NpxState | undefined> {
  const parsed = parseNpxCommand(command, args, npm.platform);
  if (parsed.kind !== "npx") return undefined;
  const { request } = parsed;
  const tree = cacheTree({ cacheDir: npmCache(npm) }, request.packages);
  const folder = join(tree.modules, "..");
  const about = { packages: request.packages.map(({ raw }) => raw), folder };
  if (!(await isFolder(folder))) return { ...about, kind: "absent", reason: "" };
  if (await isLocked(folder)) return { ...about, kind: "installing", reason: "" };
  if (!(await isComplete(tree))) return { ...about, kind: "broken", reason: "its install was interrupted" };
  const binary = await locate(tree, request);
  if ("reason" in binary) return { ...about, kind: "broken", reason: binary.reason };
  return { ...about, kind: "installed", reason: "" };
}

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
