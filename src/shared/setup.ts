/**
 * The words of `add`, of `/mcp add` and of the command line, as an entry of mcp.json: `[options] <name> <command or url>
 * [arguments]`, or `[options] [name] <json>`. The options of `claude mcp add` and `codex mcp add` have the same meaning here.
 * Values stay as they are written: `${VAR}` is filled in at connect. The worker checks the entry. Pure.
 */
import { type ParseError, type ParseErrorCode, parse as parseJsonc, printParseErrorCode } from "jsonc-parser";
import { isBundle, isUrl, lacksName, linkedJson, proposedName, UNPACK, withoutLead } from "./pasted.ts";
import type { JsonValue } from "./protocol/errors.ts";
import type { ServerEntry } from "./protocol/person.ts";
import { isObject } from "./protocol/values.ts";
import { isKeyAsVariable } from "./text/key-shape.ts";
import { slipsBetween } from "./text/reading.ts";

/** What the options say. */
interface Given {
  single: Partial<Record<OptionName, string>>;
  env: Map<string, string>;
  headers: Map<string, string>;
}

/** What is wrong with the words. Thrown to leave all loops at once; only `parseAdd` sees it. */
class AddProblem extends Error {
  /** What may be done in place of it. */
  readonly instead: Instead | undefined;

  constructor(message: string, instead?: Instead) {
    super(message);
    this.instead = instead;
  }
}

export interface Instead {
  /** The same words with this proposal for the name that was forgotten. */
  named?: AddWords;
  /** The servers of a JSON text that holds more than one. */
  several?: AddWords[];
  /** A name alone, without a command or a URL. */
  bare?: string;
}

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
  sandbox: false,
  project: false,
  replace: false,
} as const;

type OptionName = keyof typeof OPTIONS;

/** Spellings of `claude mcp add` and `codex mcp add`. */
const OTHER_NAMES: Readonly<Record<string, OptionName>> = {
  "-e": "env",
  "-H": "header",
  "-t": "transport",
  "-s": "scope",
  "--bearer-token-env-var": "bearer-token-env",
};

const CHOICES: Partial<Record<OptionName, readonly string[]>> = {
  transport: ["http", "sse", "stdio", "streamable-http", "socket"],
  lifecycle: ["lazy", "eager", "keep-alive"],
  scope: ["user", "project"],
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** RFC 9110, section 5.6.2: a token. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** The option that a word names, without its value: `--env=A=1` names `env`. */
function optionOf(word: string): OptionName | undefined {
  const name = word.split("=", 1)[0] ?? "";
  if (Object.hasOwn(OTHER_NAMES, name)) return OTHER_NAMES[name];
  const long = name.slice(2);
  return name.startsWith("--") && Object.hasOwn(OPTIONS, long) ? (long as OptionName) : undefined;
}

/** Whether the next word is the value of this one, which names an option. */
export function takesNext(word: string): boolean {
  const option = optionOf(word);
  return option !== undefined && OPTIONS[option] && !word.includes("=");
}

function unknownOption(word: string): AddProblem {
  const name = (word.split("=", 1)[0] ?? "").slice(2);
  const near = Object.keys(OPTIONS).find((option) => slipsBetween(name, option, 2) <= 2);
  const meant = near === undefined ? "" : ` Did you mean --${near}?`;
  return new AddProblem(
    `${word} is not an option of add.${meant} The options of the command itself stand behind the command.`,
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
  if (option === "bearer-token-env" && (!VARIABLE.test(value) || isKeyAsVariable(value)))
    throw new AddProblem("--bearer-token-env needs the name of an environment variable, not the token.");
  if (single[option] !== undefined && single[option] !== value)
    throw new AddProblem(`--${option} is given twice.`);
  single[option] = value;
}

/** Reads the option at `at`. Answers how many words behind it belong to it. Throws `AddProblem`. */
function readOption(given: Given, words: readonly string[], at: number, isLoose: boolean): number {
  const word = words[at] as string;
  const option = optionOf(word);
  if (option === undefined) throw unknownOption(word);
  const equals = word.indexOf("=");
  if (!OPTIONS[option] && equals !== -1) throw new AddProblem(`--${option} takes no value.`);
  if (!OPTIONS[option] || equals !== -1) {
    take(given, option, word.slice(equals + 1));
    return 0;
  }
  const value = words[at + 1];
  if (value === undefined || value === "--") throw new AddProblem(`${word} needs a value behind it.`);
  take(given, option, value);
  let taken = 1;
  if (isLoose && option === "env")
    for (; /^[A-Za-z_]\w*=/.test(words[at + taken + 1] ?? ""); taken++)
      take(given, option, words[at + taken + 1] as string);
  return taken;
}

/** Far more than a server needs; a person may paste anything. */
const JSON_CHARS = 100_000;
const MOST_SERVERS = 50;
/** What JSON does not say. */
const ELSEWHERE = { project: false, saysWhere: false, replace: false };
const SERVER_KEYS = ["mcpServers", "mcp-servers", "mcp_servers", "servers"];

const isEntry = (value: unknown): value is ServerEntry =>
  isObject(value) &&
  ["command", "url", "serverUrl", "httpUrl", "socket"].some((key) => typeof value[key] === "string");

/** Windsurf and Gemini have other keys for the URL; most programs write milliseconds where we have seconds. */
function asOurs({ serverUrl, httpUrl, timeout, ...entry }: ServerEntry): ServerEntry {
  const isMs = typeof timeout === "number" && timeout > 0 && timeout % 1_000 === 0;
  return compact({
    ...entry,
    url: entry.url ?? serverUrl ?? httpUrl,
    timeout: isMs ? undefined : timeout,
    requestTimeoutMs: entry.requestTimeoutMs ?? (isMs ? timeout : undefined),
  });
}

/** Whether the text begins as an object does, behind comments. Each comment can be read in one way only, so that it is read once. */
export const isJsonText = (text: string): boolean =>
  /^(?:\s|\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*\{/.test(text);

/** For example `CommaExpected` -> "comma expected". */
const mistakeText = (code: ParseErrorCode): string =>
  printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

/** The value of JSON as pages show it, with comments and trailing commas. Throws `AddProblem`. */
function parsed(written: string): unknown {
  // Blanks of pages and editors around it, such as a BOM, are none of JSON.
  const text = written.trim();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // It may have what jsonc-parser forgives, and that one says where a mistake is.
  }
  const mistakes: ParseError[] = [];
  let value: unknown;
  try {
    value = parseJsonc(text, mistakes, { allowTrailingComma: true });
  } catch (error) {
    // It calls itself for each level.
    if (error instanceof RangeError) throw new AddProblem("That JSON is nested too deeply.");
    throw error;
  }
  const [first] = mistakes;
  if (!first) return value;
  const lines = text.slice(0, first.offset).split("\n");
  throw new AddProblem(
    `That is not a JSON object: ${mistakeText(first.error)} in line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}.`,
  );
}

/**
 * One server from a piece of JSON, as READMEs show it: a whole file with `mcpServers`, one property of it, or the entry
 * alone. Throws `AddProblem`.
 */
function readJsonServer(text: string): { name?: string; entry: ServerEntry } {
  if (text.length > JSON_CHARS) throw new AddProblem("That is too long for the entry of one server.");
  const root = parsed(text);
  if (!isObject(root)) throw new AddProblem("That is not a JSON object.");
  if (isEntry(root)) {
    const { name, ...entry } = root;
    // VS Code's command line takes the name among the keys.
    return { ...(typeof name === "string" ? { name } : {}), entry: asOurs(entry) };
  }
  const key = SERVER_KEYS.find((one) => isObject(root[one]));
  const servers = Object.entries(key === undefined ? root : (root[key] as object));
  const entries = servers.filter((server): server is [string, ServerEntry] => isEntry(server[1]));
  if (entries.length > MOST_SERVERS)
    throw new AddProblem(
      `The JSON holds ${entries.length} servers, more than the ${MOST_SERVERS} that are added at once: write them into your mcp.json.`,
    );
  const [first] = entries;
  if (first === undefined) throw new AddProblem("The JSON names no server with a command or a url.");
  if (entries.length > 1) {
    const several = entries.map(([name, entry]): AddWords => ({ ...ELSEWHERE, name, entry: asOurs(entry) }));
    throw new AddProblem(
      `The JSON holds ${entries.length} servers: /mcp add in Pi lets you choose, or write them into your mcp.json.`,
      { several },
    );
  }
  return { name: first[0], entry: asOurs(first[1]) };
}

export interface AddWords {
  name: string;
  entry: ServerEntry;
  /** For the project's file. */
  project: boolean;
  /** Whether the words say for which file: nobody need be asked then. */
  saysWhere: boolean;
  replace: boolean;
}

/** The forms of `add`, without the command before it. */
export const ADD_USAGE = [
  "add <name> <command> [arguments]",
  "add <name> <url>",
  "add [name] <the JSON of a README>",
  "add <the name of a well-known server>, for example github",
  "Options, before the name: --env NAME=value, --header Name=value, --bearer-token-env NAME, --transport http|sse|socket, --cwd folder, --lifecycle lazy|eager|keep-alive, --description text, --sandbox, --project, --replace.",
  "-- ends the options.",
].join("\n");

/** A URL, or a text that gives one at connect: a variable or a command. */
const mayBeUrl = (word: string): boolean => isUrl(word) || /^(\$\{|\$env:|!)/.test(word);

const wantsHttp = ({ single: { transport, url } }: Given): boolean =>
  url !== undefined || (transport !== undefined && transport !== "stdio" && transport !== "socket");

interface Read {
  given: Given;
  /** The name, then the command or the URL, as far as they stand before `--`. */
  positionals: string[];
  /** Words behind `--` or behind the command. */
  rest: readonly string[];
}

/** Divides the words. Behind a URL there can be options; behind a command all words are the command's. */
function read(words: readonly string[], isLoose: boolean): Read {
  const given: Given = { single: {}, env: new Map(), headers: new Map() };
  const positionals: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--") return { given, positionals, rest: words.slice(at + 1) };
    if (word.startsWith("-") && word !== "-") {
      at += readOption(given, words, at, isLoose);
      continue;
    }
    positionals.push(word);
    if (positionals.length < 2 || isUrl(word) || wantsHttp(given)) continue;
    const isDivided = isLoose && words[at + 1] === "--";
    const rest = words.slice(isDivided ? at + 2 : at + 1);
    if (!isDivided) refuseOwnOptions(rest);
    return { given, positionals, rest };
  }
  return { given, positionals, rest: [] };
}

/** An option of ours behind the command would become the command's without a word. */
function refuseOwnOptions(rest: readonly string[]): void {
  const found = rest.find((word) => word.startsWith("--") && optionOf(word) !== undefined);
  if (found === undefined) return;
  throw new AddProblem(
    `${found} stands behind the command. Write it before the name; or, if it is the command's own, write -- before the command.`,
  );
}

function targetOf({ given, positionals, rest }: Read): readonly string[] {
  const { url } = given.single;
  const written = [...positionals.slice(1), ...rest];
  if (url === undefined) return written;
  if (written.length > 0) throw new AddProblem(`--url is given, so ${written[0]} is a word too many.`);
  return [url];
}

function refuse({ single, env, headers }: Given, options: readonly OptionName[], what: string): void {
  const isGiven = (option: OptionName): boolean => {
    if (option === "env") return env.size > 0;
    return option === "header" ? headers.size > 0 : single[option] !== undefined;
  };
  const found = options.find(isGiven);
  if (found !== undefined) throw new AddProblem(`--${found} is for ${what}.`);
}

const valuesOf = (values: Map<string, string>): ServerEntry | undefined =>
  values.size === 0 ? undefined : Object.fromEntries(values);

/** Without the keys that are not given. */
const compact = (keys: Record<string, JsonValue | undefined>): ServerEntry =>
  Object.fromEntries(Object.entries(keys).filter((key): key is [string, JsonValue] => key[1] !== undefined));

function httpEntry([url = "", extra]: readonly string[], given: Given): ServerEntry {
  const { transport } = given.single;
  if (extra !== undefined) throw new AddProblem(`A URL takes no arguments: ${extra} is a word too many.`);
  if (!mayBeUrl(url)) throw new AddProblem(`${url} is not a URL: it must begin with https:// or http://.`);
  refuse(given, ["env", "cwd", "sandbox"], "a command, and a URL is given");
  return compact({
    type: transport === "sse" ? "sse" : undefined,
    url,
    headers: valuesOf(given.headers),
    bearerTokenEnv: given.single["bearer-token-env"],
    lifecycle: given.single.lifecycle,
    description: given.single.description,
  });
}

function stdioEntry([command = "", ...args]: readonly string[], given: Given): ServerEntry {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(command))
    throw new AddProblem("A URL must begin with https:// or http://; a command holds no ://.");
  refuse(given, ["header", "bearer-token-env"], "a URL, and a command is given");
  return compact({
    command,
    args: args.length > 0 ? args : undefined,
    env: valuesOf(given.env),
    cwd: given.single.cwd,
    sandbox: given.single.sandbox === undefined ? undefined : true,
    lifecycle: given.single.lifecycle,
    description: given.single.description,
  });
}

function socketEntry([socket = "", extra]: readonly string[], given: Given): ServerEntry {
  if (extra !== undefined) throw new AddProblem(`A socket takes no arguments: ${extra} is a word too many.`);
  refuse(given, ["env", "cwd", "sandbox"], "a command, and a socket is given");
  refuse(given, ["header", "bearer-token-env"], "a URL, and a socket is given");
  return compact({ socket, lifecycle: given.single.lifecycle, description: given.single.description });
}

/** The name that the words or the JSON give, or one that says what runs. */
function nameOf(entry: ServerEntry): string {
  const { command, args, url, socket } = entry;
  const words = [command, ...(Array.isArray(args) ? args : []), url, socket];
  return proposedName(words.filter((word) => typeof word === "string"));
}

/** An entry that is given as JSON, as READMEs show it. */
function jsonEntry(
  [json = "", extra]: readonly string[],
  name: string | undefined,
  given: Given,
): { name: string; entry: ServerEntry } {
  const { scope: _scope, replace: _replace, ...others } = given.single;
  if (extra !== undefined) throw new AddProblem(`Behind the JSON, ${extra} is a word too many.`);
  const [option] = Object.keys(others);
  refuse(given, ["env", "header"], "a command or a URL; write it into the JSON");
  if (option !== undefined)
    throw new AddProblem(`--${option} is for a command or a URL; write it into the JSON.`);
  const read = readJsonServer(json);
  return { name: name ?? read.name ?? nameOf(read.entry), entry: read.entry };
}

function refuseBundle(...words: (string | undefined)[]): void {
  const found = words.find((word) => word !== undefined && isBundle(word));
  if (found !== undefined)
    throw new AddProblem(`${found} is a bundle of a server, and bundles are not installed here. ${UNPACK}`);
}

function serverOf(all: Read): { name: string; entry: ServerEntry } {
  const { given, positionals } = all;
  const [name] = positionals;
  const [first] = name === undefined ? all.rest : [name];
  if (first !== undefined && isJsonText(first)) {
    const behind = name === undefined ? all.rest.slice(1) : targetOf(all);
    return jsonEntry([first, ...behind], undefined, given);
  }
  if (name === undefined) throw new AddProblem("The name of the server is missing.");
  const target = targetOf(all);
  refuseBundle(name, target[0]);
  if (target[0] === undefined || target[0] === "")
    throw new AddProblem(`The command or the URL is missing behind the name ${name}.`, { bare: name });
  if (isJsonText(target[0])) return jsonEntry(target, name, given);
  const isRemote = wantsHttp(given) || isUrl(target[0]);
  if (isRemote && given.single.transport === "stdio")
    throw new AddProblem("--transport stdio is for a command, and a URL is given.");
  if (given.single.transport === "socket") {
    if (isRemote) throw new AddProblem("--transport socket is for the path of a socket, and a URL is given.");
    return { name, entry: socketEntry(target, given) };
  }
  return { name, entry: isRemote ? httpEntry(target, given) : stdioEntry(target, given) };
}

/** The words with a name in front of the command or the URL, if that is what they lack. */
function withName(words: readonly string[]): { name: string; before: string; words: string[] } | undefined {
  let at = 0;
  // Options are divided as `read` does it, without taking their values.
  for (; words[at]?.startsWith("-") && words[at] !== "--"; at++) {
    if (takesNext(words[at] as string)) at++;
  }
  const behind = words[at] === "--";
  const target = words.slice(behind ? at + 1 : at);
  const isCommand = behind && target.length > 0 && !isJsonText(target[0] ?? "");
  if (!isCommand && !lacksName(target, (word) => optionOf(word) !== undefined)) return undefined;
  const name = proposedName(target);
  // Behind a URL there can be options of ours; all that stands behind a command is its own.
  const divider = isUrl(target[0] ?? "") && !behind ? [] : ["--"];
  const before = target[0] ?? "";
  return { name, before, words: [...words.slice(0, at), name, ...divider, ...target] };
}

function addOf(words: readonly string[], isLoose = false): AddWords {
  const all = read(words, isLoose);
  const { scope, replace } = all.given.single;
  return {
    ...serverOf(all),
    project: scope === "project",
    saysWhere: scope !== undefined,
    replace: replace !== undefined,
  };
}

function parse(pasted: readonly string[]): AddWords {
  const { words: written, isLoose } = withoutLead(pasted);
  const divider = written.indexOf("--");
  // What follows the first word behind it are arguments of a command.
  const isArgument = (at: number): boolean => divider !== -1 && at > divider + 1;
  const words = written.map((word, at) => (isArgument(at) ? word : (linkedJson(word) ?? word)));
  if (words.includes("") && !written.includes(""))
    throw new AddProblem("That link holds no server. Copy the JSON that its page shows, and add that.");
  const nameless = withName(words);
  if (!nameless) return addOf(words, isLoose);
  throw new AddProblem(
    `The name of the server is missing: write one before ${nameless.before}, for example ${nameless.name}.`,
    // The proposed name can be that of a program, which looks like a command without a name once more.
    { named: addOf(nameless.words) },
  );
}

/** `words`: as a shell or `splitWords` divides them, without the word `add`. */
export function parseAdd(
  words: readonly string[],
): { add: AddWords } | { problem: string; instead?: Instead } {
  try {
    return { add: parse(words) };
  } catch (error) {
    if (error instanceof AddProblem)
      return { problem: error.message, ...(error.instead ? { instead: error.instead } : {}) };
    throw error;
  }
}
