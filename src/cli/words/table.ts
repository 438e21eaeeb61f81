/** The commands and their options: what the help, the completion and the parser know. Pure. */

import { IMPORTS } from "../../shared/import-names.ts";
import { wrap } from "../../shared/text/width.ts";

export interface Option {
  name: string;
  /** One letter, without its hyphen. */
  short?: string;
  /** What its value is, in capitals. Absent: the option takes none. */
  value?: string;
  /** The values that it takes; absent: any. */
  values?: readonly string[];
  /** It may be given several times. */
  many?: true;
  summary: string;
}

/** What an argument names, for the completion. */
type ArgumentKind =
  | "server"
  | "tool"
  | "prompt"
  | "words"
  | "shell"
  | "program"
  | "stop"
  | "move"
  | "command"
  | "uri"
  | "value"
  | "rest";

interface Argument {
  name: string;
  kind: ArgumentKind;
  required?: true;
  /** It may be a part of the argument before. */
  mayBeJoined?: true;
  /** The argument and all that follow it. */
  many?: true;
}

export interface Word {
  arguments?: readonly Argument[];
  options?: readonly Option[];
  summary: string;
  /** Lines below the usage. */
  details?: readonly string[];
  examples: readonly string[];
  /** Its server may be an address, or a command between two `--`: one that no file names. */
  takesUnconfigured?: true;
  /** Its arguments stand behind `--`. */
  behindDivider?: true;
}

/** Shells with a completion script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

export const GLOBAL_OPTIONS: readonly Option[] = [
  { name: "json", summary: "print one JSON document, also for an error" },
  { name: "config", value: "FILE", summary: "read this file in place of mcp.json, as Pi's --mcp-config" },
  {
    name: "mcp-servers",
    value: "NAMES",
    summary: "these servers alone, with commas between, as Pi's --mcp-servers",
  },
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
const THE_SERVER = { ...SERVER, required: true } as const;
const PROJECT: Option = { name: "project", summary: "write the project's .pi/mcp.json" };
const REFRESH: Option = { name: "refresh", summary: "connect first, and show what is true now" };
/** Of a server that no file names. */
const OF_URL: readonly Option[] = [
  { name: "header", value: "NAME=value", summary: "a header for a server that is given by its address" },
  { name: "bearer-token-env", value: "NAME", summary: "the variable with the token of such a server" },
];
const UNCONFIGURED =
  "In place of <server>: an address, or a command between two --. Such a server is connected once and written nowhere.";

const TABLE = {
  list: {
    options: [
      { name: "cached", summary: "connect no server: show at once what is known from the last time" },
      { name: "refresh", summary: "connect each server, which is what it does anyway" },
    ],
    summary: "connect the servers and show which are ready, with tools and what is wrong",
    details: ["Ends with code 3 if a server cannot be reached, with 4 if one needs a sign-in."],
    examples: ["list", "list --cached", "list --json"],
  },
  tools: {
    arguments: [SERVER],
    options: [REFRESH, ...OF_URL],
    takesUnconfigured: true,
    summary: "list the tools of all servers, or of one",
    details: [UNCONFIGURED],
    examples: [
      "tools",
      "tools files --refresh",
      "tools https://example.com/mcp",
      "tools -- npx -y some-server",
    ],
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
      THE_SERVER,
      { name: "tool", kind: "tool", mayBeJoined: true },
      { name: "key=value", kind: "value", many: true },
    ],
    options: [
      { name: "args", value: "JSON", summary: "the arguments as one JSON object, @FILE, or - for stdin" },
      ...OF_URL,
    ],
    takesUnconfigured: true,
    summary: "call a tool and print its result",
    details: [
      "Server and tool may be one word, as tools prints it: files__list_directory or files.list_directory.",
      UNCONFIGURED,
      "key=value is read as the tool's schema says: a number, true or false, a text, one item of a list.",
      "key=@FILE takes the text of a file, key:=JSON any JSON, a.b=c a value within an object.",
      "A list is given by its key several times. --json with a value after it means the same as --args.",
      "Images and other files are saved, and their paths are on stderr.",
    ],
    examples: [
      "call files list_directory path=.",
      "call files__list_directory path=.",
      "call https://example.com/mcp search query=pi",
      "call -- npx -y some-server -- search query=pi",
      `call files read_multiple_files paths=a.txt paths=b.txt`,
      `call files list_directory --args '{"path": "."}'`,
    ],
  },
  resources: {
    arguments: [SERVER],
    options: [REFRESH, ...OF_URL],
    takesUnconfigured: true,
    summary: "list the resources of all servers, or of one",
    examples: ["resources", "resources docs --refresh"],
  },
  read: {
    arguments: [THE_SERVER, { name: "uri", kind: "uri", required: true }],
    options: OF_URL,
    takesUnconfigured: true,
    summary: "print a resource",
    examples: ["read docs file:///guide.md"],
  },
  prompts: {
    arguments: [SERVER],
    options: [REFRESH, ...OF_URL],
    takesUnconfigured: true,
    summary: "list the prompts of all servers, or of one, with their arguments",
    examples: ["prompts", "prompts docs --json"],
  },
  prompt: {
    arguments: [
      THE_SERVER,
      { name: "prompt", kind: "prompt", required: true },
      { name: "name=value", kind: "value", many: true },
    ],
    options: OF_URL,
    takesUnconfigured: true,
    summary: "print the text of a prompt",
    details: ["Each value is a text. prompts <server> lists the prompts with their arguments."],
    examples: ["prompt docs review file=a.ts", "prompt docs review 'file=two words.ts' --json"],
  },
  complete: {
    arguments: [
      THE_SERVER,
      { name: "prompt", kind: "prompt", required: true },
      { name: "name=start", kind: "value", required: true, many: true },
    ],
    options: OF_URL,
    takesUnconfigured: true,
    summary: "print the values that a server suggests for an argument of a prompt",
    details: ["The last word is what is completed; those before it are given already."],
    examples: ["complete docs review file=", "complete docs review language=python file=a"],
  },
  skills: {
    arguments: [SERVER],
    options: [REFRESH, ...OF_URL],
    takesUnconfigured: true,
    summary: "list the skills of all servers, or of one",
    examples: ["skills", "skills docs --json"],
  },
  skill: {
    arguments: [
      THE_SERVER,
      { name: "skill", kind: "value", required: true },
      { name: "file", kind: "value" },
    ],
    options: OF_URL,
    takesUnconfigured: true,
    summary: "print the text of a skill, or another of its files, after checking it",
    details: ["The skill is named as skills lists it, or by the address of its SKILL.md."],
    examples: ["skill docs pdf-processing", "skill docs pdf-processing references/FORMS.md"],
  },
  add: {
    arguments: [
      { name: "name", kind: "value", required: true },
      { name: "command or url", kind: "rest", required: true, many: true },
    ],
    options: [
      { name: "env", value: "NAME=value", summary: "a variable of the server; several times for several" },
      {
        name: "header",
        value: "NAME=value",
        summary: "a header of a remote server; several times for several",
      },
      { name: "bearer-token-env", value: "NAME", summary: "the variable with the token of a remote server" },
      {
        name: "transport",
        value: "KIND",
        values: ["http", "sse", "stdio", "socket"],
        summary: "http, sse, stdio, or socket for the path of a socket",
      },
      { name: "cwd", value: "DIR", summary: "the folder in which the server runs" },
      {
        name: "lifecycle",
        value: "KIND",
        values: ["lazy", "eager", "keep-alive"],
        summary: "lazy, eager or keep-alive",
      },
      { name: "description", value: "TEXT", summary: "what the server is for" },
      {
        name: "sandbox",
        summary: "run the command in a sandbox, which hides your keys and sign-ins from it",
      },
      PROJECT,
      { name: "replace", summary: "replace a server of that name" },
      { name: "no-test", summary: "write it without trying the server first" },
    ],
    summary: "add a server to mcp.json, after trying it",
    details: [
      "Options go before the name; those of the server's own command go after the command.",
      "A server that cannot be reached is not written, unless --no-test is given.",
    ],
    examples: [
      "add files npx -y @modelcontextprotocol/server-filesystem .",
      "add --bearer-token-env DOCS_TOKEN docs https://example.com/mcp",
    ],
  },
  remove: {
    arguments: [THE_SERVER],
    summary: "remove a server from the file that defines it",
    examples: ["remove files"],
  },
  import: {
    arguments: [{ name: "program", kind: "program", many: true }],
    options: [
      { name: "copy", summary: "copy the servers into mcp.json, in place of following the program's files" },
      { name: "replace", summary: "with --copy: replace servers of the same name" },
      { name: "sandbox", summary: "with --copy: run those that npx and the like fetch in a sandbox" },
    ],
    summary: "show the servers that other programs have, or import them",
    details: [
      "Without a program it shows what there is. With programs their files are named in mcp.json and read from then on;",
      "--copy writes their servers into mcp.json instead, after showing what would run.",
      `Programs: ${IMPORTS.join(", ")}.`,
    ],
    examples: ["import", "import claude-code", "import cursor --copy"],
  },
  enable: {
    arguments: [THE_SERVER],
    options: [PROJECT],
    summary: "switch a server on, in the file that defines it",
    examples: ["enable files", "enable files --project"],
  },
  disable: {
    arguments: [THE_SERVER],
    options: [PROJECT],
    summary: "switch a server off, in the file that defines it",
    examples: ["disable files", "disable files --project"],
  },
  serve: {
    arguments: [{ name: "port", kind: "value" }],
    options: [
      { name: "http", summary: "listen on 127.0.0.1 in place of stdin, at the port or at a free one" },
      {
        name: "token-file",
        value: "FILE",
        summary: "with --http: the private file of the token; made if it is not there",
      },
    ],
    summary: "give all servers to another agent, as one MCP server with ToolSearch",
    details: [
      "The agent gets two tools: ToolSearch finds the tools of all servers and lists them, call calls one by its name.",
      "Over stdin and stdout it ends with its client. Over HTTP each request needs the token: that of the variable",
      "PI_MCP_THREADS_TOKEN, or of --token-file, or a new one for each start.",
      "Nobody is asked on the terminal: a server of the project runs only if you have allowed it before.",
    ],
    examples: ["serve", "serve --mcp-servers files,github", "serve --http 8123"],
  },
  run: {
    arguments: [{ name: "command", kind: "rest", required: true, many: true }],
    behindDivider: true,
    options: [
      { name: "sandbox", summary: "run it in a sandbox, as a server with a sandbox runs" },
      { name: "write", value: "PATH", many: true, summary: "a folder or file that it may write" },
      {
        name: "read",
        value: "PATH",
        many: true,
        summary: "what it may read although the sandbox hides it",
      },
      { name: "hide", value: "PATH", many: true, summary: "what it may not read either" },
      { name: "no-network", summary: "without a network" },
    ],
    summary: "try a program by hand in the sandbox that a server would get",
    details: [
      "The program has this terminal. Its exit code is the command's, and 128 and the number of the signal that ends it.",
      "--write, --read and --hide may be given several times. Nothing is written into mcp.json.",
    ],
    examples: [
      "run --sandbox -- ls -a ~",
      "run --sandbox --write ~/notes --no-network -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
    ],
  },
  login: {
    arguments: [THE_SERVER],
    options: [
      { name: "device", summary: "sign in with a code that is entered on another device" },
      { name: "link", summary: "sign in with a link, also where a code for another device is offered" },
    ],
    summary: "sign in to a server in the browser",
    details: [
      "On a terminal the address or the code that the browser shows at the end can be pasted.",
      "Where no browser can be opened and the server offers it, a code for another device is shown.",
    ],
    examples: ["login docs", "login docs --device"],
  },
  logout: {
    arguments: [THE_SERVER],
    summary: "sign out of a server",
    examples: ["logout docs"],
  },
  "sign-ins": {
    arguments: [{ name: "move", kind: "move" }],
    options: [
      {
        name: "to",
        value: "STORE",
        values: ["system", "file"],
        summary: "with move: system for the system's credential store, file for private files",
      },
    ],
    summary: "show where the tokens of each sign-in are kept, or move them all",
    details: [
      "The system's store is the Keychain of macOS, the Secret Service of Linux or the Credential Manager of Windows.",
      "A sign-in that cannot be moved stays where it is, and so do those after it. The command can be run again.",
    ],
    examples: ["sign-ins", "sign-ins move --to system", "sign-ins move --to file"],
  },
  doctor: {
    arguments: [SERVER],
    options: [{ name: "report", summary: "print a report without secrets, for others to read" }],
    summary: "say what is wrong and what to do; with a server, connect it",
    details: ["Ends with code 1 if it finds an error."],
    examples: ["doctor", "doctor files", "doctor --report"],
  },
  stats: {
    summary: "show calls, errors, bytes and times of each tool",
    examples: ["stats", "stats --json"],
  },
  hub: {
    arguments: [{ name: "stop", kind: "stop" }, SERVER],
    summary: "show the servers that sessions share and for whom they run, or end them",
    details: [
      "For each: process, age, memory, the processes of the sessions that use it, and what keeps two apart.",
      "hub stop ends all of them and the hub, hub stop <server> one, for all sessions. The next call starts it again.",
    ],
    examples: ["hub", "hub --json", "hub stop files", "hub stop"],
  },
  logs: {
    arguments: [SERVER],
    options: [
      { name: "lines", value: "N", summary: "show the last N entries (50)" },
      { name: "follow", short: "f", summary: "go on with what is written from now on" },
    ],
    summary: "show the log, of all servers or of one",
    examples: ["logs", "logs files --lines 10"],
  },
  completion: {
    arguments: [{ name: "shell", kind: "shell", required: true }],
    summary: "print the completion script for bash, zsh or fish",
    details: [
      "pi-mcp-threads must be on PATH under this name; after pi install it lies in ~/.pi/agent/npm/node_modules/.bin.",
      'bash: eval "$(pi-mcp-threads completion bash)" in ~/.bashrc',
      'zsh: eval "$(pi-mcp-threads completion zsh)" in ~/.zshrc, behind compinit',
      "fish: pi-mcp-threads completion fish | source in config.fish",
    ],
    examples: ["completion bash"],
  },
} satisfies Record<string, Word>;

export type WordName = keyof typeof TABLE;

export const WORDS: Readonly<Record<WordName, Word>> = TABLE;

export const isWord = (name: string): name is WordName => Object.hasOwn(WORDS, name);

/** Other names of commands, from the tools that people know. */
export const ALIASES: Readonly<Record<string, WordName>> = {
  ls: "list",
  status: "list",
  find: "search",
  rm: "remove",
  auth: "login",
  log: "logs",
};

export const optionsOf = (word: WordName | undefined): readonly Option[] =>
  word === undefined ? GLOBAL_OPTIONS : [...(WORDS[word].options ?? []), ...GLOBAL_OPTIONS];

const COLUMN = 28;

const EXIT_CODES =
  "Exit codes: 0 done, 1 the tool answered with an error, 2 wrong usage, 3 a server cannot be reached, 4 sign-in needed, 5 consent needed or refused, 6 time is over, 7 a configuration file cannot be used.";

const argument = ({ name, required, mayBeJoined, many }: Argument): string => {
  const text = required || mayBeJoined ? `<${name}>` : `[${name}]`;
  return many ? `${text}…` : text;
};

const usageOf = (name: WordName): string => [name, ...(WORDS[name].arguments ?? []).map(argument)].join(" ");

const LEAST = 20;
const LINES = 20;

const paragraph = (text: string, columns: number): string[] =>
  wrap(text, Math.max(LEAST, columns), LINES).lines;

/** Two columns; the right one is broken at spaces to fit into a line of `columns`. */
function row(left: string, right: string, columns: number): string {
  const below = `\n${" ".repeat(COLUMN)}`;
  const text = paragraph(right, columns - COLUMN).join(below);
  return left.length + 2 < COLUMN ? `  ${left.padEnd(COLUMN - 2)}${text}` : `  ${left}${below}${text}`;
}

const optionRow =
  (columns: number) =>
  ({ name, short, value, summary }: Option): string =>
    row(`${short ? `-${short}, ` : ""}--${name}${value ? ` ${value}` : ""}`, summary, columns);

/** `columns`: width of a line. */
export function helpText(columns: number): string {
  const names = Object.keys(WORDS) as WordName[];
  return [
    "Usage: pi-mcp-threads <command> [arguments] [options]",
    "",
    "The MCP servers of Pi, from the command line.",
    "",
    "Commands:",
    ...names.map((name) => row(usageOf(name), WORDS[name].summary, columns)),
    row("help [command]", "show the help of a command", columns),
    "",
    "Options:",
    ...GLOBAL_OPTIONS.map(optionRow(columns)),
    "",
    ...paragraph(EXIT_CODES, columns),
  ].join("\n");
}

/** `columns`: width of a line. */
export function helpOf(name: WordName, columns: number): string {
  const { summary, options = [], details = [], examples } = WORDS[name];
  return [
    `Usage: pi-mcp-threads ${usageOf(name)} [options]`,
    "",
    ...paragraph(`${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`, columns),
    ...details.flatMap((line) => paragraph(line, columns)),
    "",
    ...(options.length > 0 ? ["Options:", ...options.map(optionRow(columns)), ""] : []),
    "Examples:",
    ...examples.map((example) => `  pi-mcp-threads ${example}`),
    "",
    "pi-mcp-threads --help lists the options of every command.",
  ].join("\n");
}
