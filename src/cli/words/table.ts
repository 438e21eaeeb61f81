/** The commands and their options: what the help, the completion and the parser know. Pure. */

export interface Option {
  name: string;
  /** One letter, without its hyphen. */
  short?: string;
  /** What its value is, in capitals. Absent: the option takes none. */
  value?: string;
  summary: string;
}

/** What an argument names, for the completion. */
export type ArgumentKind = "server" | "tool" | "words" | "shell" | "command" | "uri" | "value" | "rest";

export interface Argument {
  name: string;
  kind: ArgumentKind;
  required?: true;
  /** The argument and all that follow it. */
  many?: true;
}

export interface Word {
  arguments: readonly Argument[];
  options: readonly Option[];
  summary: string;
  /** Lines below the usage. */
  details?: readonly string[];
  examples: readonly string[];
}

export const GLOBAL_OPTIONS: readonly Option[] = [
  { name: "json", summary: "print one JSON document, also for an error" },
  { name: "config", value: "FILE", summary: "read this file in place of mcp.json, as Pi's --mcp-config" },
  { name: "cwd", value: "DIR", summary: "work as if started in this folder" },
  { name: "timeout", value: "SECONDS", summary: "end after this time, with exit code 6" },
  {
    name: "trust-project",
    summary: "read the project's files without Pi's trust; each server is asked for",
  },
  { name: "yes", short: "y", summary: "answer yes to what would be asked, after showing it" },
  { name: "quiet", short: "q", summary: "no notes on stderr, only errors" },
  { name: "no-color", summary: "no colour, as with NO_COLOR set" },
  { name: "help", short: "h", summary: "show this help" },
  { name: "version", summary: "show the version" },
];

const SERVER: Argument = { name: "server", kind: "server" };
const REFRESH: Option = { name: "refresh", summary: "connect first, and show what is true now" };

export const WORDS = {
  list: {
    arguments: [],
    options: [REFRESH],
    summary: "show the servers with state, transport, tools and last error",
    details: ["Without --refresh no server is connected: it shows what is known."],
    examples: ["list", "list --refresh", "list --json"],
  },
  tools: {
    arguments: [SERVER],
    options: [REFRESH],
    summary: "list the tools of all servers, or of one",
    examples: ["tools", "tools files", "tools files --refresh"],
  },
  tool: {
    arguments: [{ name: "name", kind: "tool", required: true }],
    options: [REFRESH],
    summary: "show one tool with its parameters and its schema",
    examples: ["tool files__read_text_file", "tool read_text_file --json"],
  },
  search: {
    arguments: [{ name: "words", kind: "words", required: true, many: true }],
    options: [
      { name: "limit", value: "N", summary: "show at most so many tools (10)" },
      { name: "server", value: "NAME", summary: "search the tools of this server alone" },
      REFRESH,
    ],
    summary: "find tools by words, ranked as ToolSearch does",
    examples: ["search read a file", "search --limit 3 create issue"],
  },
  call: {
    arguments: [
      { name: "server", kind: "server", required: true },
      { name: "tool", kind: "tool", required: true },
      { name: "key=value", kind: "value", many: true },
    ],
    options: [
      { name: "args", value: "JSON", summary: "the arguments as one JSON object, @FILE, or - for stdin" },
    ],
    summary: "call a tool and print its result",
    details: [
      "key=value is read as the tool's schema says: a number, true or false, a text, one item of a list.",
      "key=@FILE takes the text of a file, key:=JSON any JSON, a.b=c a value within an object.",
      "A list is given by its key several times. --json with a value after it means the same as --args.",
      "Images and other files are saved, and their paths are on stderr.",
    ],
    examples: [
      "call files list_directory path=.",
      `call files read_multiple_files paths=a.txt paths=b.txt`,
      `call files list_directory --args '{"path": "."}'`,
    ],
  },
} as const satisfies Record<string, Word>;

export type WordName = keyof typeof WORDS;

export const isWord = (name: string): name is WordName => Object.hasOwn(WORDS, name);

/** Other names of commands, from the tools that people know. */
export const ALIASES: Readonly<Record<string, WordName>> = { ls: "list", status: "list", find: "search" };

export const optionsOf = (word: WordName | undefined): readonly Option[] =>
  word === undefined ? GLOBAL_OPTIONS : [...WORDS[word].options, ...GLOBAL_OPTIONS];
