/**
 * Owns: the servers of other programs (Cursor, Claude, Codex, ...) as definitions of ours, one file at a time. A
 * mistake in such a file is a warning. Must not: read files, or decide which server wins. Called by: merge.ts. Pure.
 * To add a host: a file here that exports its `Dialect`, a row in dialects.ts, its name in `HOSTS` (entry/choices.ts).
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { type Origin, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import type { HostName } from "../entry/schema.ts";
import {
  addAll,
  brokenFile,
  type ConfigFacts,
  type ConfigSource,
  fileLimits,
  parseJsonc,
  parseTomlText,
  tooManyServers,
  toProblems,
  withoutBom,
} from "../files/files.ts";
import { DIALECTS } from "./dialects.ts";
import { type HostEntry, hostEntries } from "./entries.ts";

export { hostSources, looksUp } from "./sources.ts";

export interface HostFile {
  servers: ServerDefinition[];
  problems: ConfigProblem[];
  broken: boolean;
}

const NO_SERVERS: HostFile = { servers: [], problems: [], broken: false };

interface Completed {
  raw: unknown;
  origin: Origin;
  /** Undefined: the file that is read defines the server, and decides. */
  definedByProject?: boolean;
}

/**
 * If the host merges its files key by key, an entry without a target changes one of an earlier file. What then runs
 * is trusted as far as the file that holds its command or URL.
 */
function completed(
  host: HostName,
  entry: HostEntry,
  { origin, before }: { origin: Origin; before: ReadonlyMap<string, ServerDefinition> },
): Completed | undefined {
  if (!DIALECTS[host].mergesEntries || !isObject(entry.raw) || (entry.raw.command ?? entry.raw.url))
    return { raw: entry.raw, origin };
  const base = before.get(entry.name);
  if (!base) return undefined;
  return {
    raw: { ...base.raw, ...entry.raw },
    origin: base.project ? base.origin : origin,
    definedByProject: base.definedByProject,
  };
}

/** Never throws. `before`: servers of the host's files of lower precedence. */
export function parseHostText(
  text: string,
  options: { host: HostName; source: ConfigSource; facts: ConfigFacts; before: readonly ServerDefinition[] },
): HostFile {
  const { host, source, facts, before } = options;
  if (text.trim() === "") return NO_SERVERS;
  const limits = fileLimits(source);
  const parsed = (DIALECTS[host].format === "toml" ? parseTomlText : parseJsonc)(
    withoutBom(text),
    limits.values,
  );
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
  // The last server of a name counts.
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
