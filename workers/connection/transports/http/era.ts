/** What a failed exchange over HTTP says about the era of the server. Pure. */

import { evidenceOf } from "../../mcp/era-evidence.ts";
import { type Evidence, judgeEra } from "../../mcp/modern/era.ts";
import { AnswerError, classifyFailure } from "./failure.ts";

export const httpEvidence = (error: unknown): Evidence =>
  error instanceof AnswerError ? { kind: "http", status: error.status, error: error.rpc } : evidenceOf(error);

/** Whether a server that refuses the handshake is of the new era for certain, so that SSE need not be tried. */
export const isModernRefusal = (evidence: Evidence): boolean => judgeEra("initialize", evidence) === "modern";

/** Codes with which servers of the old era refuse a request that no handshake came before. */
const NO_SESSION = new Set([-32000, -32001, -32600, -32601]);

/** Failures before anything was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"]);

/**
 * Whether the first request to a server that was taken for a modern one shows that it is not, or that it is not there.
 * Either way nothing has run: the status refuses the request, or nothing was sent.
 */
export function isWrongEra(error: unknown): boolean {
  const failure = classifyFailure(error);
  if (failure.kind === "network") return UNSENT.has(failure.code);
  if (!(error instanceof AnswerError) || error.status < 400 || error.status >= 500) return false;
  if (error.rpc && !NO_SESSION.has(error.rpc.code)) return false;
  return judgeEra("modern", httpEvidence(error)) === "legacy";
}
