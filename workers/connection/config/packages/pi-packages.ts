/**
 * Owns: which packages Pi's settings list, where Pi has installed them, an older Pi too, and which files of servers each names in
 * its package.json (`pi.mcp`). No folder is searched. Source: core/package-manager.js and utils/git.js of Pi 1.5.2.
 */
import { fileURLToPath } from "node:url";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { readRegularText, SMALL_FILE_BYTES } from "../../../shared/files/read-regular.ts";
import type { Origin } from "../entry/definition.ts";
import { expandHome, pathsOf } from "../entry/interpolate.ts";
import { kindOf } from "../entry/mistakes.ts";
import type { Position } from "../files/document.ts";
import { type ConfigFacts, PACKAGE_SERVER_FILES, PACKAGES } from "../files/sources.ts";
import { type Loader, packageProblem, plainName, readObject, realOf, sourceOf } from "./loader.ts";

export interface PiPackage {
  /** What stands before the names of its servers. */
  prefix: string;
  folder: string;
  /** Whose settings list it: `package` for the user's, `project-file` for the project's. */
  origin: Origin;
  manifest: string;
  /** The paths of `pi.mcp`, as written. */
  files: { path: string; key: string; at: Position }[];
}

interface ListedPackages {
  /** Those with `pi.mcp`. */
  packages: PiPackage[];
  problems: ConfigProblem[];
}

const HOSTED: Readonly<Record<string, string>> = {
  github: "github.com",
  gitlab: "gitlab.com",
  bitbucket: "bitbucket.org",
};

/** Host and path of a repository, as Pi names the folder of its clone. */
function repositoryOf(source: string): { host: string; path: string } | undefined {
  const text = source.replace(/^git:/, "").trim();
  const scp = /^git@([^:]+):(.+)$/.exec(text);
  if (scp) return { host: scp[1] ?? "", path: scp[2] ?? "" };
  if (/^(?:https?|ssh|git):\/\//i.test(text)) {
    const url = URL.parse(text);
    return url ? { host: url.hostname, path: url.pathname } : undefined;
  }
  if (!source.startsWith("git:")) return undefined;
  const short = /^(github|gitlab|bitbucket):(.+)$/.exec(text);
  if (short) return { host: HOSTED[short[1] ?? ""] ?? "", path: short[2] ?? "" };
  const [host = "", ...path] = text.split("/");
  return host.includes(".") || path.length > 1
    ? { host, path: path.join("/") }
    : { host: "github.com", path: text };
}

/** The folders below Pi's `git`; undefined if the source names no repository, or a place outside of that folder. */
function clonePath(source: string): string[] | undefined {
  const found = repositoryOf(source);
  if (!found) return undefined;
  const host = found.host.replace(/^www\./, "");
  const named = found.path.replace(/^\/+/, "").replace(/[@#].*$/s, "");
  const parts = named
    .replace(/\/-\/.*$/s, "")
    .replace(/\/+$/, "")
    .replace(/\.git$/, "")
    .split("/");
  // On these hosts more is a branch or a folder.
  const path = host === "github.com" || host === "bitbucket.org" ? parts.slice(0, 2) : parts;
  const isUnsafe = (part: string): boolean => /^(?:\.{0,2})$|[\\\0]|%/.test(part);
  return host === "" || path.length < 2 || [host, ...path].some(isUnsafe)
    ? undefined
    : [host, ...path.with(-1, (path.at(-1) ?? "").replace(/\.git$/, ""))];
}

const NPM = /^npm:\s*((?:@[a-z0-9~_.-]+\/)?[a-z0-9~_-][a-z0-9~_.-]*)(?:@.*)?$/is;

/** Where Pi installs a source. `base`: the agent folder, or `.pi` of the project. Undefined: it is no package of Pi. */
export function folderOfSource(source: string, base: string, facts: ConfigFacts): string | undefined {
  const { join, resolve } = pathsOf(facts.platform);
  if (source.startsWith("npm:")) {
    const name = NPM.exec(source)?.[1];
    return name === undefined || name.includes("..") ? undefined : join(base, "npm", "node_modules", name);
  }
  const text = source.trim();
  if (/^(?:git|https?|ssh):/i.test(text)) {
    const path = clonePath(text);
    return path && join(base, "git", ...path);
  }
  if (text === "" || text.includes("\0") || /^(?:github|builtin):/.test(text)) return undefined;
  if (!text.startsWith("file:")) return resolve(base, expandHome(text, facts));
  return URL.canParse(text) && new URL(text).host === "" ? fileURLToPath(text) : undefined;
}

/**
 * Where npm installs globally, by what says its prefix (npm's config and folders pages). Pi asks npm, which would cost each start
 * a third of a second.
 */
async function globalFolder({ platform, env, home }: ConfigFacts): Promise<string> {
  const { join, dirname } = pathsOf(platform);
  const read = await readRegularText(join(home, ".npmrc"), SMALL_FILE_BYTES);
  const text = read.kind === "text" ? read.text : "";
  const [, written] = /^[ \t]*prefix[ \t]*=[ \t]*"?([^"\r\n]*[^"\s])/m.exec(text) ?? [];
  const filled = written?.replace(/\$\{(\w+)\}/g, (all, name: string) => env[name] ?? all);
  const named = env.npm_config_prefix ?? env.NPM_CONFIG_PREFIX ?? filled;
  // Homebrew has a prefix for all that it installs.
  const ofNode = dirname(dirname(process.execPath)).replace(/\/Cellar\/node[^/]*\/[^/]+$/, "");
  const isWindows = platform === "win32";
  const usual = isWindows ? join(env.APPDATA ?? home, "npm") : ofNode;
  const prefix = named === undefined ? usual : expandHome(named, { home, platform });
  return join(prefix, ...(isWindows ? [] : ["lib"]), "node_modules");
}

interface List {
  file: string;
  base: string;
  origin: Origin;
  ofPackages: Origin;
}

/** The settings of Pi that list packages. A project's are read only if Pi trusts the project. */
function listsOf({ agentDir, cwd, platform, projectTrusted }: ConfigFacts): List[] {
  const { join } = pathsOf(platform);
  const own: List = {
    file: join(agentDir, "settings.json"),
    base: agentDir,
    origin: "user",
    ofPackages: "package",
  };
  const folder = join(cwd, ".pi");
  const project: List = {
    file: join(folder, "settings.json"),
    base: folder,
    origin: "project-pi",
    ofPackages: "project-file",
  };
  return projectTrusted && folder !== agentDir ? [own, project] : [own];
}

interface Listed {
  folder: string;
  origin: Origin;
  /** The name that npm gives; undefined: package.json says it. */
  name: string | undefined;
}

async function readList(
  list: List,
  loader: Loader,
): Promise<{ listed: Listed[]; problems: ConfigProblem[] }> {
  const { value, problems } = await readObject(loader, sourceOf(list.file, list.origin));
  const { packages = [] } = value?.root ?? {};
  const listed: Listed[] = [];
  const report = (path: string[], message: string, remedy: string): void =>
    void problems.push(packageProblem(list.file, { at: value?.document.at(path), path }, message, remedy));
  if (!Array.isArray(packages)) {
    report(["packages"], `expected a list, found ${kindOf(packages)}`, "Correct it: Pi reads it too.");
    return { listed, problems };
  }
  if (packages.length > PACKAGES) {
    const message = `has ${packages.length.toLocaleString("en")} packages; servers of the first ${PACKAGES} are used`;
    report(["packages"], message, "Remove packages that you do not need.");
  }
  for (const entry of packages.slice(0, PACKAGES)) {
    const source: unknown = isObject(entry) ? entry.source : entry;
    // A project's entry of this kind only filters what another list names; Pi reports entries that are wrong.
    if (typeof source !== "string" || (isObject(entry) && entry.autoload === false)) continue;
    const folder = folderOfSource(source, list.base, loader.facts);
    if (folder !== undefined) listed.push({ folder, origin: list.ofPackages, name: NPM.exec(source)?.[1] });
  }
  return { listed, problems };
}

/** Most packages have no servers, and finding the places in package.json would cost each start 4 ms. */
function namesNothing(text: string): boolean {
  try {
    const manifest: unknown = JSON.parse(withoutBom(text));
    return isObject(manifest) && (!isObject(manifest.pi) || manifest.pi.mcp === undefined);
  } catch {
    // What is wrong, and where, the other reader says.
    return false;
  }
}

/** Undefined: its package.json names no servers. `isOld`: an older Pi may have installed it globally. */
async function readManifest(
  { folder, origin, name }: Listed,
  loader: Loader,
  isOld = origin === "package" && name !== undefined,
): Promise<{ found: PiPackage | undefined; problems: ConfigProblem[] }> {
  const { join, basename } = pathsOf(loader.facts.platform);
  const manifest = join(folder, "package.json");
  const { value, problems } = await readObject(loader, sourceOf(manifest, origin), namesNothing);
  if (isOld && name !== undefined && !value && (await realOf(folder)) === undefined) {
    const old = join(await globalFolder(loader.facts), name);
    if ((await realOf(old)) !== undefined) return readManifest({ folder: old, origin, name }, loader, false);
  }
  const named = isObject(value?.root.pi) ? value.root.pi.mcp : undefined;
  if (!value || named === undefined) return { found: undefined, problems };
  const report = (path: string[], message: string): void =>
    void problems.push(packageProblem(manifest, { at: value.document.at(path), path }, message));
  const isList = Array.isArray(named);
  const all: unknown[] = isList ? named : [named];
  if (all.length > PACKAGE_SERVER_FILES)
    report(
      ["pi", "mcp"],
      `has ${all.length.toLocaleString("en")} items; the first ${PACKAGE_SERVER_FILES} are used`,
    );
  const files: PiPackage["files"] = [];
  for (const [i, path] of all.slice(0, PACKAGE_SERVER_FILES).entries()) {
    const key = isList ? ["pi", "mcp", String(i)] : ["pi", "mcp"];
    if (typeof path === "string" && path !== "")
      files.push({ path, key: key.join("."), at: value.document.at(key) });
    else report(key, `expected the path of a file, or a list of paths, found ${kindOf(path)}`);
  }
  const written = name ?? (typeof value.root.name === "string" ? value.root.name : basename(folder));
  return { found: { prefix: plainName(written, "package"), folder, origin, manifest, files }, problems };
}

/** The installed packages that name servers, the user's first. A folder that two lists name counts once. Never throws. */
export async function listPackages(loader: Loader): Promise<ListedPackages> {
  const lists = await Promise.all(listsOf(loader.facts).map((list) => readList(list, loader)));
  const byFolder = new Map<string, Listed>();
  for (const listed of lists.flatMap((list) => list.listed))
    if (!byFolder.has(listed.folder)) byFolder.set(listed.folder, listed);
  const read = await Promise.all([...byFolder.values()].map((listed) => readManifest(listed, loader)));
  return {
    packages: read.flatMap(({ found }) => found ?? []),
    problems: [...lists, ...read].flatMap(({ problems }) => problems),
  };
}
