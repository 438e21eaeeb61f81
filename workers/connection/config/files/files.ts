/**
 * One configuration file of ours, from text to checked entries: `mcpServers` or `mcp-servers`,
 * `settings`, `imports`. Everything that is wrong becomes a `ConfigProblem` with its place and costs only
 * what it is in. Pure, except for `readText`.
 */

import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { readRegularText, remedyForUnread, whyUnread } from "../../../shared/files/read-regular.ts";
import { checkName, isProject, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import { firstOf, kindOf, type Mistake, unknownKeys } from "../entry/mistakes.ts";
import { isOverride, type Override, parseOverride } from "../entry/override.ts";
import { fileShape, HOSTS, type HostName } from "../entry/schema.ts";
import { parseSettings, type Settings } from "../entry/settings.ts";
import { nearestKey } from "../entry/suggest.ts";
import { type ConfigDocument, type ParsedText, type Position, parseJsonc } from "./jsonc.ts";
import { fileLimits, tooManyServers } from "./limits.ts";
import type { ConfigSource } from "./sources.ts";

export { type Position, parseJsonc } from "./jsonc.ts";
export { fileLimits, tooManyServers } from "./limits.ts";
export {
  type ConfigFacts,
  type ConfigSource,
  cacheFile,
  configSources,
  npxCacheFile,
  projectPiFile,
  trustFile,
} from "./sources.ts";
export { parseTomlText } from "./toml.ts";
export { findWorktree } from "./worktree.ts";

const SERVER_KEYS = ["mcpServers", "mcp-servers"] as const;
const EXAMPLE = '{"mcpServers": {"name": {"command": "..."}}}';

/** Of each key in the path of a mistake: a hostile one would fill the screen and the log. */
const KEY_CHARS = 100;

/** Where each key of an object stands. */
export type Places = Readonly<Record<string, Position>>;

export type FileEntry = { key: string; at: Position; places: Places } & (
  | { kind: "server"; definition: ServerDefinition }
  | { kind: "override"; name: string; override: Override }
);

export interface FileConfig {
  source: ConfigSource;
  entries: FileEntry[];
  settings: Partial<Settings>;
  settingPlaces: Places;
  imports: HostName[];
  problems: ConfigProblem[];
  /** Nothing of the text could be used, for example in the middle of a write. */
  broken: boolean;
}

export type FileText =
  | { kind: "missing" }
  | { kind: "unreadable"; reason: string; remedy: string }
  | { kind: "text"; text: string };

/** Reads the text of a file, or says why it cannot; `limitBytes`: a larger one is not read. Never throws. */
export type ReadFile = (file: string, limitBytes: number) => Promise<FileText>;

export const withoutBom = (text: string): string => text.replace(/^\uFEFF/, "");

/** With its BOM. Never throws. Whatever is not a regular file, and a file without permission, is `unreadable`. */
export async function readText(file: string, limitBytes: number = LIMITS.configFileBytes): Promise<FileText> {
  const read = await readRegularText(file, limitBytes);
  if (read.kind === "text" || read.kind === "missing") return read;
  return { kind: "unreadable", reason: whyUnread(read), remedy: remedyForUnread(read) };
}

const shownKey = (path: readonly string[]): string =>
  path.map((key) => (key.length > KEY_CHARS ? `${key.slice(0, KEY_CHARS)}...` : key)).join(".");

/** `push(...more)` makes arguments of them, and a stack holds only some 100,000. */
export function addAll<T>(list: T[], more: readonly T[]): void {
  for (const one of more) list.push(one);
}

/** Mistakes below `base` as problems of a file. */
export const toProblems = (
  document: ConfigDocument,
  file: string,
  base: readonly string[],
  mistakes: readonly Mistake[],
): ConfigProblem[] =>
  mistakes.map(({ severity, path, message, remedy }) => {
    const whole = [...base, ...path];
    const key = whole.length === 0 ? {} : { key: shownKey(whole) };
    return { severity, file, ...document.at(whole), ...key, message, remedy };
  });

export const emptyFile = (source: ConfigSource): FileConfig => ({
  source,
  entries: [],
  settings: {},
  settingPlaces: {},
  imports: [],
  problems: [],
  broken: false,
});

const wrongKind = (value: unknown, what: string): Mistake => ({
  severity: "error",
  path: [],
  message: `expected ${what}, found ${kindOf(value)}`,
  remedy: `Write ${EXAMPLE}.`,
});

const placesOf = (document: ConfigDocument, path: readonly string[], keys: readonly string[]): Places =>
  Object.fromEntries(keys.map((key) => [key, document.at([...path, key])]));

function readEntry(
  document: ConfigDocument,
  source: ConfigSource,
  path: [string, string],
  raw: unknown,
): Pick<FileConfig, "entries" | "problems"> {
  const [, name] = path;
  const placed = (keys: readonly string[]) => ({
    key: shownKey(path),
    at: document.at(path),
    places: placesOf(document, path, keys),
  });
  if (isOverride(raw) && !checkName(name)) {
    const { override, mistakes } = parseOverride(raw);
    return {
      entries: override ? [{ kind: "override", name, override, ...placed(Object.keys(raw)) }] : [],
      problems: toProblems(document, source.file, path, mistakes),
    };
  }
  const { file, origin } = source;
  const { definition, mistakes } = parseEntry(name, raw, { file, origin });
  return {
    entries: definition ? [{ kind: "server", definition, ...placed(Object.keys(definition.raw)) }] : [],
    problems: toProblems(document, file, path, mistakes),
  };
}

function readServers(document: ConfigDocument, root: Record<string, unknown>, config: FileConfig): void {
  const { source, problems } = config;
  const keys = SERVER_KEYS.filter((key) => Object.hasOwn(root, key));
  const entries = keys.flatMap((key) => {
    const servers = root[key];
    if (isObject(servers)) return Object.entries(servers).map(([name, raw]) => ({ key, name, raw }));
    addAll(problems, toProblems(document, source.file, [key], [wrongKind(servers, "an object of servers")]));
    return [];
  });
  const most = fileLimits(source).servers;
  // Told before the mistakes of single entries, of which only the first are told.
  if (entries.length > most) {
    const mistake = tooManyServers(source, entries.length);
    addAll(problems, toProblems(document, source.file, [keys.at(-1) ?? ""], [mistake]));
  }
  for (const { key, name, raw } of entries.slice(0, most)) {
    const read = readEntry(document, source, [key, name], raw);
    addAll(config.entries, read.entries);
    addAll(problems, read.problems);
  }
}

function readImports(document: ConfigDocument, root: Record<string, unknown>, config: FileConfig): void {
  const { imports = [] } = root;
  const { file, origin } = config.source;
  const report = (path: string[], severity: Mistake["severity"], message: string, remedy: string): void => {
    config.problems.push(...toProblems(document, file, ["imports"], [{ severity, path, message, remedy }]));
  };
  const choices = HOSTS.join(", ");
  if (!Array.isArray(imports)) {
    report([], "error", `expected a list, found ${kindOf(imports)}`, `Write a list of ${choices}.`);
    return;
  }
  // Who names a host decides that its servers run unasked, and those of the user's home are not the project's.
  if (isProject(origin) && imports.length > 0) {
    report([], "warning", "a project's file may not import", "Write imports into your own mcp.json.");
    return;
  }
  if (imports.length > LIMITS.configItems) {
    report([], "error", `has ${imports.length.toLocaleString("en")} items`, `Write a list of ${choices}.`);
    return;
  }
  for (const [i, name] of imports.entries()) {
    const host = HOSTS.find((known) => known === name);
    if (host) config.imports.push(host);
    else {
      const near = typeof name === "string" ? nearestKey(name, HOSTS) : undefined;
      const remedy = near ? `Write "${near}".` : `Write one of ${choices}.`;
      report([String(i)], "error", "this is no program whose servers can be imported", remedy);
    }
  }
}

/** A text that could not be used at all. */
export const brokenFile = (source: ConfigSource, problem: Omit<ConfigProblem, "file">): FileConfig => ({
  ...emptyFile(source),
  problems: [{ file: source.file, ...problem }],
  broken: true,
});

const givenTwice = (path: string[]): Mistake => ({
  severity: "warning",
  path,
  message: "is given twice, this one counts",
  remedy: "Remove the other one.",
});

/** Checks the text of a file. Never throws. */
export function parseConfigText(
  text: string,
  source: ConfigSource,
  parse: (text: string, mostValues: number) => ParsedText = parseJsonc,
): FileConfig {
  if (text.trim() === "") {
    return brokenFile(source, {
      severity: "error",
      line: 1,
      column: 1,
      message: "the file is empty",
      remedy: `Write ${EXAMPLE}, or delete the file.`,
    });
  }
  const parsed = parse(withoutBom(text), fileLimits(source).values);
  if ("problem" in parsed) return brokenFile(source, parsed.problem);
  const { document } = parsed;
  const root = document.value;
  if (!isObject(root)) {
    const [problem] = toProblems(document, source.file, [], [wrongKind(root, "an object")]);
    return { ...emptyFile(source), problems: problem ? [problem] : [], broken: true };
  }
  const config = emptyFile(source);
  const { file } = source;
  addAll(config.problems, toProblems(document, file, [], unknownKeys(fileShape, root)));
  addAll(config.problems, toProblems(document, file, [], firstOf(document.repeated, givenTwice)));
  readServers(document, root, config);
  readImports(document, root, config);
  if (Object.hasOwn(root, "settings")) {
    const { settings, mistakes } = parseSettings(root.settings);
    config.settings = settings;
    config.settingPlaces = placesOf(document, ["settings"], Object.keys(settings));
    addAll(config.problems, toProblems(document, source.file, ["settings"], mistakes));
  }
  return config;
}
