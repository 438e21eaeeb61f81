/**
 * The words of the command line. Owns: the table of commands and options, how a command line is read, the help. Must
 * not: run anything. Called by: main and commands. To add a command: a row in table.ts.
 */

export {
  type CommandLine,
  checkArguments,
  countOption,
  didYouMean,
  NO_OPTIONS,
  type Options,
  readCommandLine,
  timeoutMs,
  wantsJson,
} from "./parse.ts";
export { helpOf, helpText, isWord, optionsOf, WORDS, type Word, type WordName } from "./table.ts";
