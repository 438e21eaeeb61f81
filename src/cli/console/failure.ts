/** The failures that the command itself finds, in the form of the worker's errors. Pure. */
import { messageOf, ThreadsError, toWireError } from "../../shared/protocol/errors.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-codes.ts";

/** What ends a command. `code` and `data` are for programs, message and remedy for people. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  readonly code: string;
  readonly remedy: string | undefined;
  readonly data: unknown;

  constructor(
    exitCode: ExitCode,
    message: string,
    { remedy, code, data }: { remedy?: string | undefined; code?: string; data?: unknown } = {},
  ) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
    this.code = code ?? CODES[exitCode] ?? "failed";
    this.remedy = remedy;
    this.data = data;
  }
}

const CODES: Partial<Record<ExitCode, string>> = {
  [EXIT.usage]: "usage",
  [EXIT.unreachable]: "connect_failed",
  [EXIT.signIn]: "needs_auth",
  [EXIT.consent]: "server_not_trusted",
  [EXIT.timeout]: "deadline",
  [EXIT.configuration]: "bad_config",
  [EXIT.interrupted]: "cancelled",
};

export const usage = (message: string, remedy?: string): Failure =>
  new Failure(EXIT.usage, message, { remedy });

/**
 * The worker's sentences are for a person in Pi. A command of Pi -> the words for the same here. An address that ends in
 * `/mcp` is no command.
 */
const HERE: readonly [RegExp, string][] = [
  [/(?<![\w.:/\]-])\/mcp trust asks (?:for it|again)[^.]*/g, "run the command in a terminal to be asked"],
  [/(?<![\w.:/\]-])\/mcp trust shows\b/g, "A command that names the server, in a terminal, shows"],
  [/(?<![\w.:/\]-])\/mcp edit opens your file/g, "Correct your file"],
  [/\bRun \/mcp auth (\S+?) in Pi\b/g, "Run pi-mcp-threads login $1"],
  [/(?<![\w.:/\]-])\/mcp auth\b/g, "pi-mcp-threads login"],
  [/(?<![\w.:/\]-])\/mcp reconnect\b(?: \S+?(?=[.,\s]|$))?/g, "pi-mcp-threads list --refresh"],
  [
    /(?<![\w.:/\]-])\/mcp (enable|disable|logout|stats|tools|tool|resources|add|remove|import|doctor)\b/g,
    "pi-mcp-threads $1",
  ],
  [/(?<![\w.:/\]-])\/mcp (?:lists|says|shows)/g, "pi-mcp-threads list shows"],
  [/Search again with ToolSearch/g, "pi-mcp-threads search finds tools"],
  [/\/reload starts[^.]*/g, "Try once more"],
];

/** A sentence of the worker in the words of the command line. */
export const inWordsHere = (text: string): string =>
  HERE.reduce((all, [pattern, words]) => all.replace(pattern, words), text);

/** Anything thrown as a failure. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!(error instanceof ThreadsError)) {
    return new Failure(EXIT.internal, messageOf(error), { code: "internal" });
  }
  const { code, message, remedy, data } = toWireError(error);
  return new Failure(exitCodeOf(code), inWordsHere(message), {
    code,
    remedy: remedy && inWordsHere(remedy),
    data,
  });
}
