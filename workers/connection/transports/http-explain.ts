/** What people are told of a failure: who, what, where, and what to do about it. One sentence for each kind. */
import { type ErrorCode, type ErrorData, ThreadsError } from "../../../src/protocol/errors.ts";
import type { AuthChallenge } from "./http-challenge.ts";
import type { HttpFailure } from "./http-failure.ts";
import { shownUrl } from "./http-redact.ts";

export interface HttpAddress {
  server: string;
  url: URL;
  /** Host of the proxy on the way there. */
  proxy: string | undefined;
  /** Whether an Authorization header is configured. */
  hasCredentials: boolean;
  redact: (text: string) => string;
}

interface Told {
  code: ErrorCode;
  /** Goes on after the address. */
  what: string;
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

function certificate(code: string): Told {
  const authority = /SELF_SIGNED|UNABLE_TO/.test(code);
  return {
    code: "connect_failed",
    what: `could not be trusted: ${CERTIFICATES[code] ?? "its certificate was refused"} (${code})`,
    remedy: authority
      ? "If it is your own, start Pi with NODE_EXTRA_CA_CERTS set to the file of its certificate authority."
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

function network(code: string, proxy: string | undefined): Told {
  const what = `${NETWORK[code] ?? "could not be reached"} (${code})`;
  if (proxy === undefined) {
    const remedy = code === "ENOTFOUND" ? "Check the host name in the url, and the network." : CHECK;
    return { code: "connect_failed", what, remedy };
  }
  return {
    code: "connect_failed",
    what: `could not be reached through the proxy ${proxy} (${code})`,
    remedy: "Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.",
  };
}

const TEXT_CHARS = 200;

/** With the server's own words, cut only when secrets are out of them: half of one would not be found. */
const withText = (what: string, text: string, { redact }: HttpAddress): string =>
  text === "" ? what : `${what}: ${redact(text).slice(0, TEXT_CHARS).toWellFormed()}`;

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;

function challengeData(challenge: AuthChallenge | undefined): ErrorData {
  return challenge === undefined ? {} : { challenge: { ...challenge } };
}

function needsAuth(failure: Extract<HttpFailure, { kind: "needs-auth" }>, address: HttpAddress): Told {
  const { status, challenge, text } = failure;
  return {
    code: "needs_auth",
    what: withText(`answered ${status}`, challenge?.errorDescription ?? text, address),
    remedy: address.hasCredentials
      ? "It did not accept the Authorization header in mcp.json: renew the key there."
      : "The server wants credentials: set headers for it in mcp.json.",
    data: { status, ...challengeData(challenge) },
  };
}

function tell(failure: Exclude<HttpFailure, { kind: "explained" }>, address: HttpAddress): Told {
  switch (failure.kind) {
    case "needs-auth":
      return needsAuth(failure, address);
    case "cancelled":
      return { code: "cancelled", what: "was given up", remedy: "Nothing to do." };
    case "too-large": {
      const { what, remedy, data } = failure.excess;
      return { code: "message_too_large", what: `sent ${what}`, remedy, data };
    }
    case "session-lost":
      return {
        code: "server_died",
        what: "no longer knows this session; it may have been restarted",
        remedy: "Repeat the call: the next one opens a new session.",
      };
    case "refuses-streamable":
    case "rejected":
      return {
        code: "connect_failed",
        what: withText(`answered status ${failure.status}`, failure.text, address),
        remedy: failure.status === 404 || failure.status === 405 ? MCP_URL : CHECK,
        data: { status: failure.status },
      };
    case "busy": {
      const { status, retryAfterMs, text } = failure;
      const wait = retryAfterMs === undefined ? "" : ` and asks to wait ${seconds(retryAfterMs)}`;
      const data = { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
      const remedy = "The server has trouble or is busy: try again later with /mcp reconnect.";
      return {
        code: "connect_failed",
        what: `${withText(`answered status ${status}`, text, address)}${wait}`,
        remedy,
        data,
      };
    }
    case "network":
      return network(failure.code, address.proxy);
    case "proxy":
      return {
        code: "connect_failed",
        what: `could not be reached: ${failure.message}`,
        remedy:
          failure.status === 407
            ? "The proxy wants a name and password: http://name:password@host in HTTP_PROXY or HTTPS_PROXY."
            : "Check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY.",
        ...(failure.status === undefined ? {} : { data: { status: failure.status } }),
      };
    case "redirect":
      return {
        code: "connect_failed",
        what: `redirects to ${shownUrl(failure.to)}, which is not followed because that is another server`,
        remedy: "If that is the MCP server, write its address as the url in mcp.json.",
        data: { status: failure.status },
      };
    case "web-page":
      return {
        code: "connect_failed",
        what: withText(
          `is no MCP server: it answered with a web page (HTML), status ${failure.status}`,
          failure.text,
          address,
        ),
        remedy: MCP_URL,
        data: { status: failure.status },
      };
    case "unusable":
      return {
        code: "connect_failed",
        what: withText(
          `is no MCP server: it answered with ${failure.contentType ?? "nothing"}`,
          failure.text,
          address,
        ),
        remedy: MCP_URL,
        data: { status: failure.status },
      };
    case "certificate":
      return certificate(failure.code);
    case "not-tls":
      return {
        code: "connect_failed",
        what: "does not speak TLS",
        remedy: "Write http:// in the url if the server is meant to be without.",
      };
    case "not-http":
      return { code: "connect_failed", what: "does not speak HTTP", remedy: "Check the port in the url." };
    case "other":
      return { code: "connect_failed", what: `failed: ${failure.message}`, remedy: CHECK };
  }
}

/** For an attempt to connect. */
export function explainConnect(failure: HttpFailure, address: HttpAddress): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const { code, what, remedy, data } = tell(failure, address);
  const text = address.redact(`${address.server}: ${shownUrl(address.url)} ${what}.`);
  return new ThreadsError(code, text, { remedy, data: { server: address.server, ...shown(data, address) } });
}

/** For a request over an open connection. `call`: the tool that it calls, if any. */
export function explainRequest(
  failure: HttpFailure,
  { method, call }: { method: string; call: string | undefined },
  address: HttpAddress,
): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const told = tell(failure, address);
  const subject = call === undefined ? `${address.server}: ${method}` : `${address.server}/${call}`;
  const verdict = failure.kind === "session-lost" ? "did not run" : "got no answer";
  const text = address.redact(`${subject} ${verdict}: ${shownUrl(address.url)} ${told.what}.`);
  const data = { server: address.server, ...shown(told.data, address) };
  // A list is part of the connect; a call may have had its effect.
  if (call === undefined || told.code !== "connect_failed") {
    return new ThreadsError(told.code, text, { remedy: told.remedy, data });
  }
  const rejected = failure.kind === "rejected" || failure.kind === "refuses-streamable";
  return new ThreadsError(rejected ? "call_rejected" : "server_died", text, {
    remedy: rejected ? told.remedy : "The call may have run. The next call connects again.",
    data,
  });
}

/** What the server wrote into a challenge may repeat a key as well. */
function shown(data: ErrorData | undefined, { redact }: HttpAddress): ErrorData {
  return data === undefined ? {} : (JSON.parse(redact(JSON.stringify(data))) as ErrorData);
}
