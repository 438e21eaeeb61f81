/**
 * The values of other programs' entries, written so that they mean here what they mean there: a variable that the
 * program fills in is filled in here or becomes one of our variables; a text that the program takes literally is
 * escaped. Pure.
 */
import { escapeVariables } from "../entry/interpolate.ts";
import type { ConfigFacts } from "../files/files.ts";
import { isEnvVariable, isVariableName } from "./common.ts";
import type { Data, Dialect, Syntax } from "./dialect.ts";

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

function rulesOf({ expandsHomeInArgs }: Dialect, key: string): KeyRules | undefined {
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
  for (const { 0: whole, 1: variable = "", index } of upToLastBrace(text).matchAll(syntax.pattern)) {
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
export function translateEntry(dialect: Dialect, entry: Data, facts: ConfigFacts): Data {
  const syntax = dialect.syntax?.(facts);
  const translated = Object.entries(entry).map(([key, value]) => {
    const rules = rulesOf(dialect, key);
    if (!rules) return [key, value];
    return [key, mapTexts(value, (text) => withLiteralStart(translateText(text, syntax), rules))];
  });
  return Object.fromEntries(translated);
}

/** The value of a header that is the variable of this name. If the variable is not set, the header is not sent. */
export const headerVariable = (name: unknown): string => (isVariableName(name) ? `\${${name}:-}` : "");

/** Without the text behind the colon, which may be long: `${config:...}`. */
const shown = (variable: string): string => variable.replace(/:.*$/s, ":...");

/** Why an entry, as the host wrote it, cannot be used here. */
export function unusableReason(dialect: Dialect, entry: Data): string | undefined {
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
  return `only its own program can fill in \${${shown(found)}}`;
}
