/** The texts of `--help`, made from the table of commands. Pure. */
import { wrap } from "../../shared/text/width.ts";
import { type Argument, GLOBAL_OPTIONS, type Option, WORDS, type Word, type WordName } from "./table.ts";

const COLUMN = 28;

const EXIT_CODES =
  "Exit codes: 0 done, 1 the tool answered with an error, 2 wrong usage, 3 a server cannot be reached, 4 sign-in needed, 5 consent needed or refused, 6 time is over, 7 a configuration file cannot be used.";

const argument = ({ name, required, many }: Argument): string => {
  const text = required ? `<${name}>` : `[${name}]`;
  return many ? `${text}…` : text;
};

export const usageOf = (name: WordName): string => [name, ...WORDS[name].arguments.map(argument)].join(" ");

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
  const { summary, options, details = [], examples }: Word = WORDS[name];
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
