/** The options of `add`: their names, also those that other programs use, and what each value must be. Pure. */
import { slipsBetween } from "../text/slips.ts";

/** What the options say. */
export interface Given {
  single: Partial<Record<OptionName, string>>;
  env: Map<string, string>;
  headers: Map<string, string>;
}

/** What is wrong with the words. Thrown to leave all loops at once; only `parseAdd` sees it. */
export class AddProblem extends Error {}

/** Option -> whether a value follows. */
const OPTIONS = {
  env: true,
  header: true,
  "bearer-token-env": true,
  transport: true,
  cwd: true,
  lifecycle: true,
  description: true,
  scope: true,
  url: true,
  project: false,
  replace: false,
} as const;

export type OptionName = keyof typeof OPTIONS;

/** Spellings of `claude mcp add` and `codex mcp add`. */
const OTHER_NAMES: Readonly<Record<string, OptionName>> = {
  "-e": "env",
  "-H": "header",
  "-t": "transport",
  "-s": "scope",
  "--bearer-token-env-var": "bearer-token-env",
};

const CHOICES: Partial<Record<OptionName, readonly string[]>> = {
  transport: ["http", "sse", "stdio", "streamable-http"],
  lifecycle: ["lazy", "eager", "keep-alive"],
  scope: ["user", "project"],
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** RFC 9110, section 5.6.2: a token. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** The option that a word names, without its value: `--env=A=1` names `env`. */
export function optionOf(word: string): OptionName | undefined {
  const name = word.split("=", 1)[0] ?? "";
  if (Object.hasOwn(OTHER_NAMES, name)) return OTHER_NAMES[name];
  const long = name.slice(2);
  return name.startsWith("--") && Object.hasOwn(OPTIONS, long) ? (long as OptionName) : undefined;
}

function unknownOption(word: string): AddProblem {
  const name = (word.split("=", 1)[0] ?? "").slice(2);
  const near = Object.keys(OPTIONS).find((option) => slipsBetween(name, option, 2) <= 2);
  const meant = near === undefined ? "" : ` Did you mean --${near}?`;
  return new AddProblem(
    `${word} is no option of add.${meant} The options of the command itself stand behind the command.`,
  );
}

/** `NAME=value`, or for a header also `Name: value`: divided at the first of the separators. */
function pair(option: string, value: string, separator: RegExp, example: string): [string, string] {
  const at = value.search(separator);
  if (at <= 0) throw new AddProblem(`${option} needs ${example}.`);
  return [value.slice(0, at).trim(), value.slice(at + 1)];
}

function addTo(values: Map<string, string>, [name, value]: [string, string], what: string): void {
  if (values.has(name)) throw new AddProblem(`${what} ${name} is given twice.`);
  values.set(name, value);
}

function takeHeader({ headers }: Given, value: string): void {
  const [name, text] = pair("--header", value, /[:=]/, "Name=value or 'Name: value'");
  if (!HEADER_NAME.test(name)) throw new AddProblem("--header needs a name of letters, digits and hyphens.");
  addTo(headers, [name, text.trim()], "The header");
}

function take(given: Given, option: OptionName, value: string): void {
  if (option === "env") addTo(given.env, pair("--env", value, /=/, "NAME=value"), "The variable");
  else if (option === "header") takeHeader(given, value);
  else if (option === "project") takeSingle(given, "scope", option);
  else takeSingle(given, option, value);
}

function takeSingle({ single }: Given, option: OptionName, value: string): void {
  const choices = CHOICES[option];
  if (option === "scope" && value === "local")
    throw new AddProblem("--scope local is not known here. Write user, or project for .pi/mcp.json.");
  if (choices && !choices.includes(value))
    throw new AddProblem(`--${option} needs ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}.`);
  if (option === "bearer-token-env" && !VARIABLE.test(value))
    throw new AddProblem("--bearer-token-env needs the name of an environment variable, not the token.");
  if (single[option] !== undefined && single[option] !== value)
    throw new AddProblem(`--${option} is given twice.`);
  single[option] = value;
}

/** Reads the option at `at`. Answers how many words behind it belong to it. Throws `AddProblem`. */
export function readOption(given: Given, words: readonly string[], at: number): number {
  const word = words[at] as string;
  const option = optionOf(word);
  if (option === undefined) throw unknownOption(word);
  const equals = word.indexOf("=");
  if (!OPTIONS[option]) {
    if (equals !== -1) throw new AddProblem(`--${option} takes no value.`);
    take(given, option, "");
    return 0;
  }
  if (equals !== -1) {
    take(given, option, word.slice(equals + 1));
    return 0;
  }
  const value = words[at + 1];
  if (value === undefined || value === "--") throw new AddProblem(`${word} needs a value behind it.`);
  take(given, option, value);
  return 1;
}

/** For help and completion. */
export const addOptionNames = (): string[] => Object.keys(OPTIONS).map((name) => `--${name}`);
