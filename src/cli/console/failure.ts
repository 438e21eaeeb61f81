/** The failures that the command itself finds, in the form of the worker's errors. Pure. */
import {
  type ErrorCode,
  lackRemedy,
  messageOf,
  ThreadsError,
  toWireError,
} from "../../shared/protocol/errors.ts";

export const EXIT = {
  ok: 0,
  /** The tool, or another request, was answered with an error. */
  toolError: 1,
  usage: 2,
  unreachable: 3,
  signIn: 4,
  consent: 5,
  timeout: 6,
  /** Also: Node is too old (cli.ts). */
  configuration: 7,
  internal: 70,
  /** As `EX_CANTCREAT` of sysexits.h. */
  unsaved: 73,
  /** As `EX_IOERR` of sysexits.h. */
  unwritten: 74,
  hangUp: 129,
  interrupted: 130,
  quit: 131,
  /** Nobody reads the output any more. */
  closedOutput: 141,
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const OF_ERRORS: Readonly<Record<ErrorCode, ExitCode>> = {
  cancelled: EXIT.interrupted,
  deadline: EXIT.timeout,
  runtime_restarted: EXIT.internal,
  runtime_stopped: EXIT.internal,
  internal: EXIT.internal,
  bad_config: EXIT.configuration,
  unknown_server: EXIT.usage,
  server_removed: EXIT.usage,
  unknown_tool: EXIT.usage,
  tool_excluded: EXIT.usage,
  tool_app_only: EXIT.usage,
  not_approved: EXIT.consent,
  skill_refused: EXIT.consent,
  server_not_trusted: EXIT.consent,
  server_disabled: EXIT.unreachable,
  spawn_failed: EXIT.unreachable,
  connect_failed: EXIT.unreachable,
  connect_timeout: EXIT.unreachable,
  needs_auth: EXIT.signIn,
  server_died: EXIT.unreachable,
  call_timeout: EXIT.timeout,
  call_rejected: EXIT.toolError,
  message_too_large: EXIT.unreachable,
};

export const exitCodeOf = (code: ErrorCode): ExitCode => OF_ERRORS[code];

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

const WHY_UNWRITTEN: Readonly<Record<string, string>> = {
  ENOSPC: "no space is left on the device",
  EDQUOT: "your quota of the disk is used up",
  EFBIG: "the file would be larger than the system allows",
  EIO: "the device failed",
};

/** What ends a command whose stdout takes no more. A reader that has gone, as of `| head`, ends it quietly. */
export function unwritten(error: unknown): Failure {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (code === "EPIPE" || code === "ECONNRESET") {
    return new Failure(EXIT.closedOutput, "", { code: "cancelled" });
  }
  const why = Object.hasOwn(WHY_UNWRITTEN, code) ? `${WHY_UNWRITTEN[code]} (${code})` : messageOf(error);
  return new Failure(EXIT.unwritten, `The output is not whole: ${why}.`, {
    remedy: "Write to another place. A tool that was called has run anyway.",
    code: "unwritten",
  });
}

export const usage = (message: string, remedy?: string): Failure =>
  new Failure(EXIT.usage, message, { remedy });

/** Remedies of main's own errors, which name a command of Pi. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  runtime_stopped: "Try again.",
  deadline: "Try again; mcp-threads.log may say why.",
};

/** Anything thrown as a failure. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!(error instanceof ThreadsError)) {
    return new Failure(EXIT.internal, messageOf(error), { code: "internal", remedy: lackRemedy(error) });
  }
  const { code, message, remedy, data } = toWireError(error);
  return new Failure(exitCodeOf(code), message, { code, remedy: REMEDIES[code] ?? remedy, data });
}
