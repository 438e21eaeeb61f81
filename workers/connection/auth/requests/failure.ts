/** Owns what a request that got no answer means for a sign-in, in plain words. Pure. */
import { ProxyError } from "../../web/client.ts";
import { SignInProblem } from "../model/model.ts";
import { shownAddress } from "./addresses.ts";

/** The answer is longer than the limit. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
}

export interface RequestState {
  url: URL;
  /** The caller gave the request up. */
  cancelled: boolean;
  /** The time of the request is over. */
  late: boolean;
  limits: { bytes: number; ms: number };
}

/** Each follows "could not be reached: ". */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refuses connections",
  ECONNRESET: "it closed the connection without an answer",
  EPIPE: "it closed the connection without an answer",
  ERR_STREAM_PREMATURE_CLOSE: "it closed the connection before the answer was complete",
  ENOTFOUND: "there is no such host name",
  EAI_AGAIN: "the name service did not answer",
  ETIMEDOUT: "it did not answer",
  EHOSTUNREACH: "there is no way to its network",
  ENETUNREACH: "there is no way to its network",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate comes from an authority that is not known here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate comes from an authority that is not known here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate comes from an authority that is not known here",
  HPE_HEADER_OVERFLOW: "its answer has too many headers",
};

/** Codes of a body that cannot be decompressed. */
const BROKEN_ENCODING = /^(?:Z_|ERR__ERROR_|ERR_BROTLI|ERR_PADDING)/;

const codeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "";
};

function reasonOf(error: unknown): string {
  if (error instanceof ProxyError) return error.message;
  const code = codeOf(error);
  const reason = REASONS[code] ?? "the connection failed";
  return code === "" ? reason : `${reason} (${code})`;
}

/** `error`: what the request or the reading of its answer was rejected with. */
export function explainRequest(
  error: unknown,
  { url, cancelled, late, limits }: RequestState,
): SignInProblem {
  const shown = shownAddress(url);
  if (error instanceof SignInProblem) return error;
  if (cancelled) return new SignInProblem("cancelled", {}, error);
  if (late) {
    const what = `no complete answer within ${limits.ms / 1_000} s`;
    return new SignInProblem("unreachable", { url: shown, what }, error);
  }
  if (error instanceof AnswerTooLong) {
    return new SignInProblem(
      "bad-answer",
      { url: shown, what: `more than ${limits.bytes / 1_024} KB` },
      error,
    );
  }
  if (BROKEN_ENCODING.test(codeOf(error))) {
    return new SignInProblem("bad-answer", { url: shown, what: "it cannot be decompressed" }, error);
  }
  return new SignInProblem("unreachable", { url: shown, what: reasonOf(error) }, error);
}
