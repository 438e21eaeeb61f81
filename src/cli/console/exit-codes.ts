/** How the command ends: the codes of docs/command-line.md, which a test compares with this table. Pure. */
import type { ErrorCode } from "../../shared/protocol/errors.ts";

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
  not_approved: EXIT.consent,
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
