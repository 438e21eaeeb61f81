/** Words for each kind of failure: what happened at the address, how the request ended, and what to do. */

import type { ErrorCode, ErrorData } from "../../../../src/shared/protocol/errors.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { commandFor, keyAdvice } from "../../../shared/commands.ts";
import type { AuthChallenge } from "../../auth/auth.ts";
import { staysWithin } from "../../web/client.ts";
import type { HttpFailure } from "./failure.ts";
import { shownUrl } from "./shown-url.ts";

export interface HttpAddress {
  server: string;
  url: URL;
  /** Host of the proxy on the way to the server; undefined if there is none. */
  proxy: string | undefined;
  /** Paths below the entry whose values sign the requests, for example `bearerToken`; empty: none. */
  credentials: readonly string[];
  /** The file in which they stand or are to stand, with their line if it is known. */
  keyPlace: string;
  redact: (text: string) => string;
}

/** How a request over an open connection ended. It must be certain: a call that did not run can be repeated. */
export type Verdict = "did not run" | "was refused" | "failed" | "got no answer" | "got no result";

export interface Explanation {
  code: ErrorCode;
  /** Follows the address in a sentence. */
  what: string;
  verdict: Verdict;
  remedy: string;
  data?: ErrorData;
}

const CHECK = "Check the url in mcp.json and that the server is up.";
const MCP_URL = "The url must be the MCP endpoint, often ending in /mcp.";

const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate comes from an authority that is not known here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate comes from an authority that is not known here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate comes from an authority that is not known here",
};

function certificate(code: string): Explanation {
  const authority = /SELF_SIGNED|UNABLE_TO/.test(code);
  return {
    code: "connect_failed",
    what: `could not be trusted: ${CERTIFICATES[code] ?? "its certificate was refused"} (${code})`,
    verdict: "did not run",
    remedy: authority
      ? 'If it is your own, write the file of its certificate authority as "caFile" of the server, or set NODE_EXTRA_CA_CERTS to it before starting Pi.'
      : "Its operator has to renew or correct it; check also the host name in the url and this machine's clock.",
  };
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refused the connection",
  ECONNRESET: "closed the connection without an answer",
  EPIPE: "closed the connection without an answer",
  ERR_STREAM_PREMATURE_CLOSE: "closed the connection without an answer",
  ENOTFOUND: "could not be found: no such host name",
  EAI_AGAIN: "could not be found: the name service did not answer",
  ETIMEDOUT: "did not answer",
};

/** Codes after which nothing was sent, because there was no connection. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"]);

function network(code: string, proxy: string | undefined): Explanation {
  const verdict = UNSENT.has(code) ? "did not run" : "got no answer";
  const what = `${NETWORK[code] ?? "could not be reached"} (${code})`;
  if (proxy === undefined) {
    const remedy = code === "ENOTFOUND" ? "Check the host name in the url, and the network." : CHECK;
    return { code: "connect_failed", what, verdict, remedy };
  }
  return {
    code: "connect_failed",
    what: `could not be reached through the proxy ${proxy} (${code})`,
    verdict,
    remedy: "Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.",
  };
}

const TEXT_CHARS = 200;
/** Limit for each text in a challenge. */
const CHALLENGE_CHARS = 500;

/** Adds the server's own words. They are cut after secrets are out: half of a secret would not be found. */
const withText = (what: string, text: string, { redact }: HttpAddress): string => {
  const words = oneLine(redact(text), TEXT_CHARS);
  return words === "" ? what : `${what}: ${words}`;
};

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;

function challengeData(challenge: AuthChallenge | undefined, { redact }: HttpAddress): ErrorData {
  if (challenge === undefined) return {};
  const shown = Object.entries(challenge).map(([key, text]: [string, string]) => [
    key,
    redact(text).slice(0, CHALLENGE_CHARS).toWellFormed(),
  ]);
  return { challenge: Object.fromEntries(shown) };
}

function needsAuth(failure: Extract<HttpFailure, { kind: "needs-auth" }>, address: HttpAddress): Explanation {
  const { status, challenge, text } = failure;
  const { server, credentials, keyPlace } = address;
  const words = challenge?.errorDescription ?? text;
  const isRefused = credentials.length > 0;
  const keys = credentials.map((path) => (path === "url" ? "key in the url" : path)).join(" and the ");
  // Where the configuration switches the sign-in off that the server offers, no key is known to be wanted.
  const isKey = isRefused || (status === 401 && challenge?.resourceMetadata === undefined);
  return {
    code: "needs_auth",
    what: isRefused
      ? `refused the ${keys} of ${keyPlace} (${withText(String(status), words, address)})`
      : withText(`answered ${status}`, words, address),
    verdict: "was refused",
    remedy: isRefused ? keyAdvice(server) : keyAdvice(server, keyPlace),
    data: {
      status,
      ...(isKey && { reason: isRefused ? "key-refused" : "key-wanted" }),
      ...challengeData(challenge, address),
    },
  };
}

function redirect(failure: Extract<HttpFailure, { kind: "redirect" }>, address: HttpAddress): Explanation {
  const { status, to } = failure;
  const others = "because that is another server";
  const reason =
    status === 307 || status === 308
      ? "after so many others"
      : `because status ${status} would change the request`;
  return {
    code: "connect_failed",
    what: `redirects to ${shownUrl(to, address.redact)}, which is not followed ${staysWithin(address.url, to) ? reason : others}`,
    verdict: "got no result",
    // A model reads this too, and the server chose the address.
    remedy: "Only the user can say whether that is the MCP server: then its address is the url in mcp.json.",
    data: { status },
  };
}

function busy(failure: Extract<HttpFailure, { kind: "busy" }>, address: HttpAddress): Explanation {
  const { status, retryAfterMs, text } = failure;
  const wait = retryAfterMs === undefined ? "" : ` and asks to wait ${seconds(retryAfterMs)}`;
  return {
    code: "connect_failed",
    what: `${withText(`answered status ${status}`, text, address)}${wait}`,
    verdict: "failed",
    remedy: `The server has trouble or is busy: try again later with ${commandFor("reconnect")}.`,
    data: { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  };
}

export function explain(
  failure: Exclude<HttpFailure, { kind: "explained" }>,
  address: HttpAddress,
): Explanation {
  switch (failure.kind) {
    case "needs-auth":
      return needsAuth(failure, address);
    case "redirect":
      return redirect(failure, address);
    case "busy":
      return busy(failure, address);
    case "network":
      return network(failure.code, address.proxy);
    case "certificate":
      return certificate(failure.code);
    case "cancelled":
      return {
        code: "cancelled",
        what: "did not answer before the request was given up",
        verdict: "got no answer",
        remedy: "Nothing to do.",
      };
    case "too-large": {
      const { code = "message_too_large", what, remedy, data } = failure.excess;
      return { code, what: `sent ${what}`, verdict: "got no result", remedy, data };
    }
    case "session-lost":
      return {
        code: "server_died",
        what: "no longer knows this session; it may have been restarted",
        verdict: "did not run",
        remedy: "Repeat the call: the next one opens a new session.",
      };
    case "refuses-streamable":
    case "rejected":
      return {
        code: "connect_failed",
        what: withText(`answered status ${failure.status}`, failure.text, address),
        verdict: "was refused",
        remedy: failure.status === 404 || failure.status === 405 ? MCP_URL : CHECK,
        data: { status: failure.status },
      };
    case "proxy":
      return {
        code: "connect_failed",
        what: `could not be reached: ${failure.message}`,
        verdict: "did not run",
        remedy:
          failure.status === 407
            ? "The proxy wants a name and password: http://name:password@host in HTTP_PROXY or HTTPS_PROXY."
            : "Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.",
        ...(failure.status === undefined ? {} : { data: { status: failure.status } }),
      };
    case "web-page":
      return {
        code: "connect_failed",
        what: withText(`answered with a web page (HTML), status ${failure.status}`, failure.text, address),
        verdict: "got no result",
        remedy: MCP_URL,
        data: { status: failure.status },
      };
    case "unusable":
      return {
        code: "connect_failed",
        what: withText(`answered with ${failure.contentType ?? "no content type"}`, failure.text, address),
        verdict: "got no result",
        remedy: MCP_URL,
        data: { status: failure.status },
      };
    case "headers-too-large":
      return {
        code: "connect_failed",
        what: `sent headers of more than ${Math.floor(failure.limitBytes / 1024)} KiB`,
        verdict: "got no result",
        remedy: "Only the server's operator can shorten them.",
      };
    case "not-tls":
      return {
        code: "connect_failed",
        what: "does not speak TLS",
        verdict: "did not run",
        remedy: "Write http:// in the url if the server is meant to be without.",
      };
    case "not-http":
      return {
        code: "connect_failed",
        what: "does not speak HTTP",
        verdict: "got no result",
        remedy: "Check the port in the url.",
      };
    case "not-sent":
      return {
        code: "connect_failed",
        what: `was not asked: ${failure.message}`,
        verdict: "did not run",
        remedy: CHECK,
      };
    case "other":
      return {
        code: "connect_failed",
        what: `failed: ${failure.message}`,
        verdict: "got no answer",
        remedy: CHECK,
      };
  }
}
