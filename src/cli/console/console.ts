/**
 * The terminal or the pipes of the command. Owns: what goes to stdout and what to stderr, colours, the cleaning of
 * foreign text, questions, and the exit codes. Must not: know servers.
 *
 * stdout holds results alone. Text of servers is cleaned where it could act on a terminal: on a terminal always, in
 * lists and on stderr always, and in a result that goes into a pipe or a file never.
 */

import { fstatSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { replaceUnprintable } from "../../shared/text/unprintable.ts";
import { cutTo, printable } from "../../shared/text/width.ts";
import { wrapWords } from "../../shared/text/wrap-words.ts";

export type Colour = "bold" | "dim" | "red" | "green" | "yellow";

const CODES: Record<Colour, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

interface Stream extends NodeJS.WritableStream {
  isTTY?: boolean;
  columns?: number;
}

export interface ConsoleOptions {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean; readableEnded?: boolean; destroyed?: boolean };
  stdout: Stream;
  stderr: Stream;
  env: Readonly<Record<string, string | undefined>>;
  json: boolean;
  quiet: boolean;
  noColor: boolean;
}

/**
 * Makes each write to a file a whole one: Node writes once, and neither goes on after a short write nor tells of it. Pipes
 * and terminals do so by themselves, and tell of errors by an event. `onError` throws, or the error is passed over.
 */
export function writeWhole(
  stream: NodeJS.WriteStream & { fd: number },
  onError: (error: unknown) => void,
): void {
  const { fd } = stream;
  let kind: { isFIFO(): boolean; isSocket(): boolean };
  try {
    kind = fstatSync(fd);
  } catch {
    // A closed stream has no file. Node has put another one in its place, or says so with the first write.
    return;
  }
  if (stream.isTTY || kind.isFIFO() || kind.isSocket()) return;
  stream.write = (chunk: string | Uint8Array): boolean => {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    } catch (error) {
      onError(error);
    }
    return true;
  };
}

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A terminal whose size nobody has set, as in many containers, says that it has 0 columns. */
const columnsOf = ({ columns }: Stream): number => columns || 80;

/** Whether the line is a yes; no line is none. */
export const isYes = (line: string | undefined): boolean => /^y(es)?$/i.test(line?.trim() ?? "");

const isOver = ({ readableEnded, destroyed }: ConsoleOptions["stdin"]): boolean =>
  readableEnded === true || destroyed === true;

export class Console {
  readonly #options: ConsoleOptions;
  readonly #hasColours: boolean;
  #turn: Promise<unknown> = Promise.resolve();
  /** Takes back the question that stands between conversations. */
  #makeWay = new AbortController();
  #hasProgress = false;
  /** The question that waits for its line. */
  #question: string | undefined;
  /** One JSON document is wanted on stdout, and nothing else. */
  readonly json: boolean;
  /** stdout is a terminal: lists are laid out for a person. */
  readonly isTerminal: boolean;
  readonly showsProgress: boolean;
  /** Cells of a line of stdout; undefined without a terminal. */
  readonly columns: number | undefined;

  constructor(options: ConsoleOptions) {
    const { stdout, stderr, env, json, quiet, noColor } = options;
    this.#options = options;
    this.json = json;
    this.isTerminal = stdout.isTTY === true;
    this.showsProgress = stderr.isTTY === true && !quiet && env.TERM !== "dumb";
    this.columns = this.isTerminal ? columnsOf(stdout) : undefined;
    this.#hasColours = this.isTerminal && !noColor && !env.NO_COLOR && env.TERM !== "dumb";
  }

  /** A person can be asked: stdin and stderr are a terminal, and the input has not ended, as it has behind `--args -`. */
  get canAsk(): boolean {
    const { stdin, stderr } = this.#options;
    return stdin.isTTY === true && stderr.isTTY === true && !isOver(stdin);
  }

  paint(colour: Colour, text: string): string {
    return this.#hasColours && text !== "" ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
  }

  /** Our own lines, whose foreign parts are clean already. */
  lines(lines: readonly string[]): void {
    if (lines.length > 0) this.#out(`${lines.join("\n")}\n`);
  }

  /** A result of a server: cleaned on a terminal, unchanged elsewhere. Ends with a newline. */
  result(text: string): void {
    const shown = this.isTerminal ? printable(text) : text;
    this.#out(shown.endsWith("\n") || shown === "" ? shown : `${shown}\n`);
  }

  document(value: unknown): void {
    const text = JSON.stringify(value, undefined, 2);
    this.#out(`${this.isTerminal ? replaceUnprintable(text, escaped) : text}\n`);
  }

  /** The document or, without `--json`, the lines. */
  answer(document: unknown, lines: () => readonly string[]): void {
    if (this.json) this.document(document);
    else this.lines(lines());
  }

  /** A line of stderr that `--quiet` leaves out. Further lines of the text are indented. */
  note(text: string): void {
    if (!this.#options.quiet) this.warn(text);
  }

  /** A line of stderr that is always written. Further lines of the text are indented. */
  warn(text: string): void {
    this.#clearProgress();
    const { stderr } = this.#options;
    const lines = printable(text).split("\n");
    // A terminal would break a line within a word.
    const short = stderr.isTTY ? lines.flatMap((line) => wrapWords(line, columnsOf(stderr) - 2)) : lines;
    const [before, after] = this.#question === undefined ? ["", ""] : ["\n", this.#question];
    // A server may have written a part of it: no line of that passes for another line, or takes the place of a question.
    stderr.write(`${before}${short.join("\n  ")}\n${after}`);
  }

  /** Shows a passing state in the last line of stderr; an empty text removes it. While a question is open, that has the line. */
  progress(text: string): void {
    if (!this.showsProgress || this.#question !== undefined) return;
    this.#clearProgress();
    if (text === "") return;
    const { stderr } = this.#options;
    const line = printable(text).replaceAll("\n", " ");
    stderr.write(cutTo(line, Math.max(1, columnsOf(stderr) - 1)));
    this.#hasProgress = true;
  }

  /** Runs a conversation when those before it have ended: a line that a person types answers the question that it stands behind. */
  inTurn<T>(talk: () => Promise<T>): Promise<T> {
    this.#makeWay.abort();
    const talked = this.#turn.then(talk);
    this.#turn = talked.catch(() => undefined);
    return talked;
  }

  /**
   * Asks for a line that may come at any time, for as long as the signal lasts: the question makes way for each conversation, and
   * stands there again behind it. Undefined if there is no line.
   */
  async askBetween(question: string, signal: AbortSignal): Promise<string | undefined> {
    for (;;) {
      this.#makeWay = new AbortController();
      const way = this.#makeWay.signal;
      await this.#turn;
      const line = way.aborted ? undefined : await this.ask(question, AbortSignal.any([signal, way]));
      if (line !== undefined || signal.aborted || !way.aborted) return line;
    }
  }

  /** Asks for a line; undefined if there is none. */
  async ask(question: string, signal?: AbortSignal): Promise<string | undefined> {
    this.#clearProgress();
    const { stdin, stderr } = this.#options;
    // Nothing more comes from it, its end neither.
    if (isOver(stdin)) return undefined;
    this.#question = printable(question);
    try {
      return await askLine({ input: stdin, output: stderr }, this.#question, signal);
    } finally {
      this.#question = undefined;
    }
  }

  #out(text: string): void {
    this.#clearProgress();
    this.#options.stdout.write(text);
  }

  #clearProgress(): void {
    if (this.#hasProgress) this.#options.stderr.write("\r\u001b[K");
    this.#hasProgress = false;
  }
}

/** One line that is typed or pasted: an address of a browser, with what an authorization server may add to it. */
const LINE_CHARS = 16 * 1024;

interface PromptStreams {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

function askLine(
  { input, output }: PromptStreams,
  question: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve(undefined);
      return;
    }
    const lines = createInterface({ input, terminal: false });
    const end = (line: string | undefined): void => {
      // Closing ends it once more.
      resolve(line?.slice(0, LINE_CHARS));
      signal?.removeEventListener("abort", onAbort);
      lines.close();
    };
    const onAbort = (): void => {
      output.write("\n");
      end(undefined);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    lines.once("line", (line) => end(line));
    lines.once("close", () => end(undefined));
    // The terminal cannot be read, as in a background process that nobody waits for.
    lines.on("error", () => end(undefined));
    output.write(question);
  });
}
