/**
 * Owns: the servers of other programs (Cursor, Claude, Codex, ...) as definitions of ours, one file at a time. A mistake in
 * such a file is a warning. The values mean here what they mean there: a variable that the program fills in is filled in
 * here or becomes one of our variables; a text that the program takes literally is escaped. Must not: read files, or decide
 * which server wins. Pure. To add a host: its name in `HOSTS` (src/shared/import-names.ts) and its row in DIALECTS.
 */

import type { HostName } from "../../../../src/shared/import-names.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import { isProject, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import { INHERITED } from "../entry/inherit-env.ts";
import { escapeVariables, pathsOf } from "../entry/interpolate.ts";
import { check, type Mistake, warning } from "../entry/mistakes.ts";
import { applyOverride, ownRules } from "../entry/override.ts";
import { entryShape, inOneSpelling, OVERRIDE_KEYS } from "../entry/server-keys.ts";
import { parseJsonc, parseTomlText } from "../files/document.ts";
import { addAll, brokenFile, fileLimits, shownKey, tooManyServers, toProblems } from "../files/files.ts";
import type { ConfigFacts, ConfigSource } from "../files/sources.ts";
import { DIALECTS, isEnvVariable, isVariableName } from "./dialects.ts";
import { compact, type Data, type Format, objectAt, type Syntax } from "./format.ts";
import type { NamedRules } from "./named-rules.ts";

/** Files of one host, lowest precedence first. A project's files need a consent for each server, like `.mcp.json`. */
export function hostSources(host: HostName, facts: ConfigFacts): ConfigSource[] {
  const { env, home, platform } = facts;
  const { join, isAbsolute, resolve } = pathsOf(platform);
  const config = env.XDG_CONFIG_HOME || join(home, ".config");
  const desktop: Partial<Record<NodeJS.Platform, string>> = {
    darwin: join(home, "Library", "Application Support"),
    win32: env.APPDATA || join(home, "AppData", "Roaming"),
  };
  const appData = desktop[platform] ?? config;
  const { user, project, userLast = [] } = DIALECTS[host].files({ facts, join, config, appData });
  const usual = DIALECTS[host].files({
    ...{ facts: { ...facts, env: {} }, join, config: join(home, ".config") },
    appData: { ...desktop, win32: join(home, "AppData", "Roaming") }[platform] ?? join(home, ".config"),
  });
  const isUsual = (file: string): boolean => [...usual.user, ...(usual.userLast ?? [])].includes(file);
  const roots = [facts.cwd, ...(facts.worktree === undefined ? [] : [facts.worktree])];
  // A variable such as CODEX_HOME, which a folder's own tools may set, can lead into the clone: then the file is the project's.
  const isClones = (file: string): boolean =>
    !isAbsolute(file) ||
    roots.some((root) => isWithin(file, root, platform) && !isWithin(home, root, platform));
  const sourceOf =
    (origin: ConfigSource["origin"]) =>
    (file: string): ConfigSource => ({ file, origin, required: false });
  const ofUser = (file: string): ConfigSource =>
    isClones(file) && !isUsual(file)
      ? sourceOf("project-file")(resolve(facts.cwd, file))
      : sourceOf("import")(file);
  const ofProject = project.map(sourceOf("project-file"));
  // If the session runs in the home folder, a file can be the user's and the project's: then it is the project's only.
  const isTwice = ({ file }: ConfigSource): boolean => project.includes(file);
  const first = user.map(ofUser).filter((source) => source.origin === "import" || !isTwice(source));
  const last = userLast.map(ofUser).filter((source) => !isTwice(source));
  return [...first, ...ofProject, ...last].filter(
    ({ origin }) => origin === "import" || facts.projectTrusted,
  );
}

/** Whether the host looks for files above the working folder, so that its sources depend on the worktree. */
export const looksUp = (host: HostName): boolean => DIALECTS[host].looksUp === true;

interface KeyRules {
  /** Whether a `!command` runs in our files. */
  commands: boolean;
  /** Where a leading `~/` is the home folder: in our files and in the host's, or only in ours. */
  home: "both" | "ours" | "neither";
}

/** The keys of our entries that hold values. Nobody names a program or folder `~`. */
const VALUE_KEYS: Record<string, KeyRules> = {
  command: { commands: false, home: "both" },
  envFile: { commands: false, home: "both" },
  cwd: { commands: true, home: "both" },
  args: { commands: true, home: "ours" },
  env: { commands: true, home: "ours" },
  url: { commands: true, home: "neither" },
  headers: { commands: true, home: "neither" },
  oauth: { commands: true, home: "neither" },
};

function rulesOf({ expandsHomeInArgs }: Format, key: string): KeyRules | undefined {
  const rules = Object.hasOwn(VALUE_KEYS, key) ? VALUE_KEYS[key] : undefined;
  return rules && expandsHomeInArgs && key === "args" ? { ...rules, home: "both" } : rules;
}

/** A literal text in front of a variable of ours: a `$` at its end would make an escape of that variable. */
function literalBefore(text: string): string {
  let end = text.length;
  while (text[end - 1] === "$") end--;
  const rest = escapeVariables(text.slice(0, end));
  return end === text.length ? rest : `${rest}\${:-${text.slice(end)}}`;
}

/**
 * The part of a text in which a variable can end. Behind the last brace, the pattern would follow each start of a
 * variable to the end of the text, and a hostile text has a start every few characters.
 */
const upToLastBrace = (text: string): string => text.slice(0, text.lastIndexOf("}") + 1);

/** A text with its variables translated and all else literal. */
function translateText(text: string, syntax: Syntax | undefined): string {
  if (!syntax) return escapeVariables(text);
  let translated = "";
  let literal = "";
  let seen = 0;
  for (const { 0: whole, 1: variable = "", index } of (syntax.isBare ? text : upToLastBrace(text)).matchAll(
    syntax.pattern,
  )) {
    const filled = syntax.fill(variable);
    if (filled === undefined) continue;
    literal += text.slice(seen, index);
    seen = index + whole.length;
    if ("value" in filled) literal += filled.value;
    else {
      translated += literalBefore(literal) + filled.ours;
      literal = "";
    }
  }
  return translated + escapeVariables(literal + text.slice(seen));
}

/** Changes every text in a value, however deep. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}

/** Escapes a first character that has a meaning in our files only. It can also come from a filled-in folder name. */
function withLiteralStart(text: string, { commands, home }: KeyRules): string {
  if (commands && text.startsWith("!")) return `!${text}`;
  if (home === "neither") return text;
  return (home === "ours" ? /^~+($|[/\\])/ : /^~~+($|[/\\])/).test(text) ? `~${text}` : text;
}

/** `entry`: in our shape, with the host's values. */
function translateEntry(dialect: Format, entry: Data, facts: ConfigFacts): Data {
  const translated = Object.entries(entry).map(([key, value]) => {
    const rules = rulesOf(dialect, key);
    if (!rules) return [key, value];
    const written = dialect.syntax?.(facts, key);
    const syntax = written?.keys?.includes(key) === false ? undefined : written;
    return [key, mapTexts(value, (text) => withLiteralStart(translateText(text, syntax), rules))];
  });
  return Object.fromEntries(translated);
}

const NOT_OURS = "Write the server into your own mcp.json.";

/** Without the text behind the colon, which may be long: `${config:...}`. */
const shown = (variable: string): string => variable.replace(/:.*$/s, ":...");

/** Why an entry, as the host wrote it, cannot be used here. */
function unusableReason(dialect: Format, entry: Data): string | undefined {
  const reason = dialect.unusable?.(entry);
  if (reason !== undefined) return reason;
  const { command, args, env, environment, cwd, envFile, url, serverUrl, headers, oauth, auth } = entry;
  const { foreign } = dialect;
  if (!foreign) return undefined;
  let found: string | undefined;
  mapTexts([command, args, env, environment, cwd, envFile, url, serverUrl, headers, oauth, auth], (text) => {
    const variables = found === undefined ? upToLastBrace(text).matchAll(foreign) : [];
    for (const { 1: variable = "" } of variables) if (!isEnvVariable(variable)) found ??= variable;
    return text;
  });
  if (found === undefined) return undefined;
  if (found.startsWith("file:") && !dialect.namesOpenFile) return "it reads a value from a file";
  if (found.startsWith("input:")) return "it asks for an ${input:...}";
  // `userConfig` of a Claude plugin (code.claude.com/docs/en/plugins-reference).
  if (found.startsWith("user_config."))
    return `Claude Code alone has the value of \${${shown(found)}}, for which it asked its user`;
  return `only its own program can fill in \${${shown(found)}}`;
}

/** Names as `inheritEnv` has them. */
function passedOn(dialect: Format, entry: Data): { passesOn?: string[] } {
  const named = dialect.passesOn?.(entry);
  const names = (Array.isArray(named) ? named : []).filter(
    (name): name is string => isVariableName(name) && name.length <= INHERITED.chars,
  );
  return names.length === 0 ? {} : { passesOn: [...new Set(names)].slice(0, INHERITED.items) };
}

/** An entry in our own shape. If its variable is not set, a header from the environment is not sent. */
function toOwnEntry(dialect: Format, entry: Data, root: Data, facts: ConfigFacts): Data {
  const converted = dialect.convert(entry, root, facts);
  const own = dialect.isOurs ? converted : translateEntry(dialect, converted, facts);
  const headers = Object.entries(objectAt(dialect.headersFromEnv?.(entry)));
  if (headers.length === 0) return compact(own);
  const filled = headers.map(([header, name]) => [header, isVariableName(name) ? `\${${name}:-}` : ""]);
  return compact({ ...own, headers: { ...objectAt(own.headers), ...Object.fromEntries(filled) } });
}

/** An entry over another one of the name. `env`, `headers` and other objects of values are laid over each other, too. */
const laidOver = (below: Data, above: Data): Data =>
  Object.fromEntries(
    Object.entries({ ...below, ...above }).map(([key, value]) => [
      key,
      isObject(value) && isObject(below[key]) ? { ...below[key], ...value } : value,
    ]),
  );

const isRule = (key: string): boolean =>
  key === "includeTools" || (OVERRIDE_KEYS as readonly string[]).includes(key);

const parted = (data: Data, isFirst: (key: string) => boolean): [Data, Data] => {
  const [first = [], others = []] = [true, false].map((is) =>
    Object.entries(data).filter(([key]) => isFirst(key) === is),
  );
  return [Object.fromEntries(first), Object.fromEntries(others)];
};

/**
 * A server of the user's with what a project's file changes of it. What narrows it counts at once, like an override of
 * `.mcp.json`; for anything else the person is asked, and the server runs on without that until there is a yes.
 */
function changedByProject(
  base: ServerDefinition,
  changes: Data,
  source: ConfigSource,
): { definition: ServerDefinition | undefined; mistakes: Mistake[] } {
  const [rules, others] = parted(changes, isRule);
  const { data, mistakes } = check(entryShape, rules);
  if (!data) return { definition: undefined, mistakes };
  const narrowed = Object.keys(rules).length > 0 ? applyOverride(base, inOneSpelling(data), source) : base;
  if (Object.keys(others).length === 0) return { definition: narrowed, mistakes };
  const { file, origin } = source;
  const parsed = parseEntry(base.name, laidOver(narrowed.raw, others), { file, origin });
  const { approveToo, overrides, enabledByProject } = narrowed;
  const userRules = ownRules(narrowed);
  const replaced = enabledByProject === undefined ? narrowed : base;
  return {
    definition: parsed.definition && { ...parsed.definition, userRules, approveToo, overrides, replaced },
    mistakes: parsed.mistakes,
  };
}

export type Place = Pick<ConfigProblem, "key" | "line" | "column">;

export interface HostFile {
  servers: ServerDefinition[];
  /** Where each server stands. */
  places: Map<ServerDefinition, Place>;
  problems: ConfigProblem[];
  broken: boolean;
  /** What the file says of servers by their names, its own included. Nothing of it is in `servers` yet. */
  rules?: NamedRules;
}

/**
 * `before`: servers of the host's files of lower precedence. If the host merges its files key by key, an entry without a
 * target changes one of those. What then runs is trusted as far as the file that holds its command or URL. Never throws.
 */
export const parseHostText = (
  text: string,
  options: { host: HostName } & Omit<ParseOptions, "dialect">,
): HostFile => parseServers(text, { ...options, dialect: DIALECTS[options.host] });

interface ParseOptions {
  source: ConfigSource;
  facts: ConfigFacts;
  before: readonly ServerDefinition[];
  dialect: Format;
}

/** The same for any format. */
export function parseServers(text: string, { dialect, source, facts, before }: ParseOptions): HostFile {
  const { file, base: belongsTo } = source;
  const found: HostFile = { servers: [], places: new Map(), problems: [], broken: false };
  if (text.trim() === "") return found;
  const limits = fileLimits(source);
  const parse = dialect.format === "toml" ? parseTomlText : parseJsonc;
  const parsed = parse(withoutBom(text), limits.values);
  if ("problem" in parsed)
    return { ...found, problems: brokenFile(source, parsed.problem).problems, broken: true };
  const { document } = parsed;
  const root = document.value;
  if (!isObject(root)) return found;
  const refused = dialect.refuses?.(root);
  if (refused !== undefined) {
    const mistake = warning([], refused, NOT_OURS);
    return { ...found, problems: toProblems(document, file, [], [mistake]) };
  }
  const rules = dialect.rules?.(root, facts, file);
  if (rules) found.rules = { ...rules, source };
  const written = dialect
    .groups(root, facts, file)
    .flatMap(({ path, servers }) =>
      Object.entries(isObject(servers) ? servers : {}).map(([name, entry]) => ({ path, name, entry })),
    );
  if (written.length > limits.servers)
    addAll(found.problems, toProblems(document, file, [], [tooManyServers(source, written.length)]));
  // The last server of a name counts.
  const bases = new Map(before.map((server) => [server.name, server]));
  for (const { path, name: asWritten, entry } of written.slice(0, limits.servers)) {
    const name = dialect.name?.(asWritten) ?? asWritten;
    const own = isObject(entry) ? toOwnEntry(dialect, entry, root, facts) : entry;
    const changes = dialect.mergesEntries && isObject(own) && !(own.command ?? own.url) ? own : undefined;
    const base = changes && bases.get(name);
    if (changes && !base && Object.keys(changes).every(isRule)) continue;
    const origin = base?.project ? base.origin : source.origin;
    const { definition, mistakes } =
      changes && base && isProject(source.origin) && !base.project
        ? changedByProject(base, changes, source)
        : parseEntry(name, changes && base ? laidOver(base.raw, changes) : own, {
            file,
            origin,
            ...(belongsTo && { base: belongsTo }),
          });
    const unusable = isObject(entry) ? unusableReason(dialect, entry) : undefined;
    if (definition && unusable === undefined) {
      // A file that is not merged defines the server, and decides.
      const { definedByProject } = base ?? definition;
      const server: ServerDefinition = {
        ...definition,
        definedByProject,
        ...(base?.passesOn && { passesOn: base.passesOn }),
        ...(isObject(entry) && passedOn(dialect, entry)),
      };
      const at = [...path, asWritten];
      found.servers.push(server);
      found.places.set(server, { key: shownKey(at), ...document.at(at) });
    }
    const message = `cannot be imported: ${unusable}`;
    const remedy = NOT_OURS;
    const differs = definition && isObject(entry) ? dialect.differs?.(entry, root, facts) : undefined;
    const reported = [
      ...(unusable === undefined
        ? differs
          ? [{ path: [], ...differs }]
          : []
        : [{ path: [], message, remedy }]),
      ...mistakes.filter(({ severity }) => severity === "error"),
    ].map((mistake) => ({ ...mistake, severity: "warning" as const }));
    addAll(found.problems, toProblems(document, file, [...path, asWritten], reported));
  }
  return found;
}
