/**
 * Owns: the envFiles of servers. Looks at them before anything is started: the content of a project's envFile is part
 * of the question and of the consent; variables that the session's folder may not decide for the user's own servers
 * are reported as problems. Must not: start a server. Called by: trust, values. Never throws.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { inTime } from "../../../shared/files/in-time.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { fillPath, type PathFacts, pathsOf } from "../entry/interpolate.ts";
import { NO_ANSWER } from "../files/files.ts";
import { contentOf, type EnvSeen, forOwnServer, isOwn } from "./content.ts";
import { droppedText, type EnvFolders, isDecidedByFolder, unfitReason } from "./launch.ts";
import { wayTo } from "./path-stops.ts";
import { readEnvFile } from "./read.ts";
import { ScriptReader, type Scripts } from "./scripts.ts";

export { type EnvSeen, isOwn } from "./content.ts";
export { decidesWhatRuns } from "./deciding-variables.ts";
export { agreedEntries, cloneOf } from "./launch.ts";
export { endOf, isWithin } from "./path-stops.ts";
export { areAgreed, type Scripts } from "./scripts.ts";

export interface EnvLook {
  /** The envFiles of the project's servers, also of replaced ones. */
  seen: ReadonlyMap<ServerDefinition, EnvSeen>;
  /** The files of the project that its servers start or name, also those of replaced servers. */
  scripts: ReadonlyMap<ServerDefinition, Scripts>;
  problems: ConfigProblem[];
  /** The files that were looked at, and have to be watched. */
  files: string[];
}

type Found = { file: string; entries: Record<string, string>; seen: EnvSeen } | { reason: string };

const TOO_MANY = `the servers name more than ${LIMITS.envFilesLookedAt} envFiles`;

/** Finds the envFiles of one look. Each file is read once, and at most `LIMITS.envFilesLookedAt` files are read. */
class EnvReader {
  readonly #facts: PathFacts & EnvFolders;
  readonly #read = new Map<string, Promise<Found>>();

  constructor(facts: PathFacts & EnvFolders) {
    this.#facts = facts;
  }

  get files(): string[] {
    return [...this.#read.keys()];
  }

  /** Undefined for the user's own file of the user's own server: nobody has to ask about it. */
  async find(definition: ServerDefinition, envFile: string): Promise<Found | undefined> {
    const { cwd, platform = process.platform } = this.#facts;
    const { text: path, missing } = fillPath(envFile, this.#facts);
    if (missing.length > 0) return { reason: `${missing.join(" and ")} is not set` };
    const file = pathsOf(platform).resolve(cwd, path);
    const way = await wayTo(file, platform);
    if (isOwn(definition) && (way.isRemote || !(await isDecidedByFolder(path, this.#facts, way))))
      return undefined;
    const unfit = unfitReason(way);
    if (unfit !== undefined) return { reason: unfit };
    const known = this.#read.get(file);
    if (known) return known;
    if (this.#read.size >= LIMITS.envFilesLookedAt) return { reason: TOO_MANY };
    const read = this.#readFile(file, way.found?.modifiedMs ?? 0);
    this.#read.set(file, read);
    return read;
  }

  async #readFile(file: string, changedAtMs: number): Promise<Found> {
    const read = await readEnvFile(file);
    if ("reason" in read) return read;
    return { file, entries: read.entries, seen: { content: contentOf(read.entries), changedAtMs } };
  }
}

/** The variables that the user's own server will not get, because the file lies in the session's folder. */
function leftOut(definition: ServerDefinition, found: Found): ConfigProblem[] {
  const { target } = definition;
  if ("reason" in found || target.kind !== "stdio") return [];
  const { dropped } = forOwnServer(found.entries, target.envFileNames);
  if (dropped.length === 0) return [];
  return [
    {
      severity: "warning",
      file: definition.file,
      key: `${definition.name}.envFile`,
      message: droppedText(found.file, dropped),
      remedy:
        'List the names that the server may get in "envFileNames" of its entry, write them into "env", or keep the file in another folder.',
    },
  ];
}

/** Every definition that could run: each server, and the servers that it replaced. */
const all = (servers: readonly ServerDefinition[]): ServerDefinition[] =>
  servers.flatMap((server) => [server, ...all(server.replaced ? [server.replaced] : [])]);

export async function lookAtEnvFiles(
  servers: readonly ServerDefinition[],
  facts: PathFacts & EnvFolders,
): Promise<EnvLook> {
  const seen = new Map<ServerDefinition, EnvSeen>();
  const problems: ConfigProblem[] = [];
  const reader = new EnvReader(facts);
  const scripts = new Map<ServerDefinition, Scripts>();
  const scriptReader = new ScriptReader(facts);
  const endsAt = performance.now() + LIMITS.projectReadMs;
  const patient = async <T>(what: string, find: () => Promise<T>): Promise<T | { reason: string }> => {
    const leftMs = endsAt - performance.now();
    const found = leftMs > 0 && (await inTime(what, find, leftMs));
    return found && "value" in found ? found.value : { reason: NO_ANSWER };
  };
  // One after the other, so that the files of a clone never take the worker's whole time or memory.
  for (const definition of all(servers)) {
    const { target, enabled } = definition;
    if (!enabled || target.kind !== "stdio") continue;
    const its = await patient(`${definition.file} ${definition.name}`, () => scriptReader.find(definition));
    if (its) scripts.set(definition, its);
    if (target.envFile === undefined) continue;
    const { envFile } = target;
    const found = await patient(`${definition.file} ${envFile}`, () => reader.find(definition, envFile));
    if (!found) continue;
    if (isOwn(definition)) problems.push(...leftOut(definition, found));
    else seen.set(definition, "reason" in found ? found : found.seen);
  }
  return { seen, scripts, problems, files: reader.files };
}
