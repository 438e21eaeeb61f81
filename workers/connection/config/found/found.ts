/**
 * Owns: the servers that other programs have configured, whether they are imported or not, for the person who chooses
 * among them. Reads each program's files as an import would. Must not: write, decide, or show a secret.
 */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HOSTS, type HostName, type ImportName } from "../../../../src/shared/import-names.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { addAll, brokenFile, fileLimits } from "../files/files.ts";
import {
  type ConfigFacts,
  type ConfigSource,
  findWorkspace,
  readInTime,
  readText,
} from "../files/sources.ts";
import { DIALECTS } from "../hosts/dialects.ts";
import { hostSources, looksUp, parseHostText } from "../hosts/hosts.ts";
import { type NamedRules, underRules } from "../hosts/named-rules.ts";
import type { Loader } from "../packages/loader.ts";

interface HostFileFound {
  source: ConfigSource;
  /** Those that count for the program: a later file may replace a server, but no file of a project one of the user's own. */
  servers: ServerDefinition[];
}

export interface HostFound {
  host: ImportName;
  /** Files that exist. */
  files: HostFileFound[];
  problems: ConfigProblem[];
}

/** Never throws. Answers undefined if none of the files exists. */
async function findHost(host: HostName, facts: ConfigFacts): Promise<HostFound | undefined> {
  const found: HostFound = { host, files: [], problems: [] };
  const before: ServerDefinition[] = [];
  const ruling: NamedRules[] = [];
  const all = hostSources(host, facts);
  const own = new Set(all.filter(({ origin }) => origin === "import").map(({ file }) => file));
  // In the home folder the user's file can be the project's as well.
  const sources = all.filter(({ file, origin }) => origin === "import" || !own.has(file));
  const texts = await Promise.all(sources.map((source) => readText(source.file, fileLimits(source).bytes)));
  for (const [i, source] of sources.entries()) {
    const read = texts[i];
    if (!read || read.kind === "missing") continue;
    if (read.kind === "unreadable") {
      const { reason, remedy } = read;
      const message = `cannot be read: ${reason}`;
      const broken = brokenFile(source, { severity: "warning", message, remedy });
      addAll(found.problems, broken.problems);
      found.files.push({ source, servers: [] });
      continue;
    }
    const { servers, problems, rules } = parseHostText(read.text, {
      ...{ host, source, facts },
      before: [...before],
    });
    if (rules) ruling.push(rules);
    addAll(before, servers);
    addAll(found.problems, problems);
    found.files.push({ source, servers });
    if (servers.length > 0) await nextTurn();
  }
  if (found.files.length === 0) return undefined;
  const last = new Map(before.map((server) => [`${server.origin} ${server.name}`, server]));
  const counting = await underRules([...last.values()], ruling);
  addAll(found.problems, counting.problems);
  const files = found.files.flatMap(({ source }) =>
    byOrigin(
      source,
      // A later file may have changed it.
      counting.servers.filter(({ file }) => file === source.file),
    ),
  );
  return { ...found, files };
}

/** A file of the user's can change a server of the project, whose command is the project's all the same. */
function byOrigin(source: ConfigSource, servers: ServerDefinition[]): HostFileFound[] {
  const [own = [], others = []] = [true, false].map((isOwn) =>
    servers.filter(({ origin }) => (origin === source.origin) === isOwn),
  );
  const [first] = others;
  const changed = first ? [{ source: { ...source, origin: first.origin }, servers: others }] : [];
  return [{ source, servers: own }, ...changed];
}

/** How people call what can be imported. */
export const titleOf = (host: ImportName): string =>
  host === "claude-plugins" ? "Claude Code's plugins" : DIALECTS[host].title;

/** The plugins that Claude Code has installed and enabled; undefined if there are none. Never throws. */
async function findClaudePlugins(facts: ConfigFacts): Promise<HostFound | undefined> {
  const loader: Loader = {
    facts,
    read: async (source, parse) => {
      const read = await readInTime(source.file, fileLimits(source).bytes);
      return read.kind === "text" ? parse(read.text) : { value: undefined, problems: [], broken: false };
    },
  };
  const { readClaudePlugins } = await import("../packages/packages.ts");
  const read = await readClaudePlugins(loader);
  const byFile = Map.groupBy(
    read.flatMap(({ servers }) => servers.map(({ server }) => server)),
    ({ file }) => file,
  );
  const files = [...byFile].map(([file, servers]): HostFileFound => {
    const source: ConfigSource = { file, origin: "package", required: false };
    return { source, servers };
  });
  const problems = read.flatMap((one) => one.problems);
  return files.length + problems.length === 0 ? undefined : { host: "claude-plugins", files, problems };
}

/** All programs of which a file exists. Never throws. */
export async function findHosts(given: ConfigFacts): Promise<HostFound[]> {
  const facts = { ...given, ...(HOSTS.some(looksUp) ? await findWorkspace(given.cwd, given.platform) : {}) };
  const found = await Promise.all([...HOSTS.map((host) => findHost(host, facts)), findClaudePlugins(facts)]);
  return found.filter((one) => one !== undefined);
}

/** A hash of a server as it was found: the file, the name, and all that the file says of it. */
export const foundId = ({ file, name, raw, origin }: ServerDefinition): string =>
  createHash("sha256").update(canonical({ file, name, raw, origin })).digest("hex");
