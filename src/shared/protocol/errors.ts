/**
 * The error vocabulary of both sides: the codes, the error class, and the wire form in which an error crosses a thread.
 * comlink drops an error's `code`, so errors never cross as exceptions but as `WireError` values inside a `Reply`. To add
 * a code: a row here with its data, and its row in ERROR_CODES.
 */

/**
 * Every way in which a request can fail: the code, its cause and its `data`. The data of a tool call always has
 * `{server}` too.
 *
 * - `cancelled`: the caller's signal was aborted. No data.
 * - `deadline`: no reply within the deadline. `{deadlineMs}`
 * - `runtime_restarted`: the worker ended while the request was open; a new one is started. `{exitCode}`
 * - `runtime_stopped`: there is no worker: the session is over, or it crashed too often. No data.
 * - `internal`: a bug on the other side; message and stack are in the log. No data.
 * - `bad_config`: a server definition cannot be used. `{file?, line?, column?, reason?}`; `reason`: `ca-file`
 * - `unknown_server`: no server of that name is configured. `{known}`
 * - `server_removed`: the server was taken out of the configuration while the session was open. `{server, known}`
 * - `unknown_tool`: the server does not offer that tool. `{server, known}`
 * - `tool_excluded`: the server offers that tool, and the configuration withholds it. `{server}`
 * - `tool_app_only`: the server offers that tool or address to its own pages alone (MCP Apps). `{server}`
 * - `not_approved`: the user, or a rule of the configuration, does not let the call run. `{server}`
 * - `skill_refused`: a skill of the server is not what the server listed, breaks a rule, or is not allowed. `{server, reason?}`;
 *   `reason`: `not-listed`, `changed`
 * - `server_not_trusted`: a project's file names the server, and the user has not agreed to it. `{server}`
 * - `server_disabled`: the server is switched off in the configuration. `{server}`
 * - `spawn_failed`: the server's command could not be started. `{server, reason?}`; `reason`: `sandbox`, `no-folder`, or the
 *   system's own code, such as `EMFILE`
 * - `connect_failed`: the server did not complete `initialize`, or could not be reached. `{server, status?, retryAfterMs?,
 *   reason?}`; `reason`: the kind of failure in one word, such as `busy`, `certificate` or `ECONNREFUSED`
 * - `connect_timeout`: `initialize` or the tool list took longer than the limit. `{server, timeoutMs}`
 * - `needs_auth`: the server answered 401, or 403 with an OAuth challenge that a sign-in cures, and nothing has run. `{server, status,
 *   challenge?: {scheme, realm?, scope?, error?, errorDescription?, resourceMetadata?}}`; `reason`: `key-wanted` or
 *   `key-refused` if no sign-in helps, else the kind of problem of its sign-in, with `at` if it is one at the identity provider
 * - `server_died`: the connection closed while a request was open. `{server, stderrTail?, begun?,
 *   reason?}`; `reason`: `held-back` if only a call or the user connects it again, `busy` if the server, over HTTP, had trouble; if the
 *   connection drops soon after each connect, also `{failures, retryInMs?}`
 * - `call_timeout`: the server did not answer a tool call in time. `{server, timeoutMs}`
 * - `call_rejected`: the server answered a JSON-RPC error, or over HTTP a status 4xx, also if a sign-in cures that for a call
 *   that has begun. `{server, rpcCode?, rpcData?, status?, begun?}`, or the data of `needs_auth`; `begun`: the server had taken the
 *   call, so that it may have run
 * - `message_too_large`: one message exceeded a limit of size. `{server, limitBytes?, limitValues?, limitDepth?}`
 */
export const ERROR_CODES = [
  "cancelled",
  "deadline",
  "runtime_restarted",
  "runtime_stopped",
  "internal",
  "bad_config",
  "unknown_server",
  "server_removed",
  "unknown_tool",
  "tool_excluded",
  "tool_app_only",
  "not_approved",
  "skill_refused",
  "server_not_trusted",
  "server_disabled",
  "spawn_failed",
  "connect_failed",
  "connect_timeout",
  "needs_auth",
  "server_died",
  "call_timeout",
  "call_rejected",
  "message_too_large",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** Values that survive a structured clone and JSON alike. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

export type ErrorData = { [key: string]: JsonValue };

/** An error as it crosses a thread. `remedy` says what the user or the model can do about it. */
export interface WireError {
  code: ErrorCode;
  message: string;
  remedy?: string;
  data?: ErrorData;
}

/** The answer to every request: never an exception, so that nothing is lost in a clone. */
export type Reply<T> = { ok: true; value: T } | { ok: false; error: WireError };

const BRAND = Symbol.for("pi-mcp-threads.error");

/**
 * The error that every side throws and catches. Main's screens are a file of their own with a copy of this class, so
 * `instanceof` asks for the brand.
 */
export class ThreadsError extends Error {
  readonly [BRAND] = true;
  readonly code: ErrorCode;
  readonly remedy: string | undefined;
  readonly data: ErrorData | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: { remedy?: string | undefined; data?: ErrorData | undefined; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ThreadsError";
    this.code = code;
    this.remedy = details.remedy;
    this.data = details.data;
  }
}

Object.defineProperty(ThreadsError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    // A subclass inherits this method, and keeps the usual rule.
    if (this !== ThreadsError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return value instanceof Error && BRAND in value;
  },
});

const isErrorCode = (code: unknown): code is ErrorCode => ERROR_CODES.includes(code as ErrorCode);

/** The wire form of anything thrown. Foreign errors get the code `internal` and keep only their message. */
export function toWireError(error: unknown): WireError {
  if (error instanceof ThreadsError) {
    const wire: WireError = { code: error.code, message: error.message };
    if (error.remedy !== undefined) wire.remedy = error.remedy;
    if (error.data !== undefined) wire.data = error.data;
    return wire;
  }
  return { code: "internal", message: error instanceof Error ? error.message : String(error) };
}

/** Rebuilds the error from its wire form. Unknown codes become `internal`. */
export function fromWireError(wire: WireError): ThreadsError {
  return new ThreadsError(isErrorCode(wire.code) ? wire.code : "internal", wire.message, {
    remedy: wire.remedy,
    data: wire.data,
  });
}

/** For people: message, then remedy, which shares no line with the words of a server. */
export function describeError({ message, remedy }: { message: string; remedy?: string | undefined }): string {
  return remedy ? `${message}${message.includes("\n") ? "\n" : " "}${remedy}` : message;
}

/** What a person reads of anything thrown: its message, and the remedy of a `ThreadsError`. */
export const describeThrown = (error: unknown): string =>
  error instanceof ThreadsError ? describeError(error) : messageOf(error);

/** Whether the server wants a key of the person, or refuses the one that it was sent: then no sign-in helps. */
export const wantsKey = ({ data }: { data?: ErrorData | undefined }): boolean =>
  data?.reason === "key-wanted" || data?.reason === "key-refused";

/** The message without the server's name at its start, for use below a heading that names the server. */
export const withoutServer = (server: string, message: string): string =>
  message.startsWith(`${server} `) ? `it${message.slice(server.length)}` : message.replace(`${server}: `, "");

/** `describeError` for use below a heading that names the server. */
export const describeErrorOf = (
  server: string,
  error: { message: string; remedy?: string | undefined },
): string => describeError({ ...error, message: withoutServer(server, error.message) });

/** What the system lacks, whatever is asked of it. */
const LACKS: readonly unknown[] = ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"];

/** The remedy for what the system lacks, by the code of its error or in the data of ours; undefined for any other error. */
export function lackRemedy(error: unknown): string | undefined {
  const { code, data } = (error ?? {}) as { code?: unknown; data?: { reason?: unknown } };
  return LACKS.includes(data?.reason ?? code)
    ? "The machine has no room for it: raise the limit (ulimit), run fewer servers at once, or end other programs."
    : undefined;
}

/** The message of anything thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
