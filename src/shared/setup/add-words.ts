/**
 * The words of `add`, of `/mcp add` and of the command line, as an entry of mcp.json: `[options] <name> <command or url>
 * [arguments]`, or `[options] [name] <json>`. The options of `claude mcp add` and `codex mcp add` have the same meaning here. Values stay as they are
 * written: `${VAR}` is filled in at connect. The worker checks the entry. Pure.
 */
import type { JsonValue } from "../protocol/errors.ts";
import type { ServerEntry } from "../protocol/setup.ts";
import { AddProblem, type Given, type OptionName, optionOf, readOption } from "./add-options.ts";
import { readJsonServer } from "./json-entry.ts";
import { proposedName } from "./proposed-name.ts";

export { addOptionNames } from "./add-options.ts";

export interface AddWords {
  name: string;
  entry: ServerEntry;
  /** For the project's file. */
  project: boolean;
  /** Whether the words say for which file: nobody need be asked then. */
  saysWhere: boolean;
  replace: boolean;
}

export type ParsedAdd = { add: AddWords } | { problem: string };

/** The forms of `add`, without the command before it. */
export const ADD_USAGE = [
  "add <name> <command> [arguments]",
  "add <name> <url>",
  "add [name] <the JSON of a README>",
  "Options, before the name: --env NAME=value, --header Name=value, --bearer-token-env NAME, --transport http|sse, --cwd folder, --lifecycle lazy|eager|keep-alive, --description text, --project, --replace.",
  "-- ends the options.",
].join("\n");

const isUrl = (word: string): boolean => /^https?:\/\//i.test(word);
/** A URL, or a text that gives one at connect: a variable or a command. */
const mayBeUrl = (word: string): boolean => isUrl(word) || /^(\$\{|\$env:|!)/.test(word);

const wantsHttp = ({ single: { transport, url } }: Given): boolean =>
  url !== undefined || (transport !== undefined && transport !== "stdio");

interface Read {
  given: Given;
  /** The name, then the command or the URL, as far as they stand before `--`. */
  positionals: string[];
  /** Words behind `--` or behind the command. */
  rest: readonly string[];
}

/** Divides the words. Behind a URL there can be options; behind a command all words are the command's. */
function read(words: readonly string[]): Read {
  const given: Given = { single: {}, env: new Map(), headers: new Map() };
  const positionals: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--") return { given, positionals, rest: words.slice(at + 1) };
    if (word.startsWith("-") && word !== "-") {
      at += readOption(given, words, at);
      continue;
    }
    positionals.push(word);
    if (positionals.length < 2 || isUrl(word) || wantsHttp(given)) continue;
    const rest = words.slice(at + 1);
    refuseOwnOptions(rest);
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

const common = ({ single: { lifecycle, description } }: Given): Record<string, string | undefined> => ({
  lifecycle,
  description,
});

function httpEntry([url = "", extra]: readonly string[], given: Given): ServerEntry {
  const { transport } = given.single;
  if (extra !== undefined) throw new AddProblem(`A URL takes no arguments: ${extra} is a word too many.`);
  if (!mayBeUrl(url)) throw new AddProblem(`${url} is no URL: it must begin with https:// or http://.`);
  refuse(given, ["env", "cwd"], "a command, and a URL is given");
  return compact({
    type: transport === "sse" ? "sse" : undefined,
    url,
    headers: valuesOf(given.headers),
    bearerTokenEnv: given.single["bearer-token-env"],
    ...common(given),
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
    ...common(given),
  });
}

/** The name that the words or the JSON give, or one that says what runs. */
function nameOf(entry: ServerEntry): string {
  const { command, args, url } = entry;
  const words = [command, ...(Array.isArray(args) ? args : []), url];
  return proposedName(words.filter((word) => typeof word === "string"));
}

/** An entry that is given as JSON, as READMEs show it. */
function jsonAdd([json = "", extra]: readonly string[], name: string | undefined, given: Given): AddWords {
  const { scope, replace, ...others } = given.single;
  if (extra !== undefined) throw new AddProblem(`Behind the JSON, ${extra} is a word too many.`);
  const [option] = Object.keys(others);
  refuse(given, ["env", "header"], "a command or a URL; write it into the JSON");
  if (option !== undefined)
    throw new AddProblem(`--${option} is for a command or a URL; write it into the JSON.`);
  const read = readJsonServer(json);
  if ("problem" in read) throw new AddProblem(read.problem);
  return {
    name: name ?? read.name ?? nameOf(read.entry),
    entry: read.entry,
    project: scope === "project",
    saysWhere: scope !== undefined,
    replace: replace !== undefined,
  };
}

function parse(words: readonly string[]): AddWords {
  const all = read(words);
  const { given, positionals } = all;
  const { transport, scope, replace } = given.single;
  const [name] = positionals;
  const [first] = name === undefined ? all.rest : [name];
  if (first?.startsWith("{")) {
    const behind = name === undefined ? all.rest.slice(1) : targetOf(all);
    return jsonAdd([first, ...behind], undefined, given);
  }
  if (name === undefined) throw new AddProblem("The name of the server is missing.");
  if (isUrl(name)) throw new AddProblem(`A name comes first: add <name> ${name}`);
  const target = targetOf(all);
  if (target[0] === undefined || target[0] === "")
    throw new AddProblem(`The command or the URL is missing behind the name ${name}.`);
  if (target[0].startsWith("{")) return jsonAdd(target, name, given);
  const isRemote = wantsHttp(given) || isUrl(target[0]);
  if (isRemote && transport === "stdio")
    throw new AddProblem("--transport stdio is for a command, and a URL is given.");
  return {
    name,
    entry: isRemote ? httpEntry(target, given) : stdioEntry(target, given),
    project: scope === "project",
    saysWhere: scope !== undefined,
    replace: replace !== undefined,
  };
}

/** `words`: as a shell or `splitWords` divides them, without the word `add`. */
export function parseAdd(words: readonly string[]): ParsedAdd {
  try {
    return { add: parse(words) };
  } catch (error) {
    if (error instanceof AddProblem) return { problem: error.message };
    throw error;
  }
}
