/**
 * Owns: the servers of installed packages and plugins: each has the name `<package>__<server>`, is as untrusted as a
 * clone, and runs only after a yes that is bound to its definition (trust). Of two servers of one name the first counts.
 * Loaded only if the files of the user or of Pi name any. Must not: search folders, or decide about trust.
 */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isBundle, UNPACK } from "../../../../src/shared/pasted.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { expandHome } from "../entry/interpolate.ts";
import type { NamedFolder } from "../files/files.ts";
import { type ConfigFacts, PACKAGE_FILES, PACKAGES } from "../files/sources.ts";
import { type Format, objectAt } from "../hosts/format.ts";
import {
  type Loader,
  packageProblem,
  type ReadPackage,
  readObject,
  readServers,
  realOf,
  serverNameIn,
  sourceOf,
} from "./loader.ts";
import type { PiPackage } from "./pi-packages.ts";
import { type Plugin, readPlugin } from "./plugins.ts";

/** The files of a package speak as ours do; only what they say of servers counts. */
const packageFormat = (prefix: string): Format => ({
  isOurs: true,
  name: serverNameIn(prefix),
  groups: (root) => ["mcpServers", "mcp-servers"].map((key) => ({ path: [key], servers: root[key] })),
  convert: (entry) => entry,
});

async function readPiPackage(pack: PiPackage, loader: Loader): Promise<ReadPackage[]> {
  const { folder: named, prefix, origin, manifest, files } = pack;
  const folder = (await realOf(named)) ?? named;
  const base = origin === "package" ? { base: { folder } } : {};
  return Promise.all(
    files.map(async ({ path, key, at }): Promise<ReadPackage> => {
      const report = (message: string): ReadPackage => ({
        servers: [],
        problems: [{ ...packageProblem(manifest, { at }, message), key }],
        files: [manifest],
        isThere: true,
      });
      const file = resolve(folder, path);
      if (!isWithin(file, folder)) return report("the path leads out of the package");
      const source = { ...sourceOf(file, origin), ...base };
      const read = await readServers(folder, { source, format: packageFormat(prefix) }, loader);
      const found = read.isThere ? read : report(`there is no file ${path.slice(0, 200)} in the package`);
      return { ...found, files: [manifest, file] };
    }),
  );
}

type NamedPlugin = NamedFolder & { file: string };

/** `path` starts from the folder of the file that names it. */
async function readNamedPlugin({ path, key, at, file }: NamedPlugin, loader: Loader): Promise<ReadPackage> {
  const folder = resolve(dirname(file), expandHome(path.trim(), loader.facts));
  const real = await realOf(folder);
  const correct = "Correct the path, or remove it.";
  const missing = (message: string, read?: ReadPackage, remedy = correct): ReadPackage => ({
    servers: [],
    problems: [{ severity: "error", file, ...at, key, message, remedy }],
    files: read?.files ?? [],
    isThere: false,
  });
  if (real === undefined) {
    // Read all the same, so that a plugin that is put there is noticed.
    await readPlugin({ folder }, loader);
    return missing("there is no such folder");
  }
  if (isBundle(path))
    return missing("a bundle of a server is no plugin, and is not installed here", undefined, UNPACK);
  const read = await readPlugin({ folder: real }, loader);
  return read.isThere
    ? read
    : missing("no plugin is in this folder: it has neither plugin.json nor .claude-plugin/plugin.json", read);
}

/**
 * Which plugins Claude Code has installed and enabled for the session's folder. Its list names the folders, its settings say
 * which are enabled: those of the project win over the user's, and are read only if Pi trusts the project.
 * Source: code.claude.com/docs/en/plugins-reference and settings; the list as version 1 and 2 of Claude Code write it.
 */
const configFolder = ({ env, home }: ConfigFacts): string => env.CLAUDE_CONFIG_DIR || join(home, ".claude");

/** An installation for another project does not count. The narrowest scope wins. */
const SCOPES = ["local", "project", "user", "managed"];

async function installationOf(written: unknown, cwd: string): Promise<string | undefined> {
  // Version 1 has one installation of each plugin.
  const all = (Array.isArray(written) ? written : [written]).filter(isObject).slice(0, PACKAGES);
  const here = await realOf(cwd);
  const fitting = await Promise.all(
    all.map(async ({ scope = "user", projectPath, installPath }) => {
      const rank = SCOPES.indexOf(String(scope));
      const isHere =
        typeof projectPath !== "string" ||
        projectPath === cwd ||
        (here !== undefined && (await realOf(projectPath)) === here);
      const isFit = rank >= 0 && isHere && typeof installPath === "string" && isAbsolute(installPath);
      return isFit ? [{ rank, path: installPath as string }] : [];
    }),
  );
  return fitting.flat().sort((a, b) => a.rank - b.rank)[0]?.path;
}

const isOff = (word: unknown): boolean => word === false || word === null;

/** Of the form `name@marketplace`. A project disables plugins, and enables those of which the user's own file says nothing. */
async function enabledPlugins(
  loader: Loader,
): Promise<{ enabled: ReadonlySet<string>; problems: ConfigProblem[] }> {
  const { facts } = loader;
  const settings = [
    sourceOf(join(configFolder(facts), "settings.json"), "user"),
    ...["settings.json", "settings.local.json"]
      .filter(() => facts.projectTrusted)
      .map((name) => sourceOf(join(facts.cwd, ".claude", name), "project-file")),
  ];
  const read = await Promise.all(settings.map((source) => readObject(loader, source)));
  const [users = {}, ...projects] = read.map(({ value }) => objectAt(value?.root.enabledPlugins));
  const off = Object.entries(users).filter(([, word]) => isOff(word));
  const said = Object.assign({}, users, ...projects, Object.fromEntries(off)) as object;
  const enabled = Object.entries(said).flatMap(([id, word]) => (isOff(word) ? [] : [id]));
  return { enabled: new Set(enabled), problems: read.flatMap(({ problems }) => problems) };
}

/** Never throws. */
async function claudePlugins(loader: Loader): Promise<{ plugins: Plugin[]; problems: ConfigProblem[] }> {
  const { facts } = loader;
  const folder = facts.env.CLAUDE_CODE_PLUGIN_CACHE_DIR || join(configFolder(facts), "plugins");
  const list = sourceOf(join(folder, "installed_plugins.json"), "user");
  const [installed, { enabled, problems }] = await Promise.all([
    readObject(loader, list),
    enabledPlugins(loader),
  ]);
  const named = Object.entries(objectAt(installed.value?.root.plugins)).filter(([id]) => enabled.has(id));
  const found = await Promise.all(
    named.slice(0, PACKAGES).map(async ([id, written]): Promise<Plugin[]> => {
      const path = await installationOf(written, facts.cwd);
      const real = path && (await realOf(path));
      const data = join(folder, "data", id.replace(/[^A-Za-z0-9_-]/g, "-"));
      return real ? [{ folder: real, name: id.replace(/@[^@]*$/, ""), data, isClaude: true }] : [];
    }),
  );
  const more =
    named.length > PACKAGES
      ? [
          packageProblem(
            list.file,
            {},
            `servers of the first ${PACKAGES} plugins are used`,
            "Disable plugins that you do not need.",
          ),
        ]
      : [];
  return { plugins: found.flat(), problems: [...installed.problems, ...problems, ...more] };
}

/** The installed plugins of Claude Code that are enabled. */
export async function readClaudePlugins(loader: Loader): Promise<ReadPackage[]> {
  const { plugins, problems } = await claudePlugins(loader);
  const read = await Promise.all(plugins.map((plugin) => readPlugin(plugin, loader)));
  return [{ servers: [], problems, files: [], isThere: true }, ...read];
}

export interface Packages {
  servers: ServerDefinition[];
  problems: ConfigProblem[];
  files: string[];
}

/** At most `PACKAGE_FILES` files are read at a load: what is beyond is left out, and reported once. */
function bounded(loader: Loader, problems: ConfigProblem[]): Loader {
  let left: number = PACKAGE_FILES;
  return {
    ...loader,
    read: async (source, parse) => {
      if (left-- > 0) return loader.read(source, parse);
      if (left === -1)
        problems.push(
          packageProblem(
            source.file,
            {},
            `packages and plugins have more than ${PACKAGE_FILES} files: this one and others are left out`,
            "Remove packages that you do not need.",
          ),
        );
      return { value: undefined, problems: [], broken: false };
    },
  };
}

/** Adds up: the packages of Pi, the plugins that the user's files name, those of Claude Code. Never throws. */
export async function readPackages(
  wanted: { packages: readonly PiPackage[]; plugins: readonly NamedPlugin[]; ofClaude: boolean },
  given: Loader,
): Promise<Packages> {
  const problems: ConfigProblem[] = [];
  const loader = bounded(given, problems);
  const read = await Promise.all([
    ...wanted.packages.map((one) => readPiPackage(one, loader)),
    ...wanted.plugins.map((one) => readNamedPlugin(one, loader)),
    ...(wanted.ofClaude ? [readClaudePlugins(loader)] : []),
  ]);
  const servers = new Map<string, ServerDefinition>();
  const all = read.flat();
  for (const { server, place } of all.flatMap((one) => one.servers)) {
    const first = servers.get(server.name);
    if (!first) servers.set(server.name, server);
    else
      problems.push({
        ...packageProblem(server.file, {}, `${first.file} has a server ${server.name} already, which counts`),
        ...place,
      });
  }
  return {
    servers: [...servers.values()],
    problems: [...all.flatMap((one) => one.problems), ...problems],
    files: [...new Set(all.flatMap((one) => one.files))],
  };
}
