/**
 * Owns: one configuration file of ours, from its text to checked entries: `mcpServers` or `mcp-servers`, `settings`,
 * `imports`; and where such files lie. A mistake becomes a `ConfigProblem` with its position and costs only the part
 * that holds it. Must not: know other files, or which of them wins.
 * Pure, except for `readText`.
 */

import { resolve } from "node:path";
import { IMPORTS, type ImportName } from "../../../../src/shared/import-names.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { checkName, isProject, type Origin, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import { escapeVariables, isLate } from "../entry/interpolate.ts";
import {
  firstOf,
  kindOf,
  type Mistake,
  mistake,
  nearestKey,
  unknownKeys,
  untilMended,
  warning,
} from "../entry/mistakes.ts";
import { isOverride, type Override, offUntilMended, parseOverride } from "../entry/override.ts";
import { fileShape } from "../entry/schema.ts";
import { PROTECTING_KEYS } from "../entry/server-keys.ts";
import { parseSettings, type Settings, STRICT_KEYS, STRICTEST, UNTIL_ALL } from "../entry/settings.ts";
import { type ConfigDocument, type Position, parseJsonc } from "./document.ts";
import { type ConfigSource, PACKAGES } from "./sources.ts";

const SERVER_KEYS = ["mcpServers", "mcp-servers"] as const;
const EXAMPLE = '{"mcpServers": {"name": {"command": "..."}}}';

/** The position of each key of an object. */
export type KeyPositions = Readonly<Record<string, Position>>;

export type FileEntry = { key: string; at: Position; positions: KeyPositions } & (
  | { kind: "server"; definition: ServerDefinition }
  /** `isWrong`: it stands for an entry with an error, and needs no server to override. */
  | { kind: "override"; name: string; override: Override; isWrong?: true }
);

/** A folder that a file names. */
export interface NamedFolder {
  /** As written. */
  path: string;
  key: string;
  at: Position;
}

export interface FileConfig {
  source: ConfigSource;
  entries: FileEntry[];
  settings: Partial<Settings>;
  settingPositions: KeyPositions;
  imports: ImportName[];
  plugins: NamedFolder[];
  problems: ConfigProblem[];
  /** Nothing of the text could be used, for example because somebody is writing the file. */
  broken: boolean;
  /** `hotReload` of the settings stands in for what a mistake hides. */
  isUnsure: boolean;
}

export const emptyFile = (source: ConfigSource): FileConfig => ({
  source,
  entries: [],
  settings: {},
  settingPositions: {},
  imports: [],
  plugins: [],
  problems: [],
  broken: false,
  isUnsure: false,
});

const wrongKind = (value: unknown, what: string): Mistake =>
  mistake([], `expected ${what}, found ${kindOf(value)}`, `Write ${EXAMPLE}.`);

const positionsOf = (
  document: ConfigDocument,
  path: readonly string[],
  keys: readonly string[],
): KeyPositions => Object.fromEntries(keys.map((key) => [key, document.at([...path, key])]));

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
    positions: positionsOf(document, path, keys),
  });
  if (isOverride(raw) && !checkName(name)) {
    const { override, mistakes } = parseOverride(raw, source.origin === "user");
    return {
      entries: override ? [{ kind: "override", name, override, ...placed(Object.keys(raw)) }] : [],
      problems: toProblems(document, source.file, path, mistakes),
    };
  }
  const { file, origin, base } = source;
  const inBase = base && isObject(raw) ? withBase(raw, base.folder) : raw;
  const { definition, mistakes } = parseEntry(name, inBase, { file, origin, ...(base && { base }) });
  if (!definition && source.origin === "user" && !checkName(name)) {
    const off = offUntilMended(mistakes);
    return {
      entries: [{ kind: "override", name, override: off.override, isWrong: true, ...placed([]) }],
      problems: toProblems(document, file, path, off.mistakes),
    };
  }
  return {
    entries: definition ? [{ kind: "server", definition, ...placed(Object.keys(definition.raw)) }] : [],
    problems: toProblems(document, file, path, mistakes),
  };
}

/** A local server of a folder above runs there, as it does for a session that is opened there. */
function withBase(raw: Record<string, unknown>, folder: string): Record<string, unknown> {
  if (typeof raw.command !== "string") return raw;
  const from = (path: unknown): unknown =>
    typeof path !== "string" || isLate(path) || path.startsWith("~")
      ? path
      : escapeVariables(resolve(folder, path));
  const { cwd = ".", envFile } = raw;
  return { ...raw, cwd: from(cwd), ...(envFile === undefined ? {} : { envFile: from(envFile) }) };
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
  // This comes before the mistakes of single entries, because only the first mistakes are reported.
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
  const choices = IMPORTS.join(", ");
  if (!Array.isArray(imports)) {
    report([], "error", `expected a list, found ${kindOf(imports)}`, `Write a list of ${choices}.`);
    return;
  }
  // The file that names a host lets its servers run unasked, and servers of the user's home are not the project's.
  if (isProject(origin) && imports.length > 0) {
    report([], "warning", "a project's file may not import", "Write imports into your own mcp.json.");
    return;
  }
  if (imports.length > LIMITS.configItems) {
    report([], "error", `has ${imports.length.toLocaleString("en")} items`, `Write a list of ${choices}.`);
    return;
  }
  for (const [i, name] of imports.entries()) {
    const host = IMPORTS.find((known) => known === name);
    if (host) config.imports.push(host);
    else {
      const near = typeof name === "string" ? nearestKey(name, IMPORTS) : undefined;
      const remedy = near ? `Write "${near}".` : `Write one of ${choices}.`;
      report([String(i)], "error", "this is not a program whose servers can be imported", remedy);
    }
  }
}

const PLUGINS_EXAMPLE = 'Write a list of folders, for example ["~/plugins/database"].';

function readPlugins(document: ConfigDocument, root: Record<string, unknown>, config: FileConfig): void {
  const { plugins = [] } = root;
  const { file, origin } = config.source;
  const mistakes: Mistake[] = [];
  if (!Array.isArray(plugins))
    mistakes.push(mistake([], `expected a list, found ${kindOf(plugins)}`, PLUGINS_EXAMPLE));
  else if (isProject(origin) && plugins.length > 0) {
    const remedy = "Write plugins into your own mcp.json.";
    mistakes.push(warning([], "a project's file may not name plugins", remedy));
  } else {
    // The first use of the locale takes 15 ms, so only a mistake pays for it.
    const tooMany = (): string =>
      `has ${plugins.length.toLocaleString("en")} items; the first ${PACKAGES} are used`;
    if (plugins.length > PACKAGES)
      mistakes.push(mistake([], tooMany(), "Remove plugins that you do not need."));
    for (const [i, path] of plugins.slice(0, PACKAGES).entries()) {
      const key = ["plugins", String(i)];
      if (typeof path === "string" && path.trim() !== "")
        config.plugins.push({ path, key: key.join("."), at: document.at(key) });
      else mistakes.push(mistake([String(i)], "expected the path of a folder", PLUGINS_EXAMPLE));
    }
  }
  addAll(config.problems, toProblems(document, file, ["plugins"], mistakes));
}

/** The object that a text of JSON holds; without one, the problem. Never throws. */
export function objectIn(
  text: string,
  source: ConfigSource,
): { document: ConfigDocument; root: Record<string, unknown> } | { problem: ConfigProblem } {
  const { file } = source;
  const parsed = parseJsonc(withoutBom(text), fileLimits(source).values);
  if ("problem" in parsed) return { problem: { file, ...parsed.problem } };
  const { document } = parsed;
  if (isObject(document.value)) return { document, root: document.value };
  const [problem] = toProblems(document, file, [], [wrongKind(document.value, "an object")]);
  return { problem: problem as ConfigProblem };
}

/** A file of which nothing can be used: an error at its begin, unless the problem says more. */
export const brokenFile = (
  source: ConfigSource,
  problem: Pick<ConfigProblem, "message" | "remedy"> & Partial<ConfigProblem>,
): FileConfig => ({
  ...emptyFile(source),
  problems: [{ severity: "error", file: source.file, line: 1, column: 1, ...problem }],
  broken: true,
});

const givenTwice = (path: string[]): Mistake =>
  warning(path, "is given twice, this one counts", "Remove the other one.");

const unsure = (path: string[]): Mistake => mistake(path, "is given twice", "Remove the other one.");

const isServerKey = (key: string): boolean => (SERVER_KEYS as readonly string[]).includes(key);

/** Whether one of two values for the path may protect the user. Nobody knows which of them was meant. */
function mayProtect([first = "", second, third]: readonly string[]): boolean {
  if (first === "settings") return second === undefined || STRICT_KEYS.includes(second);
  if (!isServerKey(first) || second === undefined) return false;
  return third === undefined || PROTECTING_KEYS.includes(third);
}

const nameOf = (entry: FileEntry): string => (entry.kind === "server" ? entry.definition.name : entry.name);

/** `twice`: paths in servers. */
function switchOff(document: ConfigDocument, twice: readonly string[][], config: FileConfig): void {
  const names = new Set(twice.map(([, name]) => name));
  const { override, mistakes } = offUntilMended(firstOf(twice, unsure));
  addAll(config.problems, toProblems(document, config.source.file, [], mistakes));
  config.entries = config.entries.map((entry) => {
    const name = nameOf(entry);
    const { key, at } = entry;
    return names.has(name)
      ? { kind: "override", name, override, isWrong: true, key, at, positions: {} }
      : entry;
  });
}

/** `twice`: paths in them. `isLost`: what they say is not known. */
function readSettings(
  document: ConfigDocument,
  root: Record<string, unknown>,
  { config, twice, isLost }: { config: FileConfig; twice: readonly string[][]; isLost: boolean },
): void {
  const { origin, file } = config.source;
  if (Object.hasOwn(root, "settings")) {
    const others = firstOf(twice, ([, ...path]) => unsure(path));
    const { settings, mistakes } = parseSettings(root.settings, origin === "user", others);
    config.settings = settings;
    config.settingPositions = positionsOf(document, ["settings"], Object.keys(settings));
    addAll(config.problems, toProblems(document, file, ["settings"], mistakes));
  }
  if (isLost) config.settings = { ...config.settings, ...STRICTEST };
  const { hotReload } = config.settings;
  const written = isObject(root.settings) ? root.settings.hotReload : undefined;
  // "off" applies no edit, which is less than the "ask" that stands in for it.
  config.isUnsure = hotReload !== undefined && hotReload !== written && written !== "off";
}

const parted = (
  paths: readonly string[][],
  isFirst: (path: string[]) => boolean,
): [string[][], string[][]] => [paths.filter(isFirst), paths.filter((path) => !isFirst(path))];

/** Checks the text of a file. Never throws. */
export function parseConfigText(text: string, source: ConfigSource): FileConfig {
  if (text.trim() === "") {
    const remedy = `Write ${EXAMPLE}, or delete the file.`;
    return brokenFile(source, { message: "the file is empty", remedy });
  }
  const found = objectIn(text, source);
  if ("problem" in found) return brokenFile(source, found.problem);
  const { document, root } = found;
  const config = emptyFile(source);
  const [twice, others] = parted(document.repeated, (path) => source.origin === "user" && mayProtect(path));
  const [inSettings, inServers] = parted(twice, ([first]) => first === "settings");
  const [whole, single] = parted(inSettings, ({ length }) => length === 1);
  const top = [
    ...unknownKeys(fileShape, root, source.origin === "user" ? ["settings"] : []),
    ...firstOf(others, givenTwice),
    ...firstOf(whole, unsure),
  ];
  addAll(config.problems, toProblems(document, source.file, [], untilMended(top, UNTIL_ALL)));
  readServers(document, root, config);
  if (inServers.length > 0) switchOff(document, inServers, config);
  readImports(document, root, config);
  readPlugins(document, root, config);
  const isLost = top.some(({ severity }) => severity === "error");
  readSettings(document, root, { config, twice: single, isLost });
  return config;
}

interface FileLimits {
  bytes: number;
  /** Values of the whole text, objects and lists included. */
  values: number;
  /** Entries of servers, overrides included. */
  servers: number;
}

const PROJECT: FileLimits = {
  bytes: LIMITS.projectFileBytes,
  values: LIMITS.projectFileValues,
  servers: LIMITS.serversPerProjectFile,
};

const OWN: FileLimits = {
  bytes: LIMITS.configFileBytes,
  values: LIMITS.configFileValues,
  servers: LIMITS.serversPerFile,
};

export const fileLimits = ({ origin }: { origin: Origin }): FileLimits => (isProject(origin) ? PROJECT : OWN);

/** The mistake of a file with more servers than the limit. `given`: how many the file has. */
export function tooManyServers(source: { origin: Origin }, given: number): Mistake {
  const most = fileLimits(source).servers;
  const count = (servers: number): string => servers.toLocaleString("en");
  const whose =
    source.origin === "package"
      ? "a package's file"
      : isProject(source.origin)
        ? "a project's file"
        : "one file";
  return mistake(
    [],
    `has ${count(given)} servers; the first ${count(most)} of ${whose} are used, the other ${count(given - most)} are left out`,
    "Remove servers that you do not need.",
  );
}

/** Characters of each key in a path: a long key of a hostile file would fill the screen and the log. */
const KEY_CHARS = 100;

export const shownKey = (path: readonly string[]): string =>
  path.map((key) => (key.length > KEY_CHARS ? `${key.slice(0, KEY_CHARS)}...` : key)).join(".");

/** Use it in place of `push(...more)`: a call stack holds only some 100,000 arguments. */
export function addAll<T>(list: T[], more: readonly T[]): void {
  for (const one of more) list.push(one);
}

/** Mistakes below the path `base` as problems of a file. */
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
