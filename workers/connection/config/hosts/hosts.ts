/** Reads one file of another program: its servers as our definitions. A mistake in it is a warning. Pure. */
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { type Origin, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts, ConfigSource } from "../files/files.ts";
import {
  addAll,
  brokenFile,
  fileLimits,
  parseJsonc,
  parseTomlText,
  tooManyServers,
  toProblems,
  withoutBom,
} from "../files/files.ts";
import { type HostEntry, hostEntries, isData } from "./formats.ts";

export { hostSources } from "./places.ts";

export interface HostFile {
  servers: ServerDefinition[];
  problems: ConfigProblem[];
  broken: boolean;
}

const NO_SERVERS: HostFile = { servers: [], problems: [], broken: false };

interface Completed {
  raw: unknown;
  origin: Origin;
  /** Undefined: by the file that is read. */
  definedByProject?: boolean;
}

/**
 * OpenCode merges its files key by key: an entry without a target changes one of a file before. What then
 * runs is trusted no further than where its command or URL stands.
 */
function completed(
  host: HostName,
  entry: HostEntry,
  { origin, before }: { origin: Origin; before: ReadonlyMap<string, ServerDefinition> },
): Completed | undefined {
  if (host !== "opencode" || !isData(entry.raw) || (entry.raw.command ?? entry.raw.url))
    return { raw: entry.raw, origin };
  const base = before.get(entry.name);
  if (!base) return undefined;
  return {
    raw: { ...base.raw, ...entry.raw },
    origin: base.project ? base.origin : origin,
    definedByProject: base.definedByProject,
  };
}

/** `before`: servers of the host's files of lower precedence. */
export function parseHostText(
  text: string,
  options: { host: HostName; source: ConfigSource; facts: ConfigFacts; before: readonly ServerDefinition[] },
): HostFile {
  const { host, source, facts, before } = options;
  if (text.trim() === "") return NO_SERVERS;
  const limits = fileLimits(source);
  const parsed = (host === "codex" ? parseTomlText : parseJsonc)(withoutBom(text), limits.values);
  if ("problem" in parsed) {
    const { problems } = brokenFile(source, parsed.problem);
    return { ...NO_SERVERS, problems, broken: true };
  }
  const { document } = parsed;
  const servers: ServerDefinition[] = [];
  const problems: ConfigProblem[] = [];
  const { entries, given } = hostEntries(host, document.value, facts, limits.servers);
  if (given > limits.servers)
    problems.push(...toProblems(document, source.file, [], [tooManyServers(source, given)]));
  // Of one name the last counts.
  const bases = new Map(before.map((server) => [server.name, server]));
  for (const entry of entries) {
    const whole = completed(host, entry, { origin: source.origin, before: bases });
    if (whole === undefined) continue;
    const { raw, origin } = whole;
    const { definition, mistakes } = parseEntry(entry.name, raw, { file: source.file, origin });
    const unusable = entry.unusable === undefined ? [] : [`cannot be imported: ${entry.unusable}`];
    if (definition && unusable.length === 0) {
      const { definedByProject = definition.definedByProject } = whole;
      servers.push({ ...definition, definedByProject });
    }
    const reported = [
      ...unusable.map((message) => ({
        path: [],
        message,
        remedy: "Write the server into your own mcp.json.",
      })),
      ...mistakes.filter(({ severity }) => severity === "error"),
    ].map((mistake) => ({ ...mistake, severity: "warning" as const }));
    addAll(problems, toProblems(document, source.file, entry.path, reported));
  }
  return { servers, problems, broken: false };
}
