/**
 * Variables in a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `$env:VAR`, `{env:VAR}`. A default may hold other
 * variables; without a name, as in `${:-$}`, it is just a text. A doubled first character stands for itself: `$${`,
 * `$$env:`, `{{env:`. One pass, so that a value that looks like a variable stays as it is. Pure.
 */

import { posix, win32 } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The value of a variable. On Windows the case of a name does not matter, but a worker's copy of the environment is
 * case-sensitive.
 */
function lookUp(env: Environment, name: string, platform: NodeJS.Platform): string | undefined {
  if (Object.hasOwn(env, name)) return env[name];
  if (platform !== "win32") return undefined;
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

const NAME = "[A-Za-z_][A-Za-z0-9_]*";
/** Escapes come first, so that the text behind an escape is not read as a variable. */
const TOKEN = new RegExp(
  [
    "(?<escaped>\\$\\$\\{|\\$\\$env:|\\{\\{env:)",
    `\\$\\{(?:env:)?(?<braced>${NAME})\\}`,
    `(?<opening>\\$\\{(?:(?:env:)?(?<defaulted>${NAME}))?:-)`,
    `\\$env:(?<plain>${NAME})`,
    `\\{env:(?<bare>${NAME})\\}`,
    "(?<end>\\})",
  ].join("|"),
  "g",
);
const HOLDS_VARIABLE = /\$\{|\$env:|\{env:/;

/** Whether a value is known only after its variables are filled in. An escape counts as a variable. */
export const holdsVariable = (text: string): boolean => HOLDS_VARIABLE.test(text);

/** Whether the value is a whole `!command`; `!!` stands for a literal `!`. */
export const isCommand = (value: string): boolean => /^!(?!!)/.test(value);

/** Whether a value is known only at connect: it holds a variable, or is a whole `!command`. */
export const isLate = (text: string): boolean => isCommand(text) || holdsVariable(text);

/** Escapes a text, so that `interpolate` gives the text back as it was. */
export const escapeVariables = (text: string): string =>
  text.replace(/\$\{|\$env:|\{env:/g, (start) => `${start[0]}${start}`);

/** A default that is being read, or the text itself. */
interface Frame {
  /** The start of the default as written, and the variable for which the default stands in. */
  opening: string;
  name: string;
  text: string;
  /** How many variables were missing before the default began: those in an unused default do not count. */
  missingBefore: number;
  /** How many braces escapes have opened: the next `}` closes one of these. */
  braces: number;
}

const frame = (opening: string, name: string, missingBefore: number): Frame => ({
  opening,
  name,
  text: "",
  missingBefore,
  braces: 0,
});

/**
 * Replaces every variable with the value that `fillWith` gives. Linear in the text, however deep defaults are nested.
 */
function fill(
  text: string,
  fillWith: (name: string) => string | undefined,
): { text: string; missing: string[] } {
  const open: Frame[] = [];
  const missing: string[] = [];
  const whole = frame("", "", 0);
  let at = whole;
  let seen = 0;
  for (const { 0: token, index, groups = {} } of text.matchAll(TOKEN)) {
    at.text += text.slice(seen, index);
    seen = index + token.length;
    const { escaped, braced, opening, defaulted = "", plain, bare, end } = groups;
    if (escaped !== undefined) {
      at.text += escaped.slice(1);
      if (escaped !== "$$env:") at.braces++;
    } else if (opening !== undefined) {
      open.push(at);
      at = frame(opening, defaulted, missing.length);
    } else if (end !== undefined) {
      const parent = at.braces === 0 ? open.pop() : undefined;
      if (parent) {
        // As in a shell, a default also stands in for an empty value.
        const value = fillWith(at.name);
        if (value) missing.length = at.missingBefore;
        parent.text += value ? value : at.text;
        at = parent;
      } else {
        at.text += end;
        at.braces = Math.max(0, at.braces - 1);
      }
    } else {
      const name = braced ?? plain ?? bare ?? "";
      const value = fillWith(name);
      if (value === undefined) missing.push(name);
      at.text += value ?? "";
    }
  }
  at.text += text.slice(seen);
  // A start that is never closed is not a variable.
  for (let parent = open.pop(); parent; parent = open.pop()) {
    parent.text += at.opening + at.text;
    at = parent;
  }
  return { text: whole.text, missing };
}

/** Fills in variables. `missing`: those that are not set and have no default. */
export const interpolate = (
  text: string,
  env: Environment,
  platform: NodeJS.Platform = "linux",
): { text: string; missing: string[] } => fill(text, (name) => lookUp(env, name, platform));

/** What the text becomes if no variable is set, and if each one is `1`, as SHLVL is for most people. */
export const outcomesOf = (text: string): string[] => [
  fill(text, () => undefined).text,
  fill(text, (name) => (name === "" ? undefined : "1")).text,
];

interface Variables {
  /** The variables that the text can read, also those in defaults, each once. */
  names: string[];
  /** Whether the text holds more than variables. */
  hasText: boolean;
  /** Whether a default can stand in for a variable. */
  hasDefault: boolean;
}

/** The variables that the text takes from the environment, whatever the environment holds. */
export function variablesIn(text: string): Variables {
  const names = new Set<string>();
  const set = fill(text, (name) => {
    // A default without a name is just a text.
    if (name === "") return undefined;
    names.add(name);
    return "\0";
  }).text.replaceAll("\0", "");
  const unset = fill(text, () => undefined).text;
  return { names: [...names], hasText: set !== "", hasDefault: names.size > 0 && unset !== set };
}

export const pathsOf = (platform: NodeJS.Platform): typeof posix => (platform === "win32" ? win32 : posix);

/** Replaces a leading `~/` with the home folder. */
export function expandHome(
  path: string,
  { home, platform }: { home: string; platform: NodeJS.Platform },
): string {
  if (path === "~") return home;
  const isHome = path.startsWith("~/") || (platform === "win32" && path.startsWith("~\\"));
  return isHome ? pathsOf(platform).join(home, path.slice(2)) : path;
}

/** The key that, written to a plain object, changes the object's prototype instead of naming a property. */
export const UNSAFE_KEY = "__proto__";

export interface PathFacts {
  env: Environment;
  home: string;
  platform?: NodeJS.Platform;
}

export function fillPath(
  text: string,
  { env, home, platform = process.platform }: PathFacts,
): ReturnType<typeof interpolate> {
  const withHome = /^~~+($|[/\\])/.test(text)
    ? text.slice(1)
    : expandHome(text, { home: escapeVariables(home), platform });
  return interpolate(withHome, env, platform);
}
