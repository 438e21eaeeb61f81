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
import {
  type ErrorCode,
  type ErrorData,
  messageOf,
  ThreadsError,
} from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { advice, keyAdvice } from "../../../shared/commands.ts";
import { type AuthChallenge, parseChallenge } from "../../auth/auth.ts";
import { UNSAID } from "../../auth/model/model.ts";
import type { RpcError } from "../../mcp/modern/era.ts";
import { INVALID_PARAMS } from "../../mcp/wire/wire.ts";
import { type Excess, TooLarge } from "../../messages/too-large.ts";
import { SIGNING_KEY } from "../../secrets/find.ts";
import { boundText, type Redactor, redactData } from "../../secrets/redact.ts";
import { ProxyError, staysWithin } from "../../web/client.ts";

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

/** The server has forgotten the session in which it accepted the request, so that the answer can come no more. */
export class SessionLost extends Error {
  override readonly name = "SessionLost";
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
  /** `isAccepted`: the server had accepted the request in that session, so that it may have run. */
  | { kind: "session-lost"; isAccepted: boolean }
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
  /** Both speak TLS and do not agree on it. `text`: OpenSSL's words, or empty. `isSent`: the whole request may have been sent. */
  | { kind: "tls-refused"; text: string; isSent: boolean }
  | { kind: "not-http" }
  | { kind: "headers-too-large"; limitBytes: number }
  | { kind: "not-sent"; message: string }
  /** `cause`: what failed, which may say that a file of this package is gone. */
  | { kind: "other"; message: string; cause?: unknown };

const REFUSES_STREAMABLE = new Set([404, 405, 406, 415]);
const LACKS_RIGHTS = "insufficient_scope";
const SIGN_IN_HELPS = new Set(["invalid_token", LACKS_RIGHTS]);

const CERTIFICATE =
  /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$)/;
/** Codes for a header or an address that HTTP cannot hold. */
const UNSENDABLE = new Set(["ERR_INVALID_CHAR", "ERR_INVALID_HTTP_TOKEN", "ERR_UNESCAPED_CHARACTERS"]);
/** What OpenSSL says of bytes that are not TLS. */
const NOT_TLS = /wrong.version.number|packet.length|http.request/i;
/** `error:<number>:<library>:<function>:<words>:<file>:<line>:`. Bun ends after the words, and writes them like a constant. */
const OPENSSL = /error:[\da-f]+:[^:]*:[^:]*:([^:\r\n]+)/i;
const NO_ANSWER = "closed the connection without an answer";
const UNREACHED = "could not be reached";
/** Codes of the network, and what happened at the address. */
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refused the connection",
  ECONNRESET: NO_ANSWER,
  ECONNABORTED: UNREACHED,
  EPIPE: NO_ANSWER,
  ETIMEDOUT: "did not answer",
  ENOTFOUND: "could not be found: no such host name",
  EAI_AGAIN: "could not be found: the name service did not answer",
  EAI_FAIL: UNREACHED,
  ENODATA: UNREACHED,
  EHOSTUNREACH: UNREACHED,
  EHOSTDOWN: UNREACHED,
  ENETUNREACH: UNREACHED,
  ENETDOWN: UNREACHED,
  EADDRNOTAVAIL: UNREACHED,
  ERR_STREAM_PREMATURE_CLOSE: NO_ANSWER,
};
/** Codes after which nothing was sent, because there was no connection. */
export const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"]);

/** Essence of a media type, for example `text/html`. */
export const mediaType = (headers: IncomingHttpHeaders): string | undefined =>
  headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();

/** `Retry-After` (RFC 9110, section 10.2.3): seconds or a date, of which a server may name any. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const askedMs = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(askedMs) ? undefined : Math.min(Math.max(0, askedMs), LIMITS.longestTimerMs);
}

/** Codes with which servers of the old era refuse a request that no handshake came before, or of a session that they do not know. */
export const NO_SESSION: ReadonlySet<number> = new Set([-32000, -32001, -32600, -32601]);

const LOST = "(?:not found|not exist|expired|unknown|terminated|closed|invalid)";
/** A server's sentence must mean the session of MCP: a browser's or a terminal's has a name or a story. */
const UNKNOWN_SESSION = new RegExp(
  String.raw`^(?:bad request: |not found: )?(?:(?:no|invalid|unknown|missing|expired)(?: or \w+)? (?:valid )?(?:mcp[- ])?session(?:[- ]?id)?(?: provided| found)?|(?:the )?(?:mcp[- ])?session(?:[- ]?id)? (?:is |was |has |does )?${LOST}(?: or ${LOST})?)(?:[.,!].*)?$`,
  "is",
);

/**
 * Whether an error for a request's own id is about the session, of this id, and not about the request: by a code of servers that
 * know no session, or by its words. An error about the parameters may name any other session, such as one that the model asked for.
 */
export const isAboutSession = ({ code, message }: RpcError, id: string | undefined): boolean =>
  NO_SESSION.has(code) ||
  (id !== undefined && message.includes(id)) ||
  (code !== INVALID_PARAMS && UNKNOWN_SESSION.test(message.trim()));

/**
 * A server that has no session at all may answer 400 with words in place of 404: server-everything names the session, and the
 * one transport of a server of the TypeScript SDK that has started anew says `Server not initialized`.
 */
const saysSessionUnknown = ({ status, text }: AnswerError): boolean =>
  status === 404 || (status === 400 && /\b(session|not initialized)\b/i.test(text));

function classifyAnswer(answer: AnswerError): HttpFailure {
  const { status, headers, text } = answer;
  const challenge = parseChallenge(headers["www-authenticate"]);
  const cured = challenge?.error !== undefined && SIGN_IN_HELPS.has(challenge.error);
  if (status === 401 || (status === 403 && cured)) return { kind: "needs-auth", status, challenge, text };
  if (status === 407) return { kind: "proxy", status, message: "the proxy answered 407" };
  if (answer.sessionId !== undefined && saysSessionUnknown(answer))
    return { kind: "session-lost", isAccepted: false };
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

/** `EPROTO`: TLS failed while the request was being written; its own codes stand for any other time. */
function classifyTls(code: string, message: string): HttpFailure {
  if (NOT_TLS.test(code) || NOT_TLS.test(message)) return { kind: "not-tls" };
  const [, words = ""] = OPENSSL.exec(message) ?? [];
  const text = words.replaceAll("_", " ").toLowerCase();
  return { kind: "tls-refused", text, isSent: code !== "EPROTO" };
}

export function classifyFailure(error: unknown): HttpFailure {
  if (error instanceof ThreadsError) return { kind: "explained", error };
  if (error instanceof AnswerError) return classifyAnswer(error);
  if (error instanceof TooLarge) return { kind: "too-large", excess: error.excess };
  if (error instanceof ProxyError) return { kind: "proxy", status: error.status, message: error.message };
  if (error instanceof BrokenAnswer) return { kind: "network", code: "ECONNRESET" };
  if (error instanceof SessionLost) return { kind: "session-lost", isAccepted: true };
  if (error instanceof NotSent) return { kind: "not-sent", message: error.message };
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (name === "AbortError") return { kind: "cancelled" };
  if (typeof code === "string") {
    if (CERTIFICATE.test(code)) return { kind: "certificate", code };
    if (code === "EPROTO" || code.startsWith("ERR_SSL_")) return classifyTls(code, messageOf(error));
    if (code === "HPE_HEADER_OVERFLOW") return { kind: "headers-too-large", limitBytes: maxHeaderSize };
    if (UNSENDABLE.has(code)) return { kind: "not-sent", message: messageOf(error) };
    if (code.startsWith("HPE_")) return { kind: "not-http" };
    if (Object.hasOwn(NETWORK, code)) return { kind: "network", code };
  }
  return { kind: "other", message: messageOf(error), cause: error };
}

/** Of a server, or of a gateway before it, that may take the same request later. 500 and 501 say nothing of that. */
const PASSING: ReadonlySet<number> = new Set([
  ...[408, 429, 502, 503, 504],
  // Cloudflare's own, for a server that it does not reach, and of APIs that have too much to do.
  ...[520, 521, 522, 523, 524, 529],
]);

/** Whether the same request may be taken later. */
export const isPassing = (failure: HttpFailure): boolean =>
  failure.kind === "busy" && PASSING.has(failure.status);

/** Before the second and the third attempt. */
const RETRY_MS: readonly number[] = [300, 1_000];

/**
 * Wait in ms before the next attempt; undefined: there is no other attempt. `retry` counts from 0. `delaysMs`: the wait
 * before each further attempt. A server that asks for a longer wait than `LIMITS.retryAfterMs` is not asked again: it
 * would only refuse.
 */
export function retryDelay(
  failure: HttpFailure,
  retry: number,
  delaysMs: readonly number[] = RETRY_MS,
): number | undefined {
  const delayMs = delaysMs[retry];
  if (delayMs === undefined) return undefined;
  if (failure.kind === "network") return delayMs;
  if (failure.kind !== "busy") return undefined;
  const askedMs = failure.retryAfterMs ?? 0;
  return askedMs > LIMITS.retryAfterMs ? undefined : Math.max(delayMs, askedMs);
}

/** Limit for an address: a server may redirect to one of several kilobytes. */
const URL_CHARS = 300;

const shownUrl = (url: URL, redact: Redactor): string =>
  boundText(`${url.origin}${url.pathname}`, URL_CHARS, redact);

export interface HttpAddress {
  server: string;
  url: URL;
  /** Host of the proxy on the way to the server; undefined if there is none. */
  proxy: string | undefined;
  /** Paths below the entry whose values sign the requests, for example `bearerToken`; empty: none. */
  credentials: readonly string[];
  /** The file in which they stand or are to stand, with their line if it is known. */
  keyPlace: string;
  redact: Redactor;
}

interface Explanation {
  /** Absent: `connect_failed`. */
  code?: ErrorCode;
  /** Follows the address in a sentence. */
  what: string;
  /** How a request over an open connection ended. It must be certain: a call that did not run can be repeated. */
  verdict: "did not run" | "was refused" | "failed" | "got no answer" | "got no result";
  remedy: string;
  data?: ErrorData;
  /** What else holds at a connect: the address has never answered as an MCP server. */
  first?: { code?: ErrorCode; what: string; remedy?: string };
}

type Unexplained = Exclude<HttpFailure, { kind: "explained" }>;
type Failed<K extends Unexplained["kind"]> = Extract<HttpFailure, { kind: K }>;

const CHECK = "Check the url in mcp.json and that the server is up.";
const CHECK_PROXY = "Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.";
const MCP_URL = "The url must be the MCP endpoint, often ending in /mcp.";

const UNKNOWN_AUTHORITY = "its certificate comes from an authority that is not known here";
const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
};

const TEXT_CHARS = 200;
/** Limit for each text in a challenge. */
const CHALLENGE_CHARS = 500;

/** Adds the server's own words. They are cut after secrets are out: half of a secret would not be found. */
const withText = (what: string, text: string, { redact }: HttpAddress): string => {
  const words = oneLine(redact(text), TEXT_CHARS);
  return words === "" ? what : `${what}: ${words}`;
};

function challengeData(challenge: AuthChallenge | undefined, { redact }: HttpAddress): ErrorData {
  if (challenge === undefined) return {};
  const shown = Object.entries(challenge).map(([key, text]: [string, string]) => [
    key,
    redact(text).slice(0, CHALLENGE_CHARS).toWellFormed(),
  ]);
  return { challenge: Object.fromEntries(shown) };
}

/** RFC 6750, section 3.1: the request needs more than the credentials give, which are as good as before for others. */
function wantedRights(challenge: AuthChallenge | undefined): string | undefined {
  if (challenge?.error !== LACKS_RIGHTS) return undefined;
  const { scope = UNSAID, errorDescription } = challenge;
  return `it wants more rights: ${scope}${errorDescription === undefined ? "" : ` (${errorDescription})`}`;
}

/**
 * Whether the failure of a request says that the server takes the credentials of the connection for nothing any more. One that
 * wants more rights for this request (MCP 2025-11-25, basic/authorization, "Scope Challenge Handling") does other things with
 * them; but a server that does not list its tools is of no use.
 */
export function losesAuth({ code, data }: ThreadsError, method: string): boolean {
  if (code !== "needs_auth") return false;
  const challenge = isObject(data?.challenge) ? data.challenge : {};
  const isOfRequest = data?.reason === "scope-wanted" || challenge.error === LACKS_RIGHTS;
  return !isOfRequest || method === "tools/list";
}

const keyNames = (credentials: readonly string[]): string =>
  credentials.map((path) => (path === "url" ? "key in the url" : path)).join(" and the ");

const SIGNING_ADVICE =
  "Check what that program signs with: its key, region and service, and the clock of this machine.";

function needsAuth(failure: Failed<"needs-auth">, address: HttpAddress): Explanation {
  const { status, challenge, text } = failure;
  const { server, credentials, keyPlace } = address;
  const words = wantedRights(challenge) ?? challenge?.errorDescription ?? text;
  const isRefused = credentials.length > 0;
  const isSigned = credentials.includes(SIGNING_KEY);
  // Where the configuration switches the sign-in off that the server offers, no key is known to be wanted.
  const isKey = !isSigned && (isRefused || (status === 401 && challenge?.resourceMetadata === undefined));
  return {
    code: "needs_auth",
    what: isRefused
      ? `refused the ${keyNames(credentials)} of ${keyPlace} (${withText(String(status), words, address)})`
      : withText(`answered ${status}`, words, address),
    verdict: "was refused",
    remedy: isSigned ? SIGNING_ADVICE : isRefused ? keyAdvice(server) : keyAdvice(server, keyPlace),
    data: {
      status,
      ...(isKey && { reason: isRefused ? "key-refused" : "key-wanted" }),
      ...challengeData(challenge, address),
    },
  };
}

function redirect({ status, to }: Failed<"redirect">, { url, redact }: HttpAddress): Explanation {
  const others = "because that is another server";
  const reason =
    status === 307 || status === 308
      ? "after so many others"
      : `because status ${status} would change the request`;
  const isInTheOpen = url.protocol === "https:" && to.protocol === "http:";
  const warning = isInTheOpen ? " Over http, keys and answers would travel in the open." : "";
  return {
    what: `redirects to ${shownUrl(to, redact)}, which is not followed ${staysWithin(url, to) ? reason : others}`,
    verdict: "got no result",
    // A model reads this too, and the server chose the address.
    remedy: `Only the user can say whether that is the MCP server: then its address is the url in mcp.json.${warning}`,
    data: { status },
  };
}

function network({ code }: Failed<"network">, { proxy }: HttpAddress): Explanation {
  const verdict = UNSENT.has(code) ? "did not run" : "got no answer";
  if (proxy !== undefined)
    return {
      what: `could not be reached through the proxy ${proxy} (${code})`,
      verdict,
      remedy: CHECK_PROXY,
    };
  const remedy = code === "ENOTFOUND" ? "Check the host name in the url, and the network." : CHECK;
  return { what: `${NETWORK[code] ?? UNREACHED} (${code})`, verdict, remedy };
}

function refused({ status, text }: { status: number; text: string }, address: HttpAddress): Explanation {
  const { credentials, keyPlace } = address;
  const remedy = status === 404 || status === 405 ? MCP_URL : CHECK;
  return {
    what: withText(`answered status ${status}`, text, address),
    verdict: "was refused",
    remedy:
      status === 403 && credentials.length > 0
        ? `Check that the ${keyNames(credentials)} of ${keyPlace} may use this server.`
        : remedy,
    data: { status },
  };
}

/** The answer holds no MCP message. */
const noMessage = (what: string, status: number): Explanation => ({
  what,
  verdict: "got no result",
  remedy: MCP_URL,
  data: { status },
  first: { what: `is not an MCP server: it ${what}` },
});

/** Kind of failure -> what happened at the address, how the request ended, and what to do. */
const EXPLAIN: {
  readonly [K in Unexplained["kind"]]: (failure: Failed<K>, address: HttpAddress) => Explanation;
} = {
  "needs-auth": needsAuth,
  redirect,
  network,
  rejected: refused,
  "refuses-streamable": refused,
  "web-page": ({ status, text }, address) =>
    noMessage(withText(`answered with a web page (HTML), status ${status}`, text, address), status),
  unusable: ({ status, contentType, text }, address) =>
    noMessage(withText(`answered with ${contentType ?? "no content type"}`, text, address), status),
  busy: ({ status, retryAfterMs, text }, address) => {
    const wait = retryAfterMs === undefined ? "" : ` and asks to wait ${Math.ceil(retryAfterMs / 1_000)} s`;
    const what = `${withText(`answered status ${status}`, text, address)}${wait}`;
    // RFC 6585, section 4: too many requests in a given time. This one was not let in.
    const isLimited = status === 429;
    const remedy = `The server has trouble or is busy: ${advice("later")}`;
    return {
      what,
      verdict: isLimited ? "was refused" : "failed",
      remedy: isLimited ? "The server limits how often it is asked: try again later." : remedy,
      data: {
        status,
        ...(PASSING.has(status) && { reason: "busy" }),
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      },
      first: { what, remedy },
    };
  },
  certificate: ({ code }) => ({
    what: `could not be trusted: ${CERTIFICATES[code] ?? "its certificate was refused"} (${code})`,
    verdict: "did not run",
    remedy: /SELF_SIGNED|UNABLE_TO/.test(code)
      ? 'If it is your own, write the file of its certificate authority as "caFile" of the server, or set NODE_EXTRA_CA_CERTS to it before starting Pi.'
      : "Its operator has to renew or correct it; check also the host name in the url and this machine's clock.",
  }),
  cancelled: () => ({
    code: "cancelled",
    what: "did not answer before the request was given up",
    verdict: "got no answer",
    remedy: "Nothing to do.",
  }),
  "too-large": ({ excess: { code = "message_too_large", what, remedy, data } }) => ({
    code,
    what: `sent ${what}`,
    verdict: "got no result",
    remedy,
    data,
  }),
  "session-lost": ({ isAccepted }) => ({
    ...(isAccepted
      ? {
          what: "has forgotten the session of this request; it may have been restarted",
          verdict: "got no answer",
          remedy: CHECK,
        }
      : {
          code: "server_died",
          what: "no longer knows this session; it may have been restarted",
          verdict: "did not run",
          remedy: "Repeat the call: the next one opens a new session.",
        }),
    first: {
      code: "connect_failed",
      what: "no longer knows the session that it has just opened",
      remedy: "If several machines answer there, all requests of a session must go to the same one.",
    },
  }),
  proxy: ({ status, message }) => ({
    what: `could not be reached: ${message}`,
    verdict: "did not run",
    remedy:
      status === 407
        ? "The proxy wants a name and password: http://name:password@host in HTTP_PROXY or HTTPS_PROXY."
        : CHECK_PROXY,
    ...(status === undefined ? {} : { data: { status } }),
  }),
  "headers-too-large": ({ limitBytes }) => ({
    what: `sent headers of more than ${Math.floor(limitBytes / 1024)} KiB`,
    verdict: "got no result",
    remedy: "Only the server's operator can shorten them.",
  }),
  "not-tls": () => ({
    what: "does not speak TLS",
    verdict: "did not run",
    remedy: "Write http:// in the url if the server is meant to be without.",
  }),
  "tls-refused": ({ text, isSent }, address) => ({
    what: withText("did not agree to a TLS connection", text, address),
    verdict: isSent ? "got no answer" : "did not run",
    remedy:
      "Check the host name in the url. The server may want another version of TLS, or a certificate of the client, which cannot be configured.",
  }),
  "not-http": () => ({
    what: "broke the rules of HTTP",
    verdict: "got no result",
    remedy: "Check the port in the url.",
    first: { what: "does not speak HTTP" },
  }),
  "not-sent": ({ message }) => ({ what: `was not asked: ${message}`, verdict: "did not run", remedy: CHECK }),
  other: ({ message }) => ({ what: `failed: ${message}`, verdict: "got no answer", remedy: CHECK }),
};

const explain = (failure: Unexplained, address: HttpAddress): Explanation =>
  EXPLAIN[failure.kind](failure as never, address);

const causeOf = (failure: Unexplained): unknown => (failure.kind === "other" ? failure.cause : undefined);

const dataOf = ({ data }: Explanation, { server, redact }: HttpAddress): ErrorData => ({
  server,
  ...(data && redactData(data, redact)),
});

/** The sentence of `explainConnect` without the server's name. */
export function describeConnect(failure: HttpFailure, address: HttpAddress): string {
  if (failure.kind === "explained") return failure.error.message;
  const { what, first } = explain(failure, address);
  return address.redact(`${shownUrl(address.url, address.redact)} ${first?.what ?? what}.`);
}

/** The error of an attempt to connect. */
export function explainConnect(failure: HttpFailure, address: HttpAddress): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const explanation = explain(failure, address);
  const { code = "connect_failed", remedy } = { ...explanation, ...explanation.first };
  // The kind of failure as a word, for readers that treat kinds differently; for the network its own code.
  const reason = failure.kind === "network" ? failure.code : failure.kind;
  const text = `${address.server}: ${describeConnect(failure, address)}`;
  const data = { reason, ...dataOf(explanation, address) };
  return new ThreadsError(code, text, { remedy, data, cause: causeOf(failure) });
}

interface FailedRequest {
  method: string;
  /** The tool that the request calls, if any. */
  call: string | undefined;
  /** The request goes on with a call that the server has begun: what refuses it says nothing about what has run. */
  hasBegun?: boolean;
}

/** The error of a request over an open connection. */
export function explainRequest(
  failure: HttpFailure,
  { method, call, hasBegun = false }: FailedRequest,
  address: HttpAddress,
): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const explanation = explain(failure, address);
  const { what, code = "connect_failed" } = explanation;
  const verdict = hasBegun ? "failed" : explanation.verdict;
  const subject = call === undefined ? `${address.server}: ${method}` : `${address.server}/${call}`;
  const where = shownUrl(address.url, address.redact);
  const text = address.redact(`${subject} ${verdict}: ${where} ${what}.`);
  const details = {
    remedy: explanation.remedy,
    data: dataOf(explanation, address),
    cause: causeOf(failure),
  };
  // A request for a list is part of the connect. A call is different: it may have had its effect.
  if (call === undefined || code !== "connect_failed") return new ThreadsError(code, text, details);
  if (verdict === "was refused") return new ThreadsError("call_rejected", text, details);
  const remedy =
    verdict === "did not run" ? details.remedy : "The call may have run. The next call connects again.";
  return new ThreadsError("server_died", text, { ...details, remedy });
}
