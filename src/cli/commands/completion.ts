/**
 * `completion`: the scripts for the shells, and what they ask for: `pi-mcp-threads __complete "<line up to the cursor>"`
 * answers one candidate on each line. Servers, tools and parameters come from the snapshot, so nothing is started. A name
 * that a shell would not take as one plain word is left out, because servers choose their names.
 */
import { type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import { createCatalogStore } from "../../catalog/store.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { EXIT, usage } from "../console/failure.ts";
import { isTrusted, type Place } from "../place/place.ts";
import { didYouMean } from "../words/parse.ts";
import { isWord, optionsOf, WORDS } from "../words/table.ts";
import type { Command } from "./known.ts";

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_pi_mcp_threads() {
  local line="\${COMP_LINE:0:COMP_POINT}" word="\${COMP_WORDS[COMP_CWORD]}" candidate
  COMPREPLY=()
  while IFS= read -r candidate; do
    [[ $candidate == "$word"* ]] && COMPREPLY+=("$candidate")
  done < <("\${COMP_WORDS[0]}" __complete "$line" 2>/dev/null)
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _pi_mcp_threads pi-mcp-threads`,
  zsh: `_pi_mcp_threads() {
  local -a candidates values
  candidates=("\${(@f)$("\${words[1]}" __complete "\${BUFFER[1,CURSOR]}" 2>/dev/null)}")
  values=(\${(M)candidates:#*=})
  candidates=(\${candidates:#*=})
  (( \${#values} )) && compadd -S '' -a values
  (( \${#candidates} )) && compadd -a candidates
  (( \${#values} + \${#candidates} )) || _files
}
compdef _pi_mcp_threads pi-mcp-threads`,
  fish: `function __pi_mcp_threads_complete
    pi-mcp-threads __complete (commandline --current-process --cut-at-cursor) 2>/dev/null
end
complete --command pi-mcp-threads --no-files --arguments '(__pi_mcp_threads_complete)'`,
};

/**
 * Words that every shell takes as they are. None begins as an option of ours (`-`), nor as the path of a program in zsh
 * (`=`) or a job of a shell (`%`).
 */
const PLAIN = /^[\w.:@+,/][\w.:@%+,/=-]{0,199}$/;
const MOST = 2_000;
/** A longer line is no line that a person completes. */
const LINE_CHARS = 10_000;

export const completion: Command = async ({ console, arguments: [shell = ""] }) => {
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  const names = Object.keys(SCRIPTS);
  if (script === undefined) {
    throw usage(
      `There is no completion for ${JSON.stringify(shell)}.${didYouMean(shell, names)}`,
      `Known: ${names.join(", ")}.`,
    );
  }
  if (console.json) console.document({ shell, script });
  else console.lines([script]);
  return EXIT.ok;
};

/** The words of a line without their quotes; the last one is what is being typed. */
function wordsOf(line: string): string[] {
  const words = [...line.slice(0, LINE_CHARS).matchAll(/(?:[^\s'"\\]|\\.|'[^']*'?|"[^"]*"?)+/g)].map(
    ([word]) => word.replace(/\\(.)|['"]/g, "$1"),
  );
  return /\s$/.test(line) || line === "" ? [...words, ""] : words;
}

const parametersOf = (tool: CatalogTool | undefined): string[] => {
  const properties = tool && inputSchemaOf(tool).properties;
  return isObject(properties) ? Object.keys(properties).map((name) => `${name}=`) : [];
};

function valuesFor(kind: string, given: readonly string[], place: Place): string[] {
  if (kind === "shell") return Object.keys(SCRIPTS);
  if (kind === "stop") return ["stop"];
  const catalog = createCatalogStore(place.agentDir, place.key).current();
  const isShown = ({ project }: { project: boolean }): boolean => !project || isTrusted(place);
  if (kind === "server") return catalog.servers.filter(isShown).map(({ name }) => name);
  const tools = catalog.tools.filter(({ server }) => isShown(server));
  if (kind !== "tool") {
    return parametersOf(tools.find(({ server, tool }) => server.name === given[0] && tool === given[1]));
  }
  if (given.length === 0) return tools.map(({ name }) => name);
  return tools.filter(({ server }) => server.name === given[0]).map(({ tool }) => tool);
}

/** Options of these take no value. */
const takesValue = (word: string, names: readonly { name: string; value?: string }[]): boolean =>
  names.some(({ name, value }) => word === `--${name}` && value !== undefined);

/** `typed`: the command line up to the cursor, with the name of the command. */
export function candidates(typed: string, place: Place): string[] {
  const words = wordsOf(typed).slice(1);
  const current = words.pop() ?? "";
  let command: string | undefined;
  const given: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    const options = optionsOf(command !== undefined && isWord(command) ? command : undefined);
    if (word.startsWith("-")) at += takesValue(word, options) ? 1 : 0;
    else if (command === undefined || command === "help") command = word;
    else given.push(word);
  }
  const known = command !== undefined && isWord(command) ? command : undefined;
  const beginning = (values: readonly string[]): string[] =>
    [...new Set(values)].filter((value) => value.startsWith(current));
  const fitting = (values: readonly string[]): string[] =>
    beginning(values.filter((value) => PLAIN.test(value))).slice(0, MOST);
  if (current.startsWith("-")) return beginning(optionsOf(known).map(({ name }) => `--${name}`));
  const last = words.at(-1) ?? "";
  // A value of an option: the shell completes names of files.
  if (takesValue(last, optionsOf(known))) return [];
  if (known === undefined)
    return command === undefined || command === "help" ? fitting([...Object.keys(WORDS), "help"]) : [];
  if (words[0] === "help") return [];
  const { arguments: wanted = [] } = WORDS[known];
  const argument = wanted[Math.min(given.length, wanted.length - 1)];
  if (!argument || (given.length >= wanted.length && !argument.many)) return [];
  const usable = ["server", "tool", "shell", "stop"].includes(argument.kind) || known === "call";
  return usable ? fitting(valuesFor(argument.kind, given, place)) : [];
}
