/** The texts of `--help`, made from the table of commands. Pure. */
import { type Argument, GLOBAL_OPTIONS, type Option, WORDS, type Word, type WordName } from "./table.ts";

const COLUMN = 28;

const argument = ({ name, required, many }: Argument): string => {
  const text = required ? `<${name}>` : `[${name}]`;
  return many ? `${text}…` : text;
};

export const usageOf = (name: WordName): string => [name, ...WORDS[name].arguments.map(argument)].join(" ");

const row = (left: string, right: string): string =>
  left.length + 2 < COLUMN
    ? `  ${left.padEnd(COLUMN - 2)}${right}`
    : `  ${left}\n${" ".repeat(COLUMN)}${right}`;

const optionRow = ({ name, short, value, summary }: Option): string =>
  row(`${short ? `-${short}, ` : ""}--${name}${value ? ` ${value}` : ""}`, summary);

export function helpText(): string {
  const names = Object.keys(WORDS) as WordName[];
  return [
    "Usage: pi-mcp-threads <command> [arguments] [options]",
    "",
    "The MCP servers of Pi, from the command line.",
    "",
    "Commands:",
    ...names.map((name) => row(usageOf(name), WORDS[name].summary)),
    row("help [command]", "show the help of a command"),
    "",
    "Options:",
    ...GLOBAL_OPTIONS.map(optionRow),
    "",
    "Exit codes: 0 done, 1 the tool answered with an error, 2 wrong usage, 3 a server cannot be reached,",
    "4 sign-in needed, 5 consent needed or refused, 6 time is over, 7 a configuration file cannot be used.",
  ].join("\n");
}

export function helpOf(name: WordName): string {
  const { summary, options, details = [], examples }: Word = WORDS[name];
  return [
    `Usage: pi-mcp-threads ${usageOf(name)} [options]`,
    "",
    `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`,
    ...details,
    "",
    ...(options.length > 0 ? ["Options:", ...options.map(optionRow), ""] : []),
    "Examples:",
    ...examples.map((example) => `  pi-mcp-threads ${example}`),
    "",
    "pi-mcp-threads --help lists the options of every command.",
  ].join("\n");
}
