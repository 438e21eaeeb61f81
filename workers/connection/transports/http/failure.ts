/**
 * Owns the meaning of a failed HTTP exchange, decided in one place and by values only: the transport, the connect and
 * the explanation all call `classifyFailure`.
 *
 * Decisions: SSE is tried on 404, 405, 406 and 415 only. MCP 2025-11-25 (basic/transports, backwards compatibility)
 * also names 400, but a Streamable HTTP server uses 400 to say what is wrong with a request, and trying SSE would
 * hide that. 403 asks for a sign-in only with an OAuth challenge that says so (RFC 6750, section 3.1); otherwise 403
 * is a refusal that no sign-in cures.
 */
import { type IncomingHttpHeaders, maxHeaderSize } from "node:http";
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { type AuthChallenge, parseChallenge } from "../../auth/auth.ts";
import type { RpcError } from "../../mcp/modern/era.ts";
import { type Excess, TooLarge } from "../../messages/too-large.ts";
import { ProxyError } from "../../web/proxy.ts";

/** An answer without the expected MCP message: its status or its content is another one. */
export class AnswerError extends Error {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The server's own words in one line; empty if it says nothing. */
  readonly text: string;
  /** Address to which the answer redirects. */
  readonly redirect: URL | undefined;
  /** Session under which the request was sent. */
  readonly sessionId: string | undefined;
  /** The JSON-RPC error in the body, whatever its id. */
  readonly rpc: RpcError | undefined;

  constructor(answer: {
    status: number;
    headers: IncomingHttpHeaders;
    text?: string;
    redirect?: URL | undefined;
    sessionId?: string | undefined;
    rpc?: RpcError | undefined;
  }) {
    super(`status ${answer.status}${answer.text ? `: ${answer.text}` : ""}`);
    this.name = "AnswerError";
    this.status = answer.status;
    this.headers = answer.headers;
    this.text = answer.text ?? "";
    this.redirect = answer.redirect;
    this.sessionId = answer.sessionId;
    this.rpc = answer.rpc;
  }
}

/** The answer ended before it was complete. */
export class BrokenAnswer extends Error {
  constructor(cause?: unknown) {
    super("the connection ended before the answer was complete", { cause });
    this.name = "BrokenAnswer";
  }
}

/** The request did not leave this machine. The message follows "was not asked: ". */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

export type HttpFailure =
  | { kind: "explained"; error: ThreadsError }
  | { kind: "cancelled" }
  | { kind: "too-large"; excess: Excess }
  | { kind: "needs-auth"; status: number; challenge: AuthChallenge | undefined; text: string }
  | { kind: "session-lost" }
  | { kind: "refuses-streamable"; status: number; text: string }
  /** The server may accept the same request later. */
  | { kind: "busy"; status: number; retryAfterMs: number | undefined; text: string }
  | { kind: "network"; code: string }
  | { kind: "proxy"; status: number | undefined; message: string }
  | { kind: "redirect"; status: number; to: URL }
  | { kind: "web-page"; status: number; text: string }
  | { kind: "unusable"; status: number; contentType: string | undefined; text: string }
  | { kind: "rejected"; status: number; text: string }
  | { kind: "certificate"; code: string }
  | { kind: "not-tls" }
  | { kind: "not-http" }
  | { kind: "headers-too-large"; limitBytes: number }
  | { kind: "not-sent"; message: string }
  | { kind: "other"; message: string };

const REFUSES_STREAMABLE = new Set([404, 405, 406, 415]);
const SIGN_IN_HELPS = new Set(["invalid_token", "insufficient_scope"]);

const CERTIFICATE =
  /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$)/;
/** Codes for a header or an address that HTTP cannot hold. */
const UNSENDABLE = new Set(["ERR_INVALID_CHAR", "ERR_INVALID_HTTP_TOKEN", "ERR_UNESCAPED_CHARACTERS"]);
const NOT_TLS = new Set(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);
const NETWORK = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EAI_FAIL",
  "ENODATA",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "EADDRNOTAVAIL",
  "ERR_STREAM_PREMATURE_CLOSE",
]);

/** Essence of a media type, for example `text/html`. */
export const mediaType = (headers: IncomingHttpHeaders): string | undefined =>
  headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();

/** `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1_000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** A server that has no session at all may answer 400 with words in place of 404 (server-everything does). */
const saysSessionUnknown = ({ status, text }: AnswerError): boolean =>
  status === 404 || (status === 400 && /\bsession\b/i.test(text));

function classifyAnswer(answer: AnswerError): HttpFailure {
  const { status, headers, text } = answer;
  const challenge = parseChallenge(headers["www-authenticate"]);
  const cured = challenge?.error !== undefined && SIGN_IN_HELPS.has(challenge.error);
  if (status === 401 || (status === 403 && cured)) return { kind: "needs-auth", status, challenge, text };
  if (status === 407) return { kind: "proxy", status, message: "the proxy answered 407" };
  if (answer.sessionId !== undefined && saysSessionUnknown(answer)) return { kind: "session-lost" };
  if (REFUSES_STREAMABLE.has(status)) return { kind: "refuses-streamable", status, text };
  if (status === 408 || status === 429 || status >= 500) {
    const retryAfterMs = parseRetryAfter(headers["retry-after"], Date.now());
    return { kind: "busy", status, retryAfterMs, text };
  }
  if (answer.redirect) return { kind: "redirect", status, to: answer.redirect };
  const type = mediaType(headers);
  if (type === "text/html") return { kind: "web-page", status, text };
  if (status >= 200 && status < 300) return { kind: "unusable", status, contentType: type, text };
  return { kind: "rejected", status, text };
}

export function classifyFailure(error: unknown): HttpFailure {
  if (error instanceof ThreadsError) return { kind: "explained", error };
  if (error instanceof AnswerError) return classifyAnswer(error);
  if (error instanceof TooLarge) return { kind: "too-large", excess: error.excess };
  if (error instanceof ProxyError) return { kind: "proxy", status: error.status, message: error.message };
  if (error instanceof BrokenAnswer) return { kind: "network", code: "ECONNRESET" };
  if (error instanceof NotSent) return { kind: "not-sent", message: error.message };
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (name === "AbortError") return { kind: "cancelled" };
  if (typeof code === "string") {
    if (CERTIFICATE.test(code)) return { kind: "certificate", code };
    if (NOT_TLS.has(code)) return { kind: "not-tls" };
    if (code === "HPE_HEADER_OVERFLOW") return { kind: "headers-too-large", limitBytes: maxHeaderSize };
    if (UNSENDABLE.has(code)) return { kind: "not-sent", message: messageOf(error) };
    if (code.startsWith("HPE_")) return { kind: "not-http" };
    if (NETWORK.has(code)) return { kind: "network", code };
  }
  return { kind: "other", message: messageOf(error) };
}
