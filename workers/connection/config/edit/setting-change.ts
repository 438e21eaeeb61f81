/**
 * Changes of one server that have the effect that the person wishes, or none. Owns: which file is changed, and the trial:
 * each candidate is loaded as if it were written, with all the other files, and the first one counts that has the effect.
 * So precedence, narrowing by projects and patterns need no second set of rules here. Must not: write. To change another
 * key: `keyEdit`, or an edit of its own like those of exposures below.
 */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { KeySource, RulePlace } from "../../../../src/shared/protocol/person.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { advice } from "../../../shared/commands.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type Decision, decideExposure, type Exposure, exposureOf, namesInRules } from "../entry/exposure.ts";
import { UNSAFE_KEY } from "../entry/interpolate.ts";
import type { Settings } from "../entry/settings.ts";
import { parseJsonc } from "../files/document.ts";
import { type ConfigFacts, configSources, readText } from "../files/sources.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";
import { editableFile } from "./edit.ts";
import { type EntryEdit, editEntry } from "./entries.ts";

export interface EntryIn {
  file: string;
  raw: Record<string, unknown>;
  /** Line of the value at this path below the entry; of the entry without a path. */
  line: (path?: readonly string[]) => number;
}

function entryIn(file: string, text: string, server: string): EntryIn[] {
  const parsed = parseJsonc(withoutBom(text));
  if ("problem" in parsed || !isObject(parsed.document.value)) return [];
  const { document } = parsed;
  const root = document.value as Record<string, unknown>;
  return ["mcpServers", "mcp-servers"].flatMap((key) => {
    const servers = root[key];
    const raw = isObject(servers) && Object.hasOwn(servers, server) ? servers[server] : undefined;
    return isObject(raw)
      ? [{ file, raw, line: (path = []) => document.at([key, server, ...path]).line }]
      : [];
  });
}

/** The server's entries and overrides, lowest precedence first. */
export async function entriesOf(server: string, facts: ConfigFacts): Promise<EntryIn[]> {
  const files = configSources(facts).map(({ file }) => file);
  const texts = await Promise.all(files.map((file) => readText(file)));
  return files.flatMap((file, i) => {
    const read = texts[i];
    return read?.kind === "text" ? entryIn(file, read.text, server) : [];
  });
}

/** A key of an entry, and a pattern within its list or object. */
export interface Rule {
  key: string;
  pattern?: string | undefined;
}

/** The path of the pattern below the key; undefined if the entry does not hold it. */
function pathOf(raw: Record<string, unknown>, { key, pattern }: Rule): string[] | undefined {
  if (!Object.hasOwn(raw, key)) return undefined;
  const value = raw[key];
  if (pattern === undefined) return [key];
  if (Array.isArray(value))
    return value.includes(pattern) ? [key, String(value.indexOf(pattern))] : undefined;
  return isObject(value) && Object.hasOwn(value, pattern) ? [key, pattern] : undefined;
}

/** Where the rule stands: in the last of our files that has it, or else in the file that defines the server. */
export function placeOf(rule: Rule, entries: readonly EntryIn[], definedIn: string): RulePlace {
  const text = rule.pattern === undefined ? rule.key : `${rule.key} ${JSON.stringify(rule.pattern)}`;
  for (const { file, raw, line } of entries.toReversed()) {
    const path = pathOf(raw, rule);
    if (path) return { rule: text, file, line: line(path) };
  }
  return { rule: text, file: rule.key === "settings.directTools" ? "settings" : definedIn };
}

/**
 * The file of the definition that has the value at this path below its entry, with the value's line if it can be told: a
 * file that overrides the entry comes before the one that defines it.
 */
export async function lineOf(
  { name, file, overrides }: Pick<ServerDefinition, "name" | "file" | "overrides">,
  path: readonly string[],
): Promise<{ file: string; line?: number }> {
  for (const one of [...overrides.toReversed(), file]) {
    const read = await readText(one);
    for (const { raw, line } of read.kind === "text" ? entryIn(one, read.text, name) : []) {
      const has = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), raw) !== undefined;
      if (has) return { file: one, line: line(path) };
    }
  }
  return { file };
}

export interface SettingChange {
  server: string;
  project: boolean;
  /** The key that is set; the file that sets it last is tried first. */
  key: string;
  /** Edits of one file, the smallest first. `own`: the file's entry of the server, if it has one. */
  edits: (file: string, definition: ServerDefinition) => readonly Edit[];
  /** Undefined: the effect is there. Else why it is not, as an error for the person. */
  whyNoEffect: (definition: ServerDefinition, settings: Settings) => ThreadsError | undefined;
}

export interface EffectiveEdit {
  file: string;
  edit: Edit;
}

interface Reading {
  facts: ConfigFacts;
  /** What runs: a broken file counts as it was when it was last whole. */
  applied: LoadedConfig;
}

/** Files to try, the best first. */
function candidates(
  { server, project, key }: SettingChange,
  { file }: ServerDefinition,
  { facts }: Reading,
  entries: readonly EntryIn[],
): string[] {
  if (project) return [editableFile(facts, true)];
  const setting = entries.filter((entry) => Object.hasOwn(entry.raw, key)).map((entry) => entry.file);
  const isOwn = configSources(facts).some((source) => source.file === file);
  return [...new Set([...setting.toReversed(), ...(isOwn ? [file] : []), editableFile(facts, false)])].filter(
    (one) => one !== "" && server !== "",
  );
}

const find = ({ servers }: LoadedConfig, name: string): ServerDefinition | undefined =>
  servers.find((server) => server.name === name);

/** The configuration as it would be with this text in the file. */
const loadedWith = ({ facts, applied }: Reading, file: string, text: string): Promise<LoadedConfig> =>
  loadConfig(facts, applied, async (path, limit) =>
    path === file ? { kind: "text", text } : readText(path, limit),
  );

/**
 * The file and the edit that have the effect. Throws `unknown_server`, what a file that cannot be edited throws, or the
 * error of the change for the best candidate.
 */
export async function findEffectiveFile(change: SettingChange, reading: Reading): Promise<EffectiveEdit> {
  const { server, edits, whyNoEffect } = change;
  const now = await loadConfig(reading.facts, reading.applied);
  const definition = find(now, server);
  if (!definition) {
    throw new ThreadsError("unknown_server", `No server named ${server} is configured.`, {
      data: { known: [] },
    });
  }
  const entries = await entriesOf(server, reading.facts);
  let why: Error | undefined;
  for (const file of candidates(change, definition, reading, entries)) {
    const read = await readText(file);
    const before = read.kind === "text" ? read.text : undefined;
    for (const edit of edits(file, definition)) {
      try {
        const after = await loadedWith(reading, file, edit(before));
        const changed = find(after, server);
        const mistake = newMistake(file, now, after);
        const failure = mistake ?? (changed ? whyNoEffect(changed, after.settings) : unusable(file));
        if (!failure) return { file, edit };
        why ??= failure;
      } catch (error) {
        if (!(error instanceof ThreadsError)) throw error;
        why ??= error;
      }
    }
  }
  throw why ?? unusable(definition.file);
}

/** A mistake that the edit would make in the file. */
function newMistake(file: string, before: LoadedConfig, after: LoadedConfig): ThreadsError | undefined {
  const known = new Set(before.problems.map(({ key, message }) => `${key} ${message}`));
  const made = after.problems.find((one) => one.file === file && !known.has(`${one.key} ${one.message}`));
  return (
    made &&
    new ThreadsError("bad_config", `${made.key ?? "This"} in ${file} ${made.message}.`, {
      remedy: made.remedy,
      data: { file },
    })
  );
}

const unusable = (file: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} cannot decide this.`, {
    remedy: advice("edit"),
    data: { file },
  });

/** What decides about tools beside the server's own rules. */
export type Judged = Pick<Settings, "toolPrefix" | "directTools">;

export function decideIn(definition: ServerDefinition, settings: Judged): (tool: string) => Decision {
  const prefix = definition.toolPrefix ?? settings.toolPrefix;
  return (tool) =>
    decideExposure(tool, definition, settings.directTools, namesInRules(definition.name, tool, prefix));
}

/** As it is written: `search` is our word for what Pi calls deferred. */
const written = (to: Exposure): string => (to === "search" ? "deferred" : to);

const rulesIn = ({ entry }: EntryEdit, key: string): Record<string, unknown> | undefined =>
  isObject(entry[key]) ? (entry[key] as Record<string, unknown>) : undefined;

/** The exact rules of these tools go. */
function withoutRules(edit: EntryEdit, tools: readonly string[]): void {
  const rules = rulesIn(edit, "toolExposure");
  if (!rules) return;
  const kept = Object.keys(rules).filter((name) => !tools.includes(name));
  if (kept.length === 0) edit.remove(["toolExposure"]);
  else for (const tool of tools) if (Object.hasOwn(rules, tool)) edit.remove(["toolExposure", tool]);
}

/** `inherited`: rules of files below, which this file's rules would replace. */
function withRules(
  edit: EntryEdit,
  tools: readonly string[],
  { to, inherited }: { to: Exposure; inherited: Record<string, string> },
): void {
  if (rulesIn(edit, "toolExposure")) {
    for (const tool of tools) edit.set(["toolExposure", tool], written(to));
    return;
  }
  const own = Object.fromEntries(tools.map((tool) => [tool, written(to)]));
  edit.set(["toolExposure"], {
    ...own,
    ...Object.fromEntries(Object.entries(inherited).filter(([name]) => !Object.hasOwn(own, name))),
  });
}

/** The tools leave the lists of this file that hide them by their exact names, and join the list that lets others in. */
function unhidden(edit: EntryEdit, tools: readonly string[]): void {
  const { excludeTools, includeTools, tools: enabled } = edit.entry;
  if (Array.isArray(excludeTools)) {
    for (let at = excludeTools.length - 1; at >= 0; at--) {
      if (tools.includes(String(excludeTools[at]))) edit.removeItem(["excludeTools"], at);
    }
  }
  for (const [key, list] of Object.entries({ includeTools, tools: enabled })) {
    const missing = Array.isArray(list) ? tools.filter((tool) => !list.includes(tool)) : [];
    if (missing.length > 0) edit.append([key], missing);
  }
}

/** Rules of lower files, as they would be written. */
const inheritedRules = ({ raw }: ServerDefinition): Record<string, string> =>
  isObject(raw.toolExposure) ? (raw.toolExposure as Record<string, string>) : {};

interface ExposureChange {
  server: string;
  /** The server's own names. */
  tools: readonly string[];
  /** These are all tools of the server. */
  all: boolean;
  to: Exposure;
  settings: Judged;
}

/** Edits of one file, the smallest first. */
export function exposureEdits(
  file: string,
  definition: ServerDefinition,
  { server, tools, all, to, settings }: ExposureChange,
): Edit[] {
  const names = tools.filter((tool) => tool !== UNSAFE_KEY);
  const inherited = file === definition.file ? {} : inheritedRules(definition);
  const isShown = to !== "hidden";
  const edit =
    (change: (edit: EntryEdit) => void): Edit =>
    (text) =>
      editEntry(text, server, file, change);
  const shown = (one: EntryEdit): void => {
    if (isShown) unhidden(one, names);
  };
  const exact = edit((one) => {
    shown(one);
    withRules(one, names, { to, inherited });
  });
  const forgotten = edit((one) => {
    shown(one);
    withoutRules(one, names);
  });
  const forServer = (one: EntryEdit): void => {
    one.set(["exposure"], written(to));
    shown(one);
    withoutRules(one, names);
  };
  const whole = edit(forServer);
  // Exact rules only for the tools about which something else decides.
  const wholeAndExact = edit((one) => {
    forServer(one);
    const rules = { ...definition, exposure: to };
    const prefix = definition.toolPrefix ?? settings.toolPrefix;
    const others = names.filter(
      (tool) => exposureOf(tool, rules, settings.directTools, namesInRules(server, tool, prefix)) !== to,
    );
    if (others.length > 0) withRules(one, others, { to, inherited });
  });
  return all ? [forgotten, whole, wholeAndExact, exact] : [forgotten, exact];
}

/** Makes the new text of a file from the old one; undefined: there is no file yet. Throws `bad_config` if it cannot. */
export type Edit = (text: string | undefined) => string;

/**
 * Throws `bad_config` for a value that is an object: rules that somebody wrote are not replaced by a word. `value`: undefined
 * to take the key out.
 */
export const keyEdit =
  (file: string, server: string, key: string, value: string | boolean | undefined): Edit =>
  (text) =>
    editEntry(text, server, file, ({ entry, set, remove }) => {
      if (isObject(entry[key])) {
        throw new ThreadsError("bad_config", `${key} of ${server} in ${file} holds rules.`, {
          remedy: advice("edit"),
          data: { file },
        });
      }
      if (value !== undefined) set([key], value);
      else if (Object.hasOwn(entry, key)) remove([key]);
    });

/** Writes where the key is, and takes out what would be sent in its place. */
export const sourceEdit =
  (file: string, server: string, { header, from }: KeySource): Edit =>
  (text) =>
    editEntry(text, server, file, ({ entry, set, remove }) => {
      const drop = (path: [string, ...string[]]): void => {
        const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), entry);
        if (value !== undefined) remove(path as unknown as [...string[], string]);
      };
      if (header !== undefined) return set(["headers", header], writtenSource(from));
      const isVariable = "variable" in from;
      drop([isVariable ? "bearerToken" : "bearerTokenEnv"]);
      const headers = isObject(entry.headers) ? Object.keys(entry.headers) : [];
      for (const name of headers) if (name.toLowerCase() === "authorization") drop(["headers", name]);
      if (entry.auth === false || entry.auth === "none" || entry.auth === "oauth") drop(["auth"]);
      set([isVariable ? "bearerTokenEnv" : "bearerToken"], isVariable ? from.variable : writtenSource(from));
    });

/** The source as the value of a key: a reference to the variable, or the command, which runs at each connect. */
export const writtenSource = (from: KeySource["from"]): string =>
  "variable" in from ? `\${${from.variable}}` : `!${from.command}`;
