/**
 * Owns: the loaded configuration: our own files and the hosts that they import, merged into one result. A broken file
 * counts as it was when it was last whole, beside the problem that says where it is broken. Must not: decide about
 * trust.
 */
import { homedir } from "node:os";
import type {
  ConfigProblem,
  RegisteredServer,
  SessionFacts,
} from "../../../../src/shared/protocol/session.ts";
import { isProject, type ServerDefinition } from "../entry/definition.ts";
import type { HostName } from "../entry/schema.ts";
import type { Settings } from "../entry/settings.ts";
import {
  addAll,
  brokenFile,
  emptyFile,
  type FileConfig,
  fileLimits,
  parseConfigText,
} from "../files/files.ts";
import {
  type ConfigFacts,
  type ConfigSource,
  configSources,
  type FileText,
  findWorktree,
  type ReadFile,
  readInTime,
  readText,
} from "../files/sources.ts";
import { type HostFile, hostSources, looksUp, parseHostText } from "../hosts/hosts.ts";
import { boundProblems, type Merged, mergeLayers } from "./layers.ts";

export { boundProblems } from "./layers.ts";

export interface LoadedConfig {
  servers: ServerDefinition[];
  settings: Settings;
  problems: ConfigProblem[];
  /** Every file that was read or looked for, lowest precedence first. */
  files: string[];
  /** The files to watch: none of the project while one of them does not answer, because watching asks it again and again. */
  watched: string[];
  /** The project's files that have not answered yet, with what settles when they do. */
  unanswered: ReadonlyMap<string, Promise<void>>;
  /** Programs that the files import. */
  imports: HostName[];
  /** Files of which nothing can be used now. */
  broken: string[];
  /** The text of each file when it was last whole. */
  texts: ReadonlyMap<string, string>;
  /** Each file, as this load found it. */
  reads: ReadonlyMap<string, FileText>;
}

/** The facts of a session and of this machine. */
export function configFacts(
  session: Pick<SessionFacts, "agentDir" | "cwd" | "projectTrusted"> & {
    configPath?: string | undefined;
    onlyServers?: readonly string[] | undefined;
    registered?: readonly RegisteredServer[] | undefined;
  },
): ConfigFacts {
  const { agentDir, cwd, projectTrusted, configPath, onlyServers, registered } = session;
  const machine = { platform: process.platform, home: homedir(), env: process.env };
  return { agentDir, cwd, projectTrusted, configPath, onlyServers, registered, ...machine };
}

interface Reading {
  facts: ConfigFacts;
  /** The texts of the load before. */
  lastTexts: ReadonlyMap<string, string>;
  texts: Map<string, string>;
  broken: string[];
  read: (source: ConfigSource) => Promise<FileText>;
}

const unreadable = (
  source: ConfigSource,
  { reason, remedy }: Extract<FileText, { kind: "unreadable" }>,
): FileConfig =>
  brokenFile(source, {
    severity: "error",
    line: 1,
    column: 1,
    message: `cannot be read: ${reason}`,
    remedy,
  });

const missing = (source: ConfigSource): FileConfig => {
  if (!source.required) return emptyFile(source);
  const { problems } = brokenFile(source, {
    severity: "error",
    line: 1,
    column: 1,
    message: "there is no such file",
    remedy: "Correct --mcp-config, or create the file.",
  });
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

async function readOwn(source: ConfigSource, reading: Reading): Promise<FileConfig> {
  return withLastGood(await reading.read(source), source, reading, {
    text: (text) => parseConfigText(text, source),
    failed: (config) => config,
  });
}

async function readHost(host: HostName, reading: Reading): Promise<Omit<HostFile, "broken">> {
  const { facts } = reading;
  const sources = hostSources(host, facts);
  const texts = await Promise.all(sources.map(reading.read));
  const all: Omit<HostFile, "broken"> = { servers: [], problems: [] };
  for (const [i, source] of sources.entries()) {
    const before = [...all.servers];
    const { servers, problems } = withLastGood<HostFile>(texts[i] ?? { kind: "missing" }, source, reading, {
      text: (text) => parseHostText(text, { host, source, facts, before }),
      failed: ({ problems, broken }) => ({ servers: [], problems, broken }),
    });
    addAll(all.servers, servers);
    addAll(all.problems, problems);
  }
  return all;
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
    if (found.kind === "unreadable" && found.later) unanswered.set(file, found.later);
    reads.set(file, found);
    return found;
  };
  const texts = new Map<string, string>();
  const reading: Reading = { facts: given, lastTexts: last?.texts ?? new Map(), texts, broken: [], read };
  const sources = configSources(given);
  const files = await Promise.all(sources.map((source) => readOwn(source, reading)));
  const imports = [...new Set(files.flatMap((file) => file.imports))];
  // Most hosts look into the session's folder only.
  if (imports.some(looksUp)) reading.facts = { ...given, worktree: await findWorktree(given.cwd) };
  const { facts } = reading;
  const hosts = await Promise.all(imports.map((host) => readHost(host, reading)));
  const registered = facts.registered ?? [];
  const merged = onlyNamed(
    mergeLayers({ registered, hosts: hosts.map(({ servers }) => servers), files }),
    facts.onlyServers,
  );
  const hostFiles = imports.flatMap((host) => hostSources(host, facts).map(({ file }) => file));
  const all = [...new Set([...hostFiles, ...sources.map(({ file }) => file)])];
  return {
    servers: merged.servers,
    settings: merged.settings,
    problems: boundProblems([...hosts, ...files, merged].flatMap(({ problems }) => problems)),
    files: all,
    watched: unanswered.size === 0 ? all : all.filter((file) => !projects.has(file)),
    unanswered,
    imports,
    broken: reading.broken,
    texts: reading.texts,
    reads,
  };
}
