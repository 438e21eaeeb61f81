/**
 * The values of other programs' entries, written so that they mean here what they mean there: what a program
 * fills in is filled in or left to our variables, what it passes on literally is escaped. Pure.
 *
 * Sources: code.visualstudio.com/docs/reference/variables-reference and VS Code's extHostMcpNode.ts (`~` in
 * command, args, cwd; `envFile`); cursor.com/docs, Config interpolation; docs.windsurf.com, Config
 * Interpolation; code.claude.com/docs/en/mcp, Environment variable expansion; opencode.ai/docs/config,
 * Variables. Codex and Claude Desktop fill in nothing.
 */

import { pathsOf } from "../entry/home.ts";
import { escapeVariables } from "../entry/interpolate.ts";
import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts } from "../files/files.ts";

type Data = Record<string, unknown>;

interface KeyRules {
  /** Whether a `!command` is one there, in our files. */
  commands: boolean;
  /** Whether `~/` is the home folder there, in our files and in the host's. */
  home: "both" | "ours" | "neither";
}

/** Keys of our entries that hold values. Nobody means a program or folder by the name of `~`. */
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

/** Of one host's key. */
function rulesOf(host: HostName, key: string): KeyRules | undefined {
  const rules = Object.hasOwn(VALUE_KEYS, key) ? VALUE_KEYS[key] : undefined;
  return rules && host === "vscode" && key === "args" ? { ...rules, home: "both" } : rules;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const NAMED = "[A-Za-z_][A-Za-z0-9_]*";

/** What a program's variable becomes: its value, or one of our variables; undefined: it is literal. */
type Fill = (variable: string) => { value: string } | { ours: string } | undefined;

/** A program's variables: how they look, with the name as first group, and what they become. */
interface Syntax {
  pattern: RegExp;
  fill: Fill;
}

const editorVariables = ({ platform, home, cwd }: ConfigFacts): Record<string, string> => {
  const { basename, sep } = pathsOf(platform);
  return {
    userHome: home,
    workspaceFolder: cwd,
    workspaceFolderBasename: basename(cwd),
    pathSeparator: sep,
    "/": sep,
  };
};

/** `${env:X}` and the variables of an editor. `unset`: what a variable that is not set becomes. */
function editorFill(known: Record<string, string>, unset: ":-" | ""): Fill {
  return (variable) => {
    if (Object.hasOwn(known, variable)) return { value: known[variable] ?? "" };
    const name = variable.startsWith("env:") ? variable.slice("env:".length) : "";
    return NAME.test(name) ? { ours: `\${env:${name}${unset}}` } : undefined;
  };
}

/** One pass: a default there is literal. */
function claudeFill(variable: string): { ours: string } {
  const [name = "", ...fallback] = variable.split(":-");
  if (fallback.length === 0) return { ours: `\${${name}}` };
  return { ours: `\${${name}:-${escapeVariables(fallback.join(":-"))}}` };
}

function syntaxOf(host: HostName, facts: ConfigFacts): Syntax | undefined {
  const braced = /\$\{([^${}]+)\}/g;
  switch (host) {
    case "cursor":
      return { pattern: braced, fill: editorFill(editorVariables(facts), "") };
    case "vscode": {
      // There a variable that is not set is empty.
      const known = { ...editorVariables(facts), cwd: facts.cwd };
      return { pattern: braced, fill: editorFill(known, ":-") };
    }
    case "windsurf":
      return { pattern: braced, fill: editorFill({}, "") };
    case "claude-code":
      return {
        pattern: new RegExp(`\\$\\{(${NAMED}(?::-[^}]*)?)\\}`, "g"),
        fill: claudeFill,
      };
    case "opencode":
      // There too.
      return {
        pattern: new RegExp(`\\{env:(${NAMED})\\}`, "g"),
        fill: (name) => ({ ours: `\${${name}:-}` }),
      };
    default:
      return undefined;
  }
}

/** A text as it is, with a variable of ours behind it: the `$` at its end would make that an escape. */
function literalBefore(text: string): string {
  let end = text.length;
  while (text[end - 1] === "$") end--;
  const rest = escapeVariables(text.slice(0, end));
  return end === text.length ? rest : `${rest}\${:-${text.slice(end)}}`;
}

/**
 * A text as far as a variable can end in it. Behind its last brace each start of a variable would be followed to the
 * end of the text, and a hostile text has a start every few characters.
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

/** Every text in a value, however deep, changed. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}

/** The first character stays what it is, also that of a folder's name which was filled in. */
function withLiteralStart(text: string, { commands, home }: KeyRules): string {
  if (commands && text.startsWith("!")) return `!${text}`;
  if (home === "neither") return text;
  return (home === "ours" ? /^~+($|[/\\])/ : /^~~+($|[/\\])/).test(text) ? `~${text}` : text;
}

/** `entry`: in our shape, with the host's values. */
export function translateEntry(host: HostName, entry: Data, facts: ConfigFacts): Data {
  const syntax = syntaxOf(host, facts);
  const translated = Object.entries(entry).map(([key, value]) => {
    const rules = rulesOf(host, key);
    if (!rules) return [key, value];
    return [key, mapTexts(value, (text) => withLiteralStart(translateText(text, syntax), rules))];
  });
  return Object.fromEntries(translated);
}

/** A header whose variable is not set is not sent. */
export const headerVariable = (name: unknown): string =>
  typeof name === "string" && NAME.test(name) ? `\${${name}:-}` : "";

/** Variables that only the program can fill in: by a question, an extension, an open file, another folder. */
const ONLY_VSCODE =
  /\$\{((?:input|config|command|workspaceFolder|extensionInstallFolder|env):[^}]*|(?:file|relativeFile|fileWorkspaceFolder|selected|line|column)[A-Za-z]*(?::[^}]*)?|execPath|defaultBuildTask)\}/g;
const ONLY: Partial<Record<HostName, RegExp>> = {
  vscode: ONLY_VSCODE,
  cursor: /\$\{((?:input|config|command|workspaceFolder):[^}]*)\}/g,
  windsurf: /\$\{(file:[^}]*)\}/g,
  opencode: /\{(file:[^}]*)\}/g,
};

const isKnown = (variable: string): boolean => variable.startsWith("env:") && NAME.test(variable.slice(4));

/** Shown without what stands behind the colon, which may be long: `${config:...}`. */
const shown = (variable: string): string => variable.replace(/:.*$/s, ":...");

/** Why an entry, as the host wrote it, cannot be used here. */
export function unusableReason(host: HostName, entry: Data): string | undefined {
  if (host === "claude-code" && entry.headersHelper !== undefined) return "it gets its headers from a helper";
  const { command, args, env, environment, cwd, envFile, url, serverUrl, headers } = entry;
  const pattern = ONLY[host];
  if (!pattern) return undefined;
  let found: string | undefined;
  mapTexts([command, args, env, environment, cwd, envFile, url, serverUrl, headers], (text) => {
    const variables = found === undefined ? upToLastBrace(text).matchAll(pattern) : [];
    for (const { 1: variable = "" } of variables) if (!isKnown(variable)) found ??= variable;
    return text;
  });
  if (found === undefined) return undefined;
  if (found.startsWith("file:") && host !== "vscode") return "it reads a value from a file";
  if (found.startsWith("input:")) return "it asks for an ${input:...}";
  return `only its own program can fill in \${${shown(found)}}`;
}
