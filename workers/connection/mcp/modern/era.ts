/**
 * Which era of the protocol a server speaks, judged by what it did with a request (MCP 2026-07-28, basic/versioning and the
 * pages of both transports). Pure. A status that asks for credentials, for patience or for a proxy is never a verdict, and
 * neither is a broken network.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { MODERN_VERSION } from "../memory/memory.ts";

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

export type Evidence =
  | { kind: "result"; result: Record<string, unknown> }
  | { kind: "error"; error: RpcError }
  /** An answer over HTTP that is not the expected message. `error`: the JSON-RPC error in its body, whatever its id. */
  | { kind: "http"; status: number; error?: RpcError | undefined }
  | { kind: "silence" }
  /** The process exited, or the connection was closed. */
  | { kind: "ended" }
  | { kind: "other" };

export type Era = "modern" | "legacy";
export type Verdict = Era | "unknown";

/** The request that was answered: the handshake of the old era, or a request of the new one. */
export type Asked = "initialize" | "modern";

export const HEADER_MISMATCH = -32020;
export const UNSUPPORTED_VERSION = -32022;
/** -32021 is MissingRequiredClientCapability. */
const MODERN_CODES = new Set([HEADER_MISMATCH, -32021, UNSUPPORTED_VERSION]);
/** Answers to a handshake that the server does not know: an invalid request, an unknown method, missing parameters. */
const NO_HANDSHAKE = new Set([-32600, -32601, -32602]);

const VERSION = /\b20\d\d-\d\d-\d\d\b/g;
const LISTED = 100;
const WORDS_CHARS = 2_000;

/** The versions in `data.supported` of an error. Undefined: the error lists none. */
export function supportedVersions({ data }: { data?: unknown }): string[] | undefined {
  if (!isObject(data) || !Array.isArray(data.supported)) return undefined;
  return data.supported.slice(0, LISTED).filter((version) => typeof version === "string");
}

const isModern = (version: string): boolean => version >= MODERN_VERSION;

const namesModern = (error: RpcError): boolean =>
  [...(supportedVersions(error) ?? []), ...(error.message.slice(0, WORDS_CHARS).match(VERSION) ?? [])].some(
    isModern,
  );

function judgeError(error: RpcError, asked: Asked): Verdict {
  const versions = supportedVersions(error);
  if (MODERN_CODES.has(error.code))
    return versions === undefined || versions.some(isModern) ? "modern" : "legacy";
  if (asked === "modern") return "legacy";
  if (namesModern(error)) return "modern";
  return NO_HANDSHAKE.has(error.code) ? "unknown" : "legacy";
}

const saysNothing = (status: number): boolean =>
  [401, 403, 407, 408, 429].includes(status) || status >= 500 || (status >= 300 && status < 400);

export function judgeEra(asked: Asked, evidence: Evidence): Verdict {
  switch (evidence.kind) {
    case "result": {
      const { supportedVersions: versions, resultType } = evidence.result;
      if (asked === "initialize") return "legacy";
      if (Array.isArray(versions)) return versions.some((one) => isModern(String(one))) ? "modern" : "legacy";
      return typeof resultType === "string" ? "modern" : "legacy";
    }
    case "error":
      return judgeError(evidence.error, asked);
    case "http":
      if (saysNothing(evidence.status)) return "unknown";
      return evidence.error ? judgeError(evidence.error, asked) : "legacy";
    case "silence":
    case "ended":
      return "legacy";
    case "other":
      return "unknown";
  }
}

/** Whether the answer to a handshake is one that a server without handshakes gives, so that a modern request is worth it. */
export const isWorthProbing = (evidence: Evidence): boolean =>
  "error" in evidence &&
  evidence.error !== undefined &&
  !(evidence.kind === "http" && saysNothing(evidence.status)) &&
  judgeEra("initialize", evidence) !== "legacy";
