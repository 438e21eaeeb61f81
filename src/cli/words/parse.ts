/** Reads the command line: which command, its arguments, its options. Pure. */

import { isUrl, proposedName } from "../../shared/pasted.ts";
import { takesNext } from "../../shared/setup.ts";
import { slipsBetween } from "../../shared/text/reading.ts";
import { type Failure, usage } from "../console/failure.ts";
import { ALIASES, GLOBAL_OPTIONS, isWord, type Option, optionsOf, WORDS, type WordName } from "./table.ts";

export interface CommandLine {
  /** Undefined: none is named. */
  word: WordName | undefined;
  /** With `server`, the first one is the name that it gets. */
  arguments: string[];
  options: Options;
  /** The address or the command of a server that no file names. Absent: the server has a name. */
  server?: string[];
}

export const NO_OPTIONS = {
  json: false,
  quiet: false,
  yes: false,
  "no-color": false,
  help: false,
  version: false,
  "trust-project": false,
  refresh: false,
  cached: false,
};

export type Options = typeof NO_OPTIONS & {
  [name: string]: boolean | string | string[] | undefined;
  config?: string;
  cwd?: string;
  timeout?: string;
  args?: string;
};

const SLIPS = 2;

function nearest(written: string, names: readonly string[], most: number): string | undefined {
  const [best] = names
    .map((name) => ({ name, slips: slipsBetween(written.toLowerCase(), name.toLowerCase(), most) }))
    // More than half of a short name is another name.
    .filter(({ name, slips }) => slips <= Math.min(most, Math.floor(name.length / 2)))
    .sort((a, b) => a.slips - b.slips);
  return best?.name;
}

/** A sentence for the name that may be meant; empty if none is near. */
export function didYouMean(written: string, names: readonly string[], slips = SLIPS): string {
  const near = nearest(written, names, slips);
  return near === undefined ? "" : ` Did you mean ${near}?`;
}

/** The value of `--json` that holds arguments of a call, and does not ask for JSON output. */
const isArguments = (text: string | undefined): text is string =>
  text !== undefined && (/^[{[@]/.test(text) || text === "-");

class Reader {
  readonly #rest: string[];
  word: WordName | undefined;
  readonly arguments: string[] = [];
  readonly options: Options = { ...NO_OPTIONS };
  #server: string[] | undefined;

  constructor(argv: readonly string[]) {
    this.#rest = [...argv];
  }

  read(): CommandLine {
    for (let text = this.#rest.shift(); text !== undefined; text = this.#rest.shift()) {
      if (this.word === "add") {
        // The words of `add` go to a reader of their own, without the options that every command has.
        const { own, foreign } = divideAdd([text, ...this.#rest.splice(0)]);
        this.arguments.push(...foreign);
        for (this.#rest.push(...own); this.#rest.length > 0; ) this.#option(this.#rest.shift() ?? "");
        break;
      }
      if (text === "--" && this.#mayNameServer() && /^[^-]/.test(this.#rest[0] ?? "")) {
        const end = this.#rest.indexOf("--");
        this.#takeServer(this.#rest.splice(0, end === -1 ? this.#rest.length : end));
        this.#rest.shift();
      } else if (text === "--") {
        this.arguments.push(...this.#rest.splice(0));
        break;
      } else if (/^-[a-z-]/i.test(text)) this.#option(text);
      else this.#argument(text);
    }
    const { word, arguments: given, options } = this;
    return { word, arguments: given, options, ...(this.#server ? { server: this.#server } : {}) };
  }

  /** Whether a server comes next, and may be one that no file names. */
  #mayNameServer(): boolean {
    return (
      this.word !== undefined && this.arguments.length === 0 && WORDS[this.word].takesUnconfigured === true
    );
  }

  #takeServer(words: string[]): void {
    this.#server = words;
    this.arguments.push(proposedName(words));
  }

  #argument(text: string): void {
    if (this.word !== undefined) {
      if (WORDS[this.word].behindDivider) {
        throw usage(
          `${this.word} takes its command behind --: ${JSON.stringify(text)} stands before it.`,
          `pi-mcp-threads help ${this.word} shows how it is used.`,
        );
      }
      if (isUrl(text) && this.#mayNameServer()) this.#takeServer([text]);
      else this.arguments.push(text);
      return;
    }
    if (text === "help") {
      this.options.help = true;
      return;
    }
    const name = (Object.hasOwn(ALIASES, text) && ALIASES[text]) || text;
    if (!isWord(name)) {
      const near = didYouMean(text, Object.keys(WORDS));
      throw usage(`There is no command ${JSON.stringify(text)}.${near}`, "pi-mcp-threads --help lists them.");
    }
    this.word = name;
  }

  #option(text: string): void {
    if (text.startsWith("--")) this.#long(text.slice(2));
    else this.#short(text.slice(1));
  }

  #long(text: string): void {
    const at = text.indexOf("=");
    const name = at === -1 ? text : text.slice(0, at);
    const given = at === -1 ? undefined : text.slice(at + 1);
    if (name === "json" && this.word === "call" && isArguments(given ?? this.#rest[0])) {
      this.#set({ name: "args", value: "JSON", summary: "" }, given);
      return;
    }
    const option = this.#known().find((one) => one.name === name);
    if (!option) throw this.#unknown(`--${name}`);
    this.#set(option, given);
  }

  #short(letters: string): void {
    for (const letter of letters) {
      const option = this.#known().find(({ short }) => short === letter);
      if (!option) throw this.#unknown(`-${letter}`);
      this.#set(option, undefined);
    }
  }

  #known(): readonly Option[] {
    return optionsOf(this.word);
  }

  #unknown(written: string): Failure {
    const names = this.#known().map(({ name }) => `--${name}`);
    const help = this.word === undefined ? "--help" : `help ${this.word}`;
    return usage(
      `${this.word === undefined ? "There is" : `${this.word} has`} no option ${written}.${didYouMean(written, names)}`,
      `pi-mcp-threads ${help} lists the options.`,
    );
  }

  #set({ name, value, many }: Option, given: string | undefined): void {
    if (value === undefined) {
      if (given !== undefined) throw usage(`--${name} takes no value.`);
      this.options[name] = true;
      return;
    }
    const taken = given ?? this.#rest.shift();
    if (taken === undefined || taken === "") throw usage(`--${name} needs a value: --${name} ${value}`);
    const before = this.options[name];
    if (many) this.options[name] = [...(Array.isArray(before) ? before : []), taken];
    else if (before !== undefined) throw usage(`--${name} is given twice.`);
    else this.options[name] = taken;
  }
}

/** Throws a failure of usage. Options that a command has may stand behind its name only; the others anywhere. */
export const readCommandLine = (argv: readonly string[]): CommandLine => new Reader(argv).read();

/** Whether JSON is wanted, for a command line that cannot be read. */
export const wantsJson = (argv: readonly string[]): boolean =>
  argv.some((text, at) => text === "--json" && !(argv.includes("call") && isArguments(argv[at + 1])));

export function checkArguments({ word, arguments: given }: CommandLine): void {
  // The reader of these words says more.
  if (word === undefined || word === "add") return;
  const { arguments: wanted = [] } = WORDS[word];
  const help = `pi-mcp-threads help ${word} shows how it is used.`;
  const missing = wanted.slice(given.length).find(({ required }) => required);
  if (missing) throw usage(`${word} needs <${missing.name}>.`, help);
  if (given.length > wanted.length && !wanted.at(-1)?.many) {
    throw usage(`${word} takes no argument ${JSON.stringify(given[wanted.length])}.`, help);
  }
}

/** A whole number of at least 1, or `otherwise` if the option is not given. */
export function countOption(options: Options, name: string, otherwise: number): number {
  const text = options[name];
  if (text === undefined) return otherwise;
  if (typeof text !== "string" || !/^[1-9]\d{0,8}$/.test(text)) {
    throw usage(`--${name} takes a whole number from 1 on, not ${JSON.stringify(text)}.`);
  }
  return Number(text);
}

/** Milliseconds of `--timeout`; undefined: none is given. */
export function timeoutMs({ timeout }: Options): number | undefined {
  if (timeout === undefined) return undefined;
  const seconds = /^\d{1,7}(\.\d+)?$/.test(timeout) ? Number(timeout) : 0;
  if (seconds <= 0 || seconds > 2_000_000) {
    throw usage(`--timeout takes a number of seconds above 0, not ${JSON.stringify(timeout)}.`);
  }
  return seconds * 1_000;
}

/** `--no-test` is the command line's own. */
const OWN = new Map<string, boolean>([
  ...GLOBAL_OPTIONS.filter(({ name }) => name !== "cwd").flatMap(({ name, short, value }) => {
    const takesValue = value !== undefined;
    const all: [string, boolean][] = [[`--${name}`, takesValue]];
    if (short) all.push([`-${short}`, takesValue]);
    return all;
  }),
  ["--no-test", false],
]);

function divideAdd(words: readonly string[]): { own: string[]; foreign: string[] } {
  const own: string[] = [];
  const foreign: string[] = [];
  let positionals = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    const name = word.split("=", 1)[0] ?? "";
    const takesValue = OWN.get(name);
    if (word === "--") return { own, foreign: [...foreign, ...words.slice(at)] };
    if (takesValue !== undefined) {
      own.push(word);
      if (takesValue && !word.includes("=")) own.push(...words.slice(++at, at + 1));
      continue;
    }
    foreign.push(word);
    if (takesNext(word)) foreign.push(...words.slice(++at, at + 1));
    if (word.startsWith("-") && word !== "-") continue;
    positionals++;
    // The second one is a command, unless it is an address.
    if (positionals === 2 && !isUrl(word)) return { own, foreign: [...foreign, ...words.slice(at + 1)] };
  }
  return { own, foreign };
}
