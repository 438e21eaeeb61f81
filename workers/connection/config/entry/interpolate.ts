/**
 * Variables in a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `$env:VAR`, `{env:VAR}`; a default may hold
 * others, and without a name, as in `${:-$}`, it is just a text. Twice the first character stands for itself:
 * `$${`, `$$env:`, `{{env:`. One pass, so that a value that looks like a variable stays as it is. Pure.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** On Windows names differ in case only by accident, and a worker's copy of the environment minds it. */
export function lookUp(env: Environment, name: string, platform: NodeJS.Platform): string | undefined {
  if (Object.hasOwn(env, name)) return env[name];
  if (platform !== "win32") return undefined;
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

const NAME = "[A-Za-z_][A-Za-z0-9_]*";
/** Escapes first: the text behind one is not looked at as a variable. */
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

/** Whether a value is known only when its variables are filled in. An escape counts as one. */
export const holdsVariable = (text: string): boolean => HOLDS_VARIABLE.test(text);

/** The text written so that `interpolate` gives it back as it is. */
export const escapeVariables = (text: string): string =>
  text.replace(/\$\{|\$env:|\{env:/g, (start) => `${start[0]}${start}`);

/** A default that is being read, or the text itself. */
interface Frame {
  /** As written, and the variable it stands in for. */
  opening: string;
  name: string;
  text: string;
  /** How many variables were missing before it began: those of a default that is not used do not count. */
  missingBefore: number;
  /** Braces that an escape opened: the next `}` closes these. */
  braces: number;
}

const frame = (opening: string, name: string, missingBefore: number): Frame => ({
  opening,
  name,
  text: "",
  missingBefore,
  braces: 0,
});

/** The text with every variable replaced by what `fillWith` says. Linear in the text, however deep defaults are nested. */
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
        // As in a shell, `:-` also stands in for an empty value.
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
  // What is never closed is no variable.
  for (let parent = open.pop(); parent; parent = open.pop()) {
    parent.text += at.opening + at.text;
    at = parent;
  }
  return { text: whole.text, missing };
}

/** `missing`: variables that are not set and have no default. */
export const interpolate = (
  text: string,
  env: Environment,
  platform: NodeJS.Platform = "linux",
): { text: string; missing: string[] } => fill(text, (name) => lookUp(env, name, platform));

export interface Variables {
  /** Every variable that can be read for the text, also in defaults, each once. */
  names: string[];
  /** Whether the text holds more than variables. */
  hasText: boolean;
  /** Whether a default can stand in for one. */
  hasDefault: boolean;
}

/** What the text takes from the environment, whatever that holds. */
export function variablesIn(text: string): Variables {
  const names = new Set<string>();
  const set = fill(text, (name) => {
    // Without a name it is just a text.
    if (name === "") return undefined;
    names.add(name);
    return "\0";
  }).text.replaceAll("\0", "");
  const unset = fill(text, () => undefined).text;
  return { names: [...names], hasText: set !== "", hasDefault: names.size > 0 && unset !== set };
}
