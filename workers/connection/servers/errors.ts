/** What a user of a server is told when it is not to be had. */
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { ConnectionParts } from "../mcp/mcp.ts";
import { refusedAnswer } from "../mcp/sdk-errors.ts";
import type { TooLarge } from "../messages/too-large.ts";
import { asReason } from "./name.ts";
import { backoffMs, type ServerPhase } from "./state.ts";

const KNOWN_SHOWN = 20;

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));

/** Why a wish for a connection was refused, and when or how it would not be. */
export function refusal(
  { name, file }: ServerDefinition,
  phase: ServerPhase,
  reason: "waiting-to-retry" | "disabled" | "closing",
  nowMs: number,
): ThreadsError {
  if (reason === "disabled") {
    return new ThreadsError("server_disabled", `${name} is disabled in ${file}.`, {
      remedy: 'Set "enabled": true for it there.',
      data: { server: name },
    });
  }
  if (phase.name === "failed" && reason === "waiting-to-retry") {
    const waitS = seconds(phase.retryAtMs - nowMs);
    return new ThreadsError(phase.error.code, phase.error.message, {
      remedy: `It is tried again in ${waitS} s; /mcp reconnect ${name} tries now.`,
      data: { ...phase.error.data, server: name, retryInMs: waitS * 1_000 },
    });
  }
  return new ThreadsError("server_died", `${name} is being closed.`, { data: { server: name } });
}

/**
 * What a status tells of a phase, if there is an error to tell. A server that is dropped soon after each connect says
 * how often that was, and when it is connected again.
 */
export function statusError(
  { name, lifecycle }: ServerDefinition,
  phase: ServerPhase,
  reconnectMs: number = LIMITS.reconnectMs,
): ThreadsError | undefined {
  if (!("error" in phase)) return undefined;
  const { error } = phase;
  if (phase.name !== "idle" || phase.failures < 2) return error;
  const often = `That was ${phase.failures} times in a row, each within ${LIMITS.steadyMs / 1_000} s of the connect.`;
  const message = `${error.message} ${often}`;
  const data = { ...error.data, failures: phase.failures };
  if (lifecycle !== "keep-alive")
    return new ThreadsError(error.code, message, { remedy: error.remedy, data });
  const retryInMs = backoffMs(phase.failures, reconnectMs);
  return new ThreadsError(error.code, message, {
    remedy: `It is connected again after ${seconds(retryInMs)} s; /mcp reconnect ${name} tries now.`,
    data: { ...data, retryInMs },
  });
}

export function unknownTool(server: string, tool: string, known: readonly CachedTool[] = []): ThreadsError {
  return new ThreadsError("unknown_tool", `${server} no longer offers a tool named ${tool}.`, {
    remedy: "Search again with ToolSearch.",
    data: { server, known: known.slice(0, KNOWN_SHOWN).map(({ name }) => name) },
  });
}

export function excludedTool({ name, file, overrides }: ServerDefinition, tool: string): ThreadsError {
  const files = [file, ...overrides].join(" or ");
  return new ThreadsError("tool_excluded", `${name} offers ${tool}, but the configuration excludes it.`, {
    remedy: `Only the user can allow it: excludeTools, includeTools or toolExposure in ${files}.`,
    data: { server: name },
  });
}

/** `why`: a sentence without its end. */
export const heldBackError = (server: string, why: string): ThreadsError =>
  new ThreadsError("server_died", `${server}: ${why}. The server is not connected by itself any more.`, {
    remedy: `A call of one of its tools or /mcp reconnect ${server} connects it.`,
    data: { server },
  });

/** `reason`: in words that follow a colon. */
export const notTrusted = (server: string, reason: string): ThreadsError =>
  new ThreadsError("server_not_trusted", `${server} is not started: ${reason}.`, {
    remedy: "Only the user can allow it.",
    data: { server },
  });

/** What a server may take for its start, in milliseconds. */
export const startLimitMs = ({ startupTimeoutMs }: ServerDefinition): number =>
  startupTimeoutMs ?? LIMITS.startupTimeoutMs;

export function startupTimeout({ definition }: { definition: ServerDefinition }): ThreadsError {
  const timeoutMs = startLimitMs(definition);
  return new ThreadsError(
    "connect_timeout",
    `${definition.name} did not complete its start within ${timeoutMs / 1_000} s.`,
    {
      remedy: "Set startupTimeoutMs for it in mcp.json if it is slow.",
      data: { server: definition.name, timeoutMs },
    },
  );
}

/** `method`: the request whose answer was refused. */
export const answerTooLarge = (server: string, method: string, { excess }: TooLarge): ThreadsError =>
  new ThreadsError("message_too_large", `${server} answered ${method} with ${excess.what}.`, {
    remedy: excess.remedy,
    data: { server, ...excess.data },
  });

/**
 * A server that connected but could not tell its tools is of no use; its own words say why. `timedOut`,
 * `closed`: what the error means to the SDK.
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
