/**
 * Which era of the protocol a server speaks, judged by what it did with a request (MCP 2026-07-28, basic/versioning and the
 * pages of both transports), and the order of the attempts: `auto` begins with the old era, which costs its servers nothing,
 * unless the server is known to be modern. A status that asks for credentials, for patience or for a proxy is never a verdict, and
 * neither is a broken network.
 */

import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import type { ServerDefinition } from "../../config/entry/definition.ts";
import { INVALID_PARAMS, METHOD_NOT_FOUND, MODERN_VERSION } from "../wire/wire.ts";

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

export type Evidence =
  | { kind: "result"; result: Record<string, unknown> }
  | { kind: "error"; error: RpcError }
  /** An answer over HTTP that is not the expected message. `error`: the JSON-RPC error in its body, whatever its id; `text`: its words. */
  | { kind: "http"; status: number; error?: RpcError | undefined; text?: string }
  | { kind: "silence" }
  /** The process exited, or the connection was closed. */
  | { kind: "ended" }
  | { kind: "other" };

type Era = "modern" | "legacy";
export type Verdict = Era | "unknown";

/** The request that was answered: the handshake of the old era, or a request of the new one. */
export type Asked = "initialize" | "modern";

export const HEADER_MISMATCH = -32020;
export const UNSUPPORTED_VERSION = -32022;
/** -32021 is MissingRequiredClientCapability. */
const MODERN_CODES = new Set([HEADER_MISMATCH, -32021, UNSUPPORTED_VERSION]);
/** Answers to a handshake that the server does not know: an invalid request, an unknown method, missing parameters. */
const NO_HANDSHAKE = new Set([-32600, METHOD_NOT_FOUND, INVALID_PARAMS]);

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

/** What a server that refused the handshake is offered in place of the usual: an older revision, or no capability at all. */
export type OtherOffer = { version: string } | "nothing";

/** Refusals of a body that could not be read, which some servers word as a status alone (RFC 9110, section 15.5). */
const UNREADABLE = new Set([400, 422]);
/** What a server that names no revision speaks most likely. */
const OLDEST = "2024-11-05";
const NAMES_VERSION = /protocol.?version/i;

/** The revisions of a handshake that the refusal names and this client knows, the newest first. */
function namedVersions(words: string, data: unknown): string[] {
  const texts = isObject(data) ? Object.values(data).slice(0, LISTED).flat().slice(0, LISTED) : [];
  const named = [words, ...texts.filter((text) => typeof text === "string")].flatMap(
    (text) => text.slice(0, WORDS_CHARS).match(VERSION) ?? [],
  );
  const isOlder = (version: string): boolean =>
    version < LATEST_PROTOCOL_VERSION && SUPPORTED_PROTOCOL_VERSIONS.includes(version);
  return named.filter(isOlder).sort().reverse();
}

/**
 * What a server that refused the handshake may take. Servers refuse a revision in place of naming theirs, and strict ones
 * refuse a capability that is younger than they are. Undefined: nothing else would be taken. `isOffering`: the first
 * handshake offered capabilities.
 */
export function otherOffer(evidence: Evidence, isOffering: boolean): OtherOffer | undefined {
  if (evidence.kind !== "error" && evidence.kind !== "http") return undefined;
  const { error } = evidence;
  const status = evidence.kind === "http" ? evidence.status : undefined;
  const isUnread = status !== undefined && UNREADABLE.has(status);
  if (!error && !isUnread) return undefined;
  if (status !== undefined && status !== 500 && saysNothing(status)) return undefined;
  if (judgeEra("initialize", evidence) === "modern") return undefined;
  const words = `${error?.message ?? ""} ${(evidence.kind === "http" && evidence.text) || ""}`;
  const [newest] = namedVersions(words, error?.data);
  if (newest !== undefined) return { version: newest };
  if (NAMES_VERSION.test(words.slice(0, WORDS_CHARS))) return { version: OLDEST };
  return isOffering && error?.code !== METHOD_NOT_FOUND ? "nothing" : undefined;
}

interface Handshake<T> {
  /** `other`: what is offered in place of the usual. */
  legacy: (other?: OtherOffer) => Promise<T>;
  /** Whether the usual handshake offers capabilities. */
  isOffering: boolean;
  /** What the error of an attempt tells about the server. */
  evidenceOf: (error: unknown) => Evidence;
  onNote: (note: string) => void;
}

/** The handshake, and once more with another offer if the server refuses the first. Rejects with the first refusal. */
export async function handshake<T>({ legacy, isOffering, evidenceOf, onNote }: Handshake<T>): Promise<T> {
  try {
    return await legacy();
  } catch (error) {
    const other = otherOffer(evidenceOf(error), isOffering);
    if (!other) throw error;
    const how = other === "nothing" ? "without this client's capabilities" : `with MCP ${other.version}`;
    onNote(`refuses the handshake, trying once more ${how}`);
    return await legacy(other).catch(() => {
      throw error;
    });
  }
}

interface EraAttempts<T> extends Handshake<T> {
  /** `isTrial`: silence is no failure yet, since the old era is tried after it. */
  modern: (isTrial: boolean) => Promise<T>;
}

interface EraChoice {
  definition: Pick<ServerDefinition, "name" | "protocol">;
  /** Whether the server spoke the new era before. */
  wasModern: boolean;
}

/** Rejects with what the attempt rejects that says most, or with `ThreadsError`. */
export async function negotiate<T>(
  { definition, wasModern }: EraChoice,
  attempts: EraAttempts<T>,
): Promise<T> {
  const { name, protocol } = definition;
  if (protocol === "legacy") return handshake(attempts).catch((error) => onlyLegacy(error, name, attempts));
  if (protocol === MODERN_VERSION)
    return attempts.modern(false).catch((error) => onlyModern(error, name, attempts));
  return wasModern ? modernFirst(attempts) : legacyFirst(attempts);
}

async function modernFirst<T>(attempts: EraAttempts<T>): Promise<T> {
  const { modern, evidenceOf, onNote } = attempts;
  try {
    return await modern(true);
  } catch (error) {
    if (judgeEra("modern", evidenceOf(error)) !== "legacy") throw error;
    onNote(`does not answer MCP ${MODERN_VERSION} as before; trying the handshake of older revisions`);
    // A server that was only slow refuses the handshake, and is of the new era after all.
    return await legacyFirst(attempts);
  }
}

async function legacyFirst<T>(attempts: EraAttempts<T>): Promise<T> {
  const { modern, evidenceOf, onNote } = attempts;
  try {
    return await handshake(attempts);
  } catch (error) {
    const evidence = evidenceOf(error);
    if (judgeEra("initialize", evidence) !== "modern" && !isWorthProbing(evidence)) throw error;
    onNote(`refuses the handshake of older revisions, trying MCP ${MODERN_VERSION}`);
    return await modern(false).catch((second: unknown) => {
      // A server that is not modern after all has said more in its first answer.
      throw judgeEra("modern", evidenceOf(second)) === "legacy" ? error : second;
    });
  }
}

function onlyLegacy<T>(error: unknown, name: string, { evidenceOf }: EraAttempts<T>): never {
  if (judgeEra("initialize", evidenceOf(error)) !== "modern") throw error;
  throw new ThreadsError(
    "connect_failed",
    `${name} speaks only newer revisions of MCP, and "protocol": "legacy" forbids them.`,
    {
      remedy: `Remove "protocol" from its entry in mcp.json, or set it to "auto".`,
      data: { server: name, reason: "era" },
    },
  );
}

function onlyModern<T>(error: unknown, name: string, { evidenceOf }: EraAttempts<T>): never {
  const evidence = evidenceOf(error);
  // A wrong address and a server that says nothing are of no era: their own errors tell more.
  const isAnswer = evidence.kind === "result" || ("error" in evidence && evidence.error !== undefined);
  if (!isAnswer || judgeEra("modern", evidence) !== "legacy") throw error;
  throw new ThreadsError(
    "connect_failed",
    `${name} does not speak MCP ${MODERN_VERSION}, and "protocol": "${MODERN_VERSION}" forbids older revisions.`,
    {
      remedy: `Remove "protocol" from its entry in mcp.json, or set it to "auto".`,
      data: { server: name, reason: "era" },
    },
  );
}
