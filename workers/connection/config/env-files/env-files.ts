/**
 * Owns: the envFiles of servers. Looks at them before anything is started: the content of a project's envFile is part
 * of the question and of the consent; variables that the session's folder may not decide for the user's own servers
 * are reported as problems. Must not: start a server. What a
 * server gets at its start is the text that was checked: nobody can change the file in between. Never throws.
 */

import { createHash } from "node:crypto";
import { parseEnv } from "node:util";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { inTime } from "../../../shared/files/file-system.ts";
import { readRegularText, type Unread, whyUnread } from "../../../shared/files/read-regular.ts";
import { canonical } from "../../../shared/json.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import { isUsersOwn, type ServerDefinition, withReplaced } from "../entry/definition.ts";
import { fillPath, type PathFacts, pathsOf } from "../entry/interpolate.ts";
import { listed, shown } from "../entry/shown-text.ts";
import { type Way, wayTo } from "../files/path-stops.ts";
import { NO_ANSWER } from "../files/sources.ts";
import { decidesWhatRuns, holdsAddress, isData } from "./deciding-variables.ts";
import { cloneOf, type EnvFolders, ScriptReader, type Scripts } from "./scripts.ts";

type Entries = Readonly<Record<string, string>>;

interface EnvContent {
  /** Sorted. */
  names: string[];
  /** Values that decide what runs, or where it connects. */
  deciding: Record<string, string>;
  /** Hex SHA-256 of the names and of the values that are no data: contents with the same hash need no new answer. */
  hash: string;
  /** A lower bound for the characters of a text with the names and deciding values. */
  chars: number;
}

/** What was found at the path of a server's envFile. `changedAtMs`: when the file was written, if that is known. */
export type EnvSeen = { content: EnvContent; changedAtMs?: number } | { reason: string };

export function contentOf(entries: Entries): EnvContent {
  const names = Object.keys(entries).sort();
  const values = Object.entries(entries).filter(
    // What is shown is bound as well.
    ([name, value]) => decidesWhatRuns(name) || (holdsAddress(name, value) && !isData(name, value)),
  );
  const deciding = Object.fromEntries(values);
  const bound = Object.fromEntries(Object.entries(entries).filter(([name, value]) => !isData(name, value)));
  const hash = createHash("sha256")
    .update(canonical({ names, deciding: bound }))
    .digest("hex");
  return { names, deciding, hash, chars: names.reduce((sum, name) => sum + name.length, 0) };
}

/**
 * What the user's own server gets of a file in the session's folder: data, and the names that its entry lists. `dropped`:
 * the other names.
 */
function forOwnServer(
  entries: Entries,
  listed: readonly string[] = [],
): { kept: Record<string, string>; dropped: string[] } {
  const isKept = ([name, value]: [string, string]): boolean => listed.includes(name) || isData(name, value);
  const kept = Object.fromEntries(Object.entries(entries).filter(isKept));
  const dropped = Object.keys(entries).filter((name) => !Object.hasOwn(kept, name));
  return { kept, dropped: dropped.sort() };
}

/** A larger file is not an environment. */
const FILE_BYTES = 1024 * 1024;

type EnvFile = { entries: Record<string, string> } | { reason: string };

function reasonOf(read: Unread): string {
  if (read.kind === "irregular" && read.what === "a folder") return "it is a folder";
  if (read.kind !== "unreadable") return whyUnread(read);
  const { code } = read;
  return code === "EACCES" || code === "EPERM" ? "it may not be read" : `it cannot be read (${code})`;
}

/** `file`: an absolute path. Never throws. */
export async function readEnvFile(file: string): Promise<EnvFile> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind !== "text") return { reason: reasonOf(read) };
  const text = withoutBom(read.text);
  if (text.includes("\0")) return { reason: "it holds a NUL character" };
  const entries = Object.entries(parseEnv(text)).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return { entries: Object.fromEntries(entries) };
}

type AgreedEntries =
  /** `note`: one line about variables that were left out. */
  | { entries: Record<string, string>; note?: string }
  | { reason: string }
  /** The content is not the one to which the user agreed. */
  | { changed: true };

const SHOWN_NAMES = 20;

/** A longer name is cut at its end, because the start says what the variable decides. */
const NAME_CHARS = 80;

const REMOTE = "it lies on another machine";

/** Why an envFile is not read for a project's server: its content could not be shown to anybody. */
function unfitReason({ isRemote, found }: Way): string | undefined {
  if (isRemote) return REMOTE;
  if (found?.isSpecial) return "it is not a regular file";
  const { bytes = 0 } = found ?? {};
  return bytes > LIMITS.envFileShownBytes ? `it has ${bytes} bytes` : undefined;
}

const briefName = (name: string): string =>
  name.length <= NAME_CHARS ? shown(name) : `${shown(name.slice(0, NAME_CHARS).toWellFormed())}…`;

/** One line, without values, about the variables of an envFile in the session's folder that are left out. */
function droppedText(file: string, names: readonly string[]): string {
  const why = names.length === 1 ? "it may decide" : "they may decide";
  const what = listed(names.map(briefName), SHOWN_NAMES);
  return `${shown(file)} lies in the folder that Pi runs in and sets ${what}: left out, since ${why} what runs or where it connects`;
}

/**
 * Whether the session's folder decides to which file a path leads: the path is relative, or the file or a link on the
 * way to it lies in the clone.
 */
async function isDecidedByFolder(
  path: string,
  folders: EnvFolders,
  { stops }: Pick<Way, "stops">,
): Promise<boolean> {
  const { platform = process.platform } = folders;
  const clone = await cloneOf(folders);
  if (clone === undefined) return false;
  return !pathsOf(platform).isAbsolute(path) || stops.some((stop) => isWithin(stop, clone, platform));
}

/** `path`: resolved; a relative path starts from the session's folder. Never throws. */
export async function agreedEntries(
  definition: ServerDefinition,
  path: string,
  folders: EnvFolders,
): Promise<AgreedEntries> {
  const file = pathsOf(folders.platform ?? process.platform).resolve(folders.cwd, path);
  const way = await wayTo(file, folders.platform);
  const isFolders = await isDecidedByFolder(path, folders, way);
  const unfit = isUsersOwn(definition) ? way.isRemote && isFolders && REMOTE : unfitReason(way);
  if (unfit) return { reason: unfit };
  const read = await readEnvFile(file);
  if ("reason" in read) return read;
  const { entries } = read;
  if (!isUsersOwn(definition))
    return contentOf(entries).hash === definition.agreedEnvFile ? { entries } : { changed: true };
  const { target } = definition;
  const { kept, dropped } = forOwnServer(entries, target.kind === "stdio" ? target.envFileNames : []);
  if (!isFolders || dropped.length === 0) return { entries };
  return { entries: kept, note: droppedText(file, dropped) };
}

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
    if (isUsersOwn(definition) && (way.isRemote || !(await isDecidedByFolder(path, this.#facts, way))))
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
  for (const definition of servers.flatMap(withReplaced)) {
    const { target, enabled } = definition;
    if (!enabled) continue;
    const its = await patient(`${definition.file} ${definition.name}`, () => scriptReader.find(definition));
    if (its) scripts.set(definition, its);
    if (target.kind !== "stdio" || target.envFile === undefined) continue;
    const { envFile } = target;
    const found = await patient(`${definition.file} ${envFile}`, () => reader.find(definition, envFile));
    if (!found) continue;
    if (isUsersOwn(definition)) problems.push(...leftOut(definition, found));
    else seen.set(definition, "reason" in found ? found : found.seen);
  }
  return { seen, scripts, problems, files: reader.files };
}
