/**
 * Owns: the loaded configuration: our own files and the hosts that they import, merged into one result. A broken file
 * counts as it was when it was last whole, beside the problem that says where it is broken. Must not: decide about
 * trust.
 */
import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { HostName, ImportName } from "../../../../src/shared/import-names.ts";
import type { ConfigProblem, SessionFacts } from "../../../../src/shared/protocol/session.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import { isProject, type ServerDefinition } from "../entry/definition.ts";
import { expandHome, pathsOf } from "../entry/interpolate.ts";
import { type Settings, STRICTEST, UNTIL_ALL } from "../entry/settings.ts";
import {
  addAll,
  brokenFile,
  emptyFile,
  type FileConfig,
  fileLimits,
  parseConfigText,
} from "../files/files.ts";
import { endOf } from "../files/path-stops.ts";
import {
  type ConfigFacts,
  type ConfigSource,
  configSources,
  type FileText,
  FOLDERS_ABOVE,
  findWorkspace,
  findWorktree,
  foldersUp,
  policyFile,
  type ReadFile,
  readInTime,
  readText,
} from "../files/sources.ts";
import { type HostFile, hostSources, looksUp, parseHostText } from "../hosts/hosts.ts";
import { type NamedRules, underRules } from "../hosts/named-rules.ts";
import type { Loader } from "../packages/loader.ts";
import type { Packages } from "../packages/packages.ts";
import { listPackages, type PiPackage } from "../packages/pi-packages.ts";
import type { Denied, Policy } from "../policy/policy.ts";
import { boundProblems, type Merged, mergeLayers } from "./layers.ts";

export interface LoadedConfig {
  servers: ServerDefinition[];
  settings: Settings;
  problems: ConfigProblem[];
  /** Every file that has servers or would have, lowest precedence first. */
  files: string[];
  /** Folders above the session's whose `.mcp.json` counts. */
  ancestors: readonly string[];
  /** The files to watch: none of the project while one of them does not answer, because watching asks it again and again. */
  watched: string[];
  /** The project's files that have not answered yet, with what settles when they do. */
  unanswered: ReadonlyMap<string, Promise<void>>;
  /** Programs that the files import. */
  imports: ImportName[];
  /** The policy of this machine; undefined: it has none. It is read from the disk each time, and no edit of it waits. */
  policy: Policy | undefined;
  /** Servers that the policy does not let run, each with the reason. */
  denied: readonly Denied[];
  /** Files of which nothing can be used now. */
  broken: string[];
  /** Edits wait, and only because nobody knows what a broken file says of `hotReload`. */
  waitsForMending: boolean;
  /** The text of each file when it was last whole. */
  texts: ReadonlyMap<string, string>;
  /** Each file, as this load found it. */
  reads: ReadonlyMap<string, FileText>;
}

/** The facts of a session and of this machine. */
export function configFacts(
  session: Pick<SessionFacts, "agentDir" | "cwd" | "projectTrusted"> &
    Partial<Pick<SessionFacts, "configPath" | "onlyServers" | "registered">>,
): ConfigFacts {
  const { agentDir, cwd, projectTrusted, configPath, onlyServers, registered } = session;
  const machine = {
    platform: process.platform,
    home: homedir(),
    env: process.env,
    policyFile: policyFile(process.platform),
  };
  return { agentDir, cwd, projectTrusted, configPath, onlyServers, registered, ...machine };
}

/** What cannot be looked at is there. */
const isNotMissing = (error: NodeJS.ErrnoException): boolean =>
  error.code !== "ENOENT" && error.code !== "ENOTDIR";

interface Reading {
  facts: ConfigFacts;
  /** The texts of the load before. */
  lastTexts: ReadonlyMap<string, string>;
  texts: Map<string, string>;
  broken: string[];
  read: (source: ConfigSource) => Promise<FileText>;
}

/** Whether a skipped file is there is not known: the mistake is that of the files that do not answer. */
const unreadable = (
  source: ConfigSource,
  { reason, remedy, isSkipped }: Extract<FileText, { kind: "unreadable" }>,
): FileConfig =>
  isSkipped
    ? { ...emptyFile(source), broken: true }
    : brokenFile(source, { message: `cannot be read: ${reason}`, remedy });

const missing = (source: ConfigSource): FileConfig => {
  if (!source.required) return emptyFile(source);
  const remedy = "Correct --mcp-config, or create the file.";
  const { problems } = brokenFile(source, { message: "there is no such file", remedy });
  return { ...emptyFile(source), problems };
};

/** The problem of a broken file whose last whole text stays in use. */
const stillInUse = (problem: ConfigProblem): ConfigProblem => ({
  ...problem,
  remedy: "Correct it there; what the file held before stays in use until then.",
});

/** The result of a text. If the text is broken: the result of the file's last whole text. */
function withLastGood<T extends { problems: ConfigProblem[]; broken: boolean }>(
  read: FileText,
  source: ConfigSource,
  { lastTexts, texts, broken }: Reading,
  parse: { text: (text: string) => T; failed: (config: FileConfig) => T },
): T {
  if (read.kind === "missing") return parse.failed(missing(source));
  const now = read.kind === "text" ? parse.text(read.text) : parse.failed(unreadable(source, read));
  if (!now.broken) {
    if (read.kind === "text") texts.set(source.file, read.text);
    return now;
  }
  broken.push(source.file);
  const last = lastTexts.get(source.file);
  if (last === undefined) return now;
  texts.set(source.file, last);
  return { ...parse.text(last), problems: now.problems.map(stillInUse) };
}

/** What the user has set in a broken file is not known: protection, however much of it. */
const protecting = (config: FileConfig): FileConfig => ({
  ...config,
  settings: STRICTEST,
  problems: config.problems.map((one) => ({ ...one, remedy: `${one.remedy} ${UNTIL_ALL}` })),
});

/** A file that somebody has only made, or is about to write, sets nothing. */
const isBlank = (read: FileText): boolean => read.kind === "text" && read.text.trim() === "";

const foreign = ({ file }: ConfigSource): ConfigProblem => ({
  severity: "warning",
  file,
  message:
    "is not UTF-8 text: other characters than those of ASCII are read wrongly, and it cannot be changed from here",
  remedy: "Save it as UTF-8.",
});

async function readOwn(source: ConfigSource, reading: Reading): Promise<FileConfig> {
  const read = await reading.read(source);
  const config = withLastGood<FileConfig>(read, source, reading, {
    text: (text) => parseConfigText(text, source),
    failed: (failed) => failed,
  });
  if (read.kind === "text" && read.isForeign) config.problems.push(foreign(source));
  return config.broken && source.origin === "user" && !isBlank(read) ? protecting(config) : config;
}

/** Each file that says so is broken or has a mistake there: STRICTEST stands in for what it says. */
const waitsForMending = (settings: Settings, files: readonly FileConfig[]): boolean =>
  settings.hotReload !== "on" &&
  files.every((file) => file.broken || file.isUnsure || (file.settings.hotReload ?? "on") === "on");

async function readHost(host: HostName, reading: Reading): Promise<Pick<HostFile, "servers" | "problems">> {
  const { facts } = reading;
  const sources = hostSources(host, facts);
  const texts = await Promise.all(sources.map(reading.read));
  const all: Pick<HostFile, "servers" | "problems"> = { servers: [], problems: [] };
  const ruling: NamedRules[] = [];
  for (const [i, source] of sources.entries()) {
    const before = [...all.servers];
    const { servers, problems, rules } = withLastGood<HostFile>(
      texts[i] ?? { kind: "missing" },
      source,
      reading,
      {
        text: (text) => parseHostText(text, { host, source, facts, before }),
        failed: ({ problems, broken }) => ({ servers: [], places: new Map(), problems, broken }),
      },
    );
    addAll(all.servers, servers);
    addAll(all.problems, problems);
    if (rules) ruling.push(rules);
    // A clone can have many folders with files of many servers.
    if (servers.length > 0) await nextTurn();
  }
  const { servers, problems } = await underRules(all.servers, ruling);
  return { servers, problems: [...problems, ...all.problems] };
}

/** Reads files of packages as ours are read. */
const loaderOf = (reading: Reading): Loader => ({
  facts: reading.facts,
  read: async (source, parse) =>
    withLastGood(await reading.read(source), source, reading, {
      text: parse,
      failed: ({ problems, broken }) => ({ value: undefined, problems, broken }),
    }),
});

/** The folders between the repository's root and the session's, as far as the user's files allow, the outermost first. */
async function ancestorsOf(facts: ConfigFacts, files: readonly FileConfig[]): Promise<string[]> {
  const named = files.filter(({ source }) => !isProject(source.origin));
  const roots = named.findLast(({ settings }) => settings.ancestorConfigRoots)?.settings.ancestorConfigRoots;
  if (!roots?.length || !facts.projectTrusted) return [];
  const { resolve } = pathsOf(facts.platform);
  const worktree = await findWorktree(facts.cwd);
  const above = foldersUp({ ...facts, worktree }).slice(0, -1);
  const ends = await Promise.all(roots.map((root) => endOf(resolve(facts.home, expandHome(root, facts)))));
  const isNamed = async (folder: string): Promise<boolean> => {
    const end = await endOf(folder);
    return ends.some((root) => isWithin(end, root, facts.platform));
  };
  const kept = await Promise.all(
    above.slice(-FOLDERS_ABOVE).map(async (folder) => ((await isNamed(folder)) ? [folder] : [])),
  );
  return kept.flat();
}

/** The servers that the session may have. A name that no file defines is a mistake of whoever started the session. */
function onlyNamed(merged: Merged, names: readonly string[] | undefined): Merged {
  if (names === undefined) return merged;
  const servers = merged.servers.filter(({ name }) => names.includes(name));
  const unknown = names.filter((name) => !servers.some((server) => server.name === name));
  const problems = unknown.map(
    (name): ConfigProblem => ({
      severity: "warning",
      file: "--mcp-servers, MCP_SERVERS",
      message: `no file defines a server named ${name}, so this session does not have it`,
      remedy: "Correct the name; /mcp of a session without the option lists all servers.",
    }),
  );
  return { ...merged, servers, problems: [...merged.problems, ...problems] };
}

/** What the policy of this machine lets run. It beats every other file, and every option. */
async function judged(
  merged: Merged,
  { policyFile: file }: ConfigFacts,
): Promise<Merged & Pick<LoadedConfig, "policy" | "denied">> {
  const isThere = file !== undefined && (await lstat(file).then(() => true, isNotMissing));
  if (!isThere) return { ...merged, policy: undefined, denied: [] };
  const { readPolicy, underPolicy } = await import("../policy/policy.ts");
  const policy = await readPolicy(file);
  if (!policy) return { ...merged, policy, denied: [] };
  const { servers, denied } = underPolicy(policy, merged.servers);
  const problems = policy.problem ? [policy.problem, ...merged.problems] : merged.problems;
  return { ...merged, servers, problems, policy, denied };
}

/** Our own files, lowest precedence first, and the packages that Pi's settings list. */
async function readOurs(reading: Reading) {
  const { facts } = reading;
  const own = configSources(facts);
  const [first, listed] = await Promise.all([
    Promise.all(own.map((source) => readOwn(source, reading))),
    listPackages(loaderOf(reading)),
  ]);
  const ancestors = await ancestorsOf(facts, first);
  const known = new Map(first.map((file) => [file.source.file, file]));
  const files = await Promise.all(
    configSources({ ...facts, ancestors }).map(
      (source) => known.get(source.file) ?? readOwn(source, reading),
    ),
  );
  return { ancestors, files, listed };
}

const NONE: Packages = { servers: [], problems: [], files: [] };

async function readInstalled(
  {
    files,
    listed,
    ofClaude,
  }: { files: readonly FileConfig[]; listed: { packages: PiPackage[] }; ofClaude: boolean },
  reading: Reading,
): Promise<Packages> {
  const plugins = files.flatMap(({ source, plugins }) =>
    plugins.map((plugin) => ({ ...plugin, file: source.file })),
  );
  const { packages } = listed;
  if (packages.length + plugins.length === 0 && !ofClaude) return NONE;
  const { readPackages } = await import("../packages/packages.ts");
  return readPackages({ packages, plugins, ofClaude }, loaderOf(reading));
}

/**
 * Loads everything. Never throws because of a file. `last`: the load before, if there was one. `from`: reads a file;
 * default: from the disk.
 */
export async function loadConfig(
  given: ConfigFacts,
  last?: LoadedConfig,
  from: ReadFile = readText,
): Promise<LoadedConfig> {
  const reads = new Map<string, FileText>();
  const unanswered = new Map<string, Promise<void>>();
  const projects = new Set<string>();
  const read = async (source: ConfigSource): Promise<FileText> => {
    const { file, origin } = source;
    const { bytes } = fileLimits(source);
    const found = isProject(origin) ? await readInTime(file, bytes, from) : await from(file, bytes);
    if (isProject(origin)) projects.add(file);
    const later = found.kind === "unreadable" ? found.later : undefined;
    if (later) unanswered.set(file, later);
    // What a user's file said before, or that there was none, counts until it answers: nothing of the user is left out or stricter.
    const known = later && !isProject(origin) ? (last?.reads.get(file) ?? found) : found;
    reads.set(file, known);
    return known;
  };
  const texts = new Map<string, string>();
  const reading: Reading = { facts: given, lastTexts: last?.texts ?? new Map(), texts, broken: [], read };
  const { ancestors, files, listed } = await readOurs(reading);
  const sources = files.map(({ source }) => source);
  const imports = [...new Set(files.flatMap((file) => file.imports))];
  const programs = imports.filter((name) => name !== "claude-plugins");
  // Most hosts look into the session's folder only.
  if (programs.some(looksUp))
    reading.facts = { ...given, ...(await findWorkspace(given.cwd, given.platform)) };
  const { facts } = reading;
  const [hosts, packages] = await Promise.all([
    Promise.all(programs.map((host) => readHost(host, reading))),
    readInstalled({ files, listed, ofClaude: programs.length < imports.length }, reading),
  ]);
  const registered = facts.registered ?? [];
  const unjudged = onlyNamed(
    mergeLayers({
      registered,
      packages: packages.servers,
      hosts: hosts.map(({ servers }) => servers),
      files,
    }),
    facts.onlyServers,
  );
  const { policy, denied, ...merged } = await judged(unjudged, facts);
  const hostFiles = programs.flatMap((host) => hostSources(host, facts).map(({ file }) => file));
  const all = [
    ...new Set([
      ...hostFiles,
      ...sources.map(({ file }) => file),
      ...packages.files.filter((file) => reads.has(file)),
    ]),
  ];
  const ofPolicy = facts.policyFile === undefined ? [] : [facts.policyFile];
  const watched = [...new Set([...all, ...[...reads.keys()].sort(), ...ofPolicy])];
  return {
    servers: merged.servers,
    settings: merged.settings,
    problems: boundProblems(
      [packages, listed, ...hosts, ...files, merged].flatMap(({ problems }) => problems),
    ),
    files: all,
    policy,
    denied,
    ancestors,
    watched: unanswered.size === 0 ? watched : watched.filter((file) => !projects.has(file)),
    unanswered,
    imports,
    broken: reading.broken,
    waitsForMending: waitsForMending(merged.settings, files),
    texts: reading.texts,
    reads,
  };
}
