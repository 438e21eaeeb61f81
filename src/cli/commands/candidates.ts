/**
 * What an unfinished line of the shell may go on with. Owns: the candidates and what each is. Servers, tools, parameters, their
 * values, prompts and addresses come from the snapshot and the metadata cache, so nothing is started. A name that a shell
 * would not take as one plain word is left out, because servers choose their names; their descriptions are cleaned and short.
 */
import { join } from "node:path";
import { type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import { createCatalogStore } from "../../catalog/store.ts";
import { IMPORTS } from "../../shared/import-names.ts";
import { isObject } from "../../shared/protocol/values.ts";
import type { SnapshotServer } from "../../shared/snapshot/contract.ts";
import { parametersIn, typeOf } from "../../shared/text/signature.ts";
import { firstSentence, oneLine } from "../../shared/text/unprintable.ts";
import { isTrusted, type Place } from "../place/place.ts";
import { CACHE_BYTES, readRegular } from "../place/read-regular.ts";
import { ALIASES, isWord, type Option, optionsOf, SHELLS, WORDS, type WordName } from "../words/table.ts";

export interface Candidate {
  value: string;
  /** Absent: the value says it. */
  about?: string | undefined;
}

/**
 * Words that every shell takes as they are. None begins as an option of ours (`-`), nor as the path of a program in zsh
 * (`=`) or a job of a shell (`%`).
 */
const PLAIN = /^[\w.:@+,/][\w.:@%+,/=-]{0,199}$/;
const MOST = 2_000;
/** A longer line is no line that a person completes. */
const LINE_CHARS = 10_000;
const ABOUT_CHARS = 100;
const CACHE_FILE = "mcp-cache.json";

/** The words of a line without their quotes; the last one is what is being typed. */
function wordsOf(line: string): string[] {
  const words = [...line.slice(0, LINE_CHARS).matchAll(/(?:[^\s'"\\]|\\.|'[^']*'?|"[^"]*"?)+/g)].map(
    ([word]) => word.replace(/\\(.)|['"]/g, "$1"),
  );
  return /\s$/.test(line) || line === "" ? [...words, ""] : words;
}

/** The values that a schema lists, for a list those of its items. */
function listedIn(schema: unknown): string[] {
  if (!isObject(schema)) return [];
  if (schema.type === "array") return listedIn(schema.items);
  if (schema.type === "boolean") return ["true", "false"];
  const values: readonly unknown[] = Array.isArray(schema.enum) ? schema.enum : [];
  return values.flatMap((value) =>
    typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      ? [String(value)]
      : [],
  );
}

/** The parameters of a tool; behind `name=` the values that its schema lists. */
function parametersOf(tool: CatalogTool | undefined, typed: string): Candidate[] {
  const schema = tool && inputSchemaOf(tool);
  const parameters = schema ? parametersIn(schema) : [];
  const at = typed.indexOf("=");
  const name = typed.slice(0, Math.max(at, 0));
  const given = at > 0 ? parameters.find(([key]) => key === name) : undefined;
  const values = given ? listedIn(given[1]) : [];
  if (values.length > 0) return values.map((value) => ({ value: `${name}=${value}` }));
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return parameters.map(([key, property]) => {
    const text = isObject(property) && typeof property.description === "string" ? property.description : "";
    const type = `${typeOf(property, 2)}${required.has(key) ? ", required" : ""}`;
    return { value: `${key}=`, about: text === "" ? type : `${type}: ${text}` };
  });
}

/** What servers listed last, by their names; those that are switched off are among them. */
function cached(agentDir: string): Record<string, unknown> {
  const read = readRegular(join(agentDir, CACHE_FILE), CACHE_BYTES);
  if (!read || "problem" in read) return {};
  let cache: unknown;
  try {
    cache = JSON.parse(read.bytes.toString("utf8"));
  } catch {
    return {};
  }
  return isObject(cache) && isObject(cache.servers) ? cache.servers : {};
}

/** The addresses of a server's resources, as the cache of its last lists has them. */
function addressesOf(server: string, agentDir: string): Candidate[] {
  const servers = cached(agentDir);
  const entry = Object.hasOwn(servers, server) ? servers[server] : undefined;
  const resources = isObject(entry) && Array.isArray(entry.resources) ? entry.resources : [];
  return resources.slice(0, MOST).flatMap((one) => {
    if (!isObject(one) || typeof one.uri !== "string") return [];
    const about = [one.title, one.description, one.name].find(
      (text) => typeof text === "string" && text !== "",
    );
    return [{ value: one.uri, about: about as string | undefined }];
  });
}

function argumentsOfPrompt({ prompts = [] }: SnapshotServer, name: string | undefined): Candidate[] {
  const found = prompts.find(({ prompt }) => prompt === name);
  return (found?.arguments ?? []).map((one) => ({
    value: `${one.name}=`,
    about: [one.description, one.required ? "(required)" : ""].filter(Boolean).join(" "),
  }));
}

interface Unfinished {
  command: WordName;
  /** The arguments before the one that is being typed. */
  given: readonly string[];
  typed: string;
}

const named = (names: readonly string[]): Candidate[] => names.map((value) => ({ value }));

/** The tool's name in Pi is one word, for example `files__read`: then it stands for server and tool. */
function divided(
  given: readonly string[],
  tools: readonly CatalogTool[],
  servers: readonly SnapshotServer[],
) {
  const [first, ...others] = given;
  const whole = servers.some(({ name }) => name === first)
    ? undefined
    : tools.find(({ name }) => name === first);
  return whole ? [whole.server.name, whole.tool, ...others] : given;
}

const described = (all: readonly { name: string; description?: string | undefined }[]): Candidate[] =>
  all.map(({ name, description }) => ({ value: name, about: description }));

/** What is known in the place, without what its project may not show. */
function knownIn(place: Place) {
  const catalog = createCatalogStore(place.agentDir, place.key).current();
  const isShown = ({ project }: { project: boolean }): boolean => !project || isTrusted(place);
  return { catalog, isShown, servers: catalog.servers.filter(isShown) };
}

function valuesFor({ command, given: written, typed }: Unfinished, place: Place): Candidate[] {
  const { catalog, isShown, servers } = knownIn(place);
  const tools = catalog.tools.filter(({ server }) => isShown(server));
  const given = command === "call" ? divided(written, tools, servers) : written;
  const { arguments: wanted = [] } = WORDS[command];
  const argument = wanted[Math.min(given.length, wanted.length - 1)];
  if (!argument || (given.length >= wanted.length && !argument.many)) return [];
  const server = servers.find(({ name }) => name === given[0]);
  switch (argument.kind) {
    case "shell":
      return named(SHELLS);
    case "program":
      return named(IMPORTS);
    case "stop":
      return named(["stop"]);
    case "move":
      return named(["move"]);
    case "server": {
      // The snapshot holds no server that is switched off.
      if (command === "enable") {
        const isOn = (name: string): boolean => catalog.servers.some((one) => one.name === name);
        return named(Object.keys(cached(place.agentDir)).filter((name) => !isOn(name)));
      }
      const all = described(servers);
      return command === "call" && /__/.test(typed) ? [...all, ...described(tools)] : all;
    }
    case "tool":
      if (given.length === 0) return described(tools);
      return tools
        .filter((tool) => tool.server.name === given[0])
        .map(({ tool, description }) => ({ value: tool, about: description }));
    case "prompt":
      return (server?.prompts ?? []).map(({ prompt, description }) => ({
        value: prompt,
        about: description,
      }));
    case "uri":
      return server ? addressesOf(server.name, place.agentDir) : [];
    case "value":
      if (command === "call") {
        return parametersOf(
          tools.find((one) => one.server.name === given[0] && one.tool === given[1]),
          typed,
        );
      }
      return server && command !== "add" ? argumentsOfPrompt(server, given[1]) : [];
    default:
      return [];
  }
}

/** The option of this word, if it takes a value. */
const optionWithValue = (word: string, options: readonly Option[]): Option | undefined =>
  options.find(({ name, value }) => word === `--${name}` && value !== undefined);

const commands = (): Candidate[] => [
  ...Object.entries(WORDS).map(([value, { summary }]) => ({ value, about: summary })),
  { value: "help", about: "show the help of a command" },
];

const shown = ({ value, about = "" }: Candidate): Candidate => {
  const text = oneLine(firstSentence(oneLine(about, 10 * ABOUT_CHARS)), ABOUT_CHARS)
    .replaceAll("\t", " ")
    .trim();
  return text === "" ? { value } : { value, about: text };
};

/** `typed`: the command line up to the cursor, with the name of the command. */
export function candidates(typed: string, place: Place): Candidate[] {
  const words = wordsOf(typed).slice(1);
  const current = words.pop() ?? "";
  let command: string | undefined;
  const given: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    const options = optionsOf(command !== undefined && isWord(command) ? command : undefined);
    if (word.startsWith("-")) at += optionWithValue(word, options) ? 1 : 0;
    else if (command === undefined || command === "help")
      command = Object.hasOwn(ALIASES, word) ? ALIASES[word] : word;
    else given.push(word);
  }
  const known = command !== undefined && isWord(command) ? command : undefined;
  const seen = new Set<string>();
  const beginning = (values: readonly Candidate[]): Candidate[] =>
    values.filter(({ value }) => value.startsWith(current) && !seen.has(value) && seen.add(value));
  const fitting = (values: readonly Candidate[]): Candidate[] =>
    beginning(values.filter(({ value }) => PLAIN.test(value)))
      .slice(0, MOST)
      .map(shown);
  if (current.startsWith("-")) {
    return beginning(optionsOf(known).map(({ name, summary }) => ({ value: `--${name}`, about: summary })));
  }
  const last = words.at(-1) ?? "";
  const option = optionWithValue(last, optionsOf(known));
  // Without values of its own the shell completes names of files.
  if (option)
    return fitting(option.name === "server" ? described(knownIn(place).servers) : named(option.values ?? []));
  if (known === undefined) return command === undefined || command === "help" ? fitting(commands()) : [];
  if (words[0] === "help") return [];
  return fitting(valuesFor({ command: known, given, typed: current }, place));
}
