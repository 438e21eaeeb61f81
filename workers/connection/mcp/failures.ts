/**
 * What the errors of the SDK's client mean: a timeout, an end, a refused answer, the era of the server. And failures of a
 * connection in words: of its start, its lists and its calls. Each says which server failed, why, and what to do. Pure.
 */

import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { boundJson } from "../../../src/shared/text/failure.ts";
import { asReason, commandFor } from "../../shared/commands.ts";
import type { RequiredOutcome } from "../asks/asks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { LongErrorData } from "../messages/prune.ts";
import { callTooLarge, TooLarge } from "../messages/too-large.ts";
import { boundText } from "../secrets/redact.ts";
import type { CallRequest, ConnectionParts } from "./connection.ts";
import { type Evidence, UNSUPPORTED_VERSION } from "./modern/era.ts";
import { outOfOrder, type Party } from "./modern/rounds.ts";

/** How long a server may take for its start, in milliseconds. */
export const startLimitMs = ({ startupTimeoutMs }: ServerDefinition): number =>
  startupTimeoutMs ?? LIMITS.startupTimeoutMs;

/** `printed`: lines that it wrote where only messages of MCP belong, without secrets. */
export function startupTimeout(
  { definition }: { definition: ServerDefinition },
  printed: readonly string[] = [],
): ThreadsError {
  const timeoutMs = startLimitMs(definition);
  const late = `${definition.name} did not start within ${timeoutMs / 1_000} s`;
  const lines = printed.map((line) => `"${line}"`).join(" and ");
  const data = { server: definition.name, timeoutMs };
  if (lines === "") {
    return new ThreadsError("connect_timeout", `${late}.`, {
      remedy: "Set startupTimeoutMs (milliseconds) for it in mcp.json if it is slow.",
      data,
    });
  }
  return new ThreadsError("connect_timeout", `${late}, and wrote text to stdout in place of MCP: ${lines}.`, {
    remedy: "It may be another program, or need an argument such as stdio: see its documentation.",
    data,
  });
}

/** `method`: the request whose answer was refused. */
export const answerTooLarge = (server: string, method: string, { excess }: TooLarge): ThreadsError =>
  new ThreadsError("message_too_large", `${server} answered ${method} with ${excess.what}.`, {
    remedy: excess.remedy,
    data: { server, ...excess.data },
  });

/**
 * The error of a server that connected but did not list its tools, without which it is of no use. `timedOut`, `closed`:
 * what the error means to the SDK.
 */
export function listFailure(
  { definition, failure, whyClosed }: ConnectionParts,
  { error, timedOut, closed }: { error: unknown; timedOut: boolean; closed: boolean },
): ThreadsError {
  const { name } = definition;
  const refused = refusedAnswer(error);
  if (refused) return answerTooLarge(name, "tools/list", refused);
  if (error instanceof ThreadsError) return error;
  const known = failure?.();
  if (known) return known;
  if (timedOut) return startupTimeout({ definition });
  const reason = closed ? asReason(name, whyClosed()) : `${messageOf(error)}.`;
  return new ThreadsError("connect_failed", `${name} did not list its tools: ${reason}`, {
    remedy: "Its messages are in mcp-threads.log.",
    data: { server: name },
    cause: error,
  });
}

/** How long one call may take in all, in milliseconds. */
export const callCapMs = ({ timeoutMs }: Pick<CallRequest, "timeoutMs">): number =>
  Math.max(LIMITS.requestCapMs, timeoutMs);

const UNSENT = "behind a call of another session and was not sent.";

interface FailedCall {
  parts: ConnectionParts;
  call: Omit<CallRequest, "args">;
  error: unknown;
  /** The error is the server's answer. */
  answered: boolean;
  /** The hub of shared servers has not sent the call yet. */
  waits?: boolean;
}

export function callFailure(
  server: string,
  { parts, call, error, answered, waits }: FailedCall,
): ThreadsError {
  const cancelled = `${server}/${call.tool} was cancelled.`;
  if (call.signal.aborted)
    return new ThreadsError("cancelled", waits ? `${cancelled} It waited ${UNSENT}` : cancelled);
  const refused = refusedAnswer(error);
  if (refused) return callTooLarge(server, call.tool, refused);
  // The transport knows the reason and has put it into words.
  if (error instanceof ThreadsError) return error;
  const failure = parts.failure?.();
  if (failure) return failure;
  if (isTimeout(error) && waits) {
    const waited = `${server}/${call.tool} waited ${callCapMs(call) / 1_000} s ${UNSENT}`;
    return new ThreadsError("call_timeout", waited, {
      remedy: "The call may be repeated.",
      data: { server, timeoutMs: call.timeoutMs },
    });
  }
  if (isTimeout(error)) {
    const how = parts.transport === "stdio" ? "starts" : "connects";
    const anew = `${commandFor("reconnect", server)} ${how} it anew if it hangs`;
    return new ThreadsError(
      "call_timeout",
      `${server}/${call.tool} did not answer within ${call.timeoutMs / 1_000} s.`,
      {
        remedy: `It may still be running there. Set timeout (seconds) for the server in mcp.json if it needs longer; ${anew}.`,
        data: { server, timeoutMs: call.timeoutMs },
      },
    );
  }
  if (error instanceof McpError && answered) {
    const { data: sent, messageChars } = sentData(error);
    const text = boundText(wordsOf(error), LIMITS.errorTextChars, parts.redact, messageChars);
    const data = sent === undefined ? {} : { rpcData: boundJson(sent, { redact: parts.redact }) };
    const hasBegun = error instanceof BegunRefusal;
    const what = hasBegun
      ? `${server}/${call.tool} failed after it had begun`
      : `${server} rejected ${call.tool}`;
    return new ThreadsError("call_rejected", `${what}: ${text}`, {
      ...(hasBegun && { remedy: "The call may have run: what the server did until then has happened." }),
      data: { server, rpcCode: error.code, ...data, ...(hasBegun && BEGUN) },
    });
  }
  return new ThreadsError(
    "server_died",
    `${server}/${call.tool} got no answer: ${asReason(server, diedReason(parts, error))}`,
    {
      remedy: `${waits ? `It waited ${UNSENT}` : "The call may have run."} The next call connects again.`,
      data: { server },
      cause: error,
    },
  );
}

const REQUIRED: Record<RequiredOutcome, [what: string, remedy: string]> = {
  accept: [
    "The user has been sent to that page.",
    "Call the tool again after the user has said that the page is done.",
  ],
  decline: ["The user declined to open that page.", "Go on without this tool."],
  cancel: ["The user has not opened that page.", "Ask the user before the tool is called again."],
  none: [
    "Nobody could be asked to open it.",
    "Ask the user to run the tool in an interactive session of Pi.",
  ],
};

/**
 * The error of a call that the server does not answer before the user has opened a page. The page's address is for the
 * user alone, because it may hold a secret of the sign-in.
 */
export function urlRequiredFailure(
  { definition }: Pick<ConnectionParts, "definition">,
  { tool }: Pick<CallRequest, "tool">,
  outcome: RequiredOutcome,
): ThreadsError {
  const { name } = definition;
  const [what, remedy] = REQUIRED[outcome];
  return new ThreadsError(
    "call_rejected",
    `${name} needs the user to open a page before ${tool} works. ${what}`,
    {
      remedy,
      data: { server: name, rpcCode: -32042 },
    },
  );
}

const diedReason = (parts: ConnectionParts, error: unknown): string =>
  error instanceof McpError ? parts.whyClosed() : `${messageOf(error)}.`;

/**
 * Whether the SDK's own timeout ended the request. A server may answer an error of the same code, -32001, but without the
 * limit that the SDK puts into `data`.
 */
export const isTimeout = (error: unknown): boolean =>
  error instanceof McpError &&
  error.code === ErrorCode.RequestTimeout &&
  typeof error.data === "object" &&
  error.data !== null &&
  ("timeout" in error.data || "maxTotalTimeout" in error.data);

/** Whether the request failed because the connection ended. A server may answer an error of the same code. */
export const isClosed = (error: unknown): boolean =>
  error instanceof McpError && error.code === ErrorCode.ConnectionClosed;

/** The reason if the transport refused the answer for its size. A server cannot send such an error. */
export function refusedAnswer(error: unknown): TooLarge | undefined {
  if (error instanceof TooLarge) return error;
  return error instanceof McpError && error.data instanceof TooLarge ? error.data : undefined;
}

/** The `data` of an error as the server sent it, and the length of its message if more of that was sent than arrives. */
export const sentData = ({
  data,
}: {
  data?: unknown;
}): { data: unknown; messageChars: number | undefined } =>
  data instanceof LongErrorData ? data : { data, messageChars: undefined };

/** Whether a request got no answer: neither a result nor a refusal. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof ThreadsError
    ? error.code === "server_died" || error.code === "connect_failed"
    : isTimeout(error) || (!(error instanceof McpError) && !isClosed(error));

/** The error of a task for the JSON-RPC error with which it failed, which may have any shape. */
export function taskFailure(error: unknown, party: Pick<Party, "server" | "subject">): Error {
  if (!isObject(error) || typeof error.message !== "string")
    return outOfOrder(party, "failed as a task without a reason");
  const code = typeof error.code === "number" ? error.code : 0;
  return McpError.fromError(code, error.message, error.data);
}

/** The words of the error as the server sent them. */
const wordsOf = ({ message }: McpError): string => message.replace(/^MCP error -?\d+: /, "");

/** What the model's side reads: the arguments were taken, so that other ones are no remedy, and repeating the call may harm. */
const BEGUN = { begun: true } as const;

/** An error of the SDK for a call that the server has begun: its code and data say what it is, as of any other. */
class BegunRefusal extends McpError {
  constructor(error: McpError) {
    super(error.code, wordsOf(error), error.data);
  }
}

/**
 * The error of a call that the server has answered once, with a task or with questions, so that it may have run. `needs_auth` says
 * that a call was refused before it ran and may be sent again after a sign-in, which this call may not; a look at its task that
 * gets no answer is a failed connect by its code. What ends each wait, such as a timeout, says already that it may have run.
 */
export function begunFailure(error: unknown): unknown {
  if (error instanceof McpError) return new BegunRefusal(error);
  if (!(error instanceof ThreadsError)) return error;
  const { code, message, remedy, cause } = error;
  const details = { data: { ...error.data, ...BEGUN }, cause };
  const begun = "The server has begun with the call, which may still run there.";
  switch (code) {
    case "needs_auth":
      return new ThreadsError("call_rejected", message, {
        ...details,
        remedy: remedy === undefined ? begun : `${begun} ${remedy}`,
      });
    case "connect_failed":
      return new ThreadsError("server_died", message, {
        ...details,
        remedy: `${begun} The next call connects again.`,
      });
    case "call_rejected":
      return new ThreadsError(code, message, { ...details, remedy });
    default:
      return error;
  }
}

/** A result that does not belong to the era that was tried. */
export class OtherEra extends Error {
  readonly result: Record<string, unknown>;

  constructor(result: Record<string, unknown>) {
    super("its answer belongs to another revision of the protocol");
    this.name = "OtherEra";
    this.result = result;
  }
}

/** The SDK's own words. Servers answer the same code, -32000, for errors of any kind. */
const CLOSED = "MCP error -32000: Connection closed";

/** The SDK's words about a handshake that a server answers with a version that the SDK does not know. */
const OTHER_VERSION = /^Server's protocol version is not supported: (\S{1,100})$/;

export function evidenceOf(error: unknown): Evidence {
  if (error instanceof OtherEra) return { kind: "result", result: error.result };
  const [message, version] = (error instanceof Error && OTHER_VERSION.exec(error.message)) || [];
  if (message !== undefined)
    return { kind: "error", error: { code: UNSUPPORTED_VERSION, message, data: { supported: [version] } } };
  if (!(error instanceof McpError)) return { kind: "other" };
  if (isTimeout(error)) return { kind: "silence" };
  if (error.message === CLOSED) return { kind: "ended" };
  return { kind: "error", error: { code: error.code, message: error.message, data: sentData(error).data } };
}
