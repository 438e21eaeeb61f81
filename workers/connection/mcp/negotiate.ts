/**
 * Which era is spoken with a server: the order of the attempts, and what an attempt that failed says about the other
 * (MCP 2026-07-28, basic/versioning). `auto` begins with the old era, which costs its servers nothing, unless the server is
 * known to be modern.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { MODERN_VERSION } from "./memory/memory.ts";
import { type Evidence, isWorthProbing, judgeEra } from "./modern/era.ts";

export interface EraAttempts<T> {
  legacy: () => Promise<T>;
  modern: () => Promise<T>;
  /** What the error of an attempt tells about the server. */
  evidenceOf: (error: unknown) => Evidence;
  onNote: (note: string) => void;
}

export interface EraChoice {
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
  if (protocol === "legacy") return attempts.legacy().catch((error) => onlyLegacy(error, name, attempts));
  if (protocol === MODERN_VERSION)
    return attempts.modern().catch((error) => onlyModern(error, name, attempts));
  return wasModern ? modernFirst(attempts) : legacyFirst(attempts);
}

async function modernFirst<T>({ legacy, modern, evidenceOf, onNote }: EraAttempts<T>): Promise<T> {
  try {
    return await modern();
  } catch (error) {
    if (judgeEra("modern", evidenceOf(error)) !== "legacy") throw error;
    onNote(`no longer answers MCP ${MODERN_VERSION}; trying the handshake of older revisions`);
    return await legacy();
  }
}

async function legacyFirst<T>({ legacy, modern, evidenceOf, onNote }: EraAttempts<T>): Promise<T> {
  try {
    return await legacy();
  } catch (error) {
    const evidence = evidenceOf(error);
    if (judgeEra("initialize", evidence) !== "modern" && !isWorthProbing(evidence)) throw error;
    onNote(`refuses the handshake of older revisions, trying MCP ${MODERN_VERSION}`);
    return await modern().catch((second: unknown) => {
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
