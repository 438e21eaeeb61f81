/** What there is to say of a server: its status, and the errors for a server, or a tool of it, that is unavailable. Pure. */

import { basename } from "node:path";
import { SKILL_BY_ADDRESS } from "../../../src/shared/naming.ts";
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus, SignInStatus } from "../../../src/shared/protocol/session.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { advice, commandFor, withName } from "../../shared/commands.ts";
import { type CachedTool, listMark } from "../../shared/listed.ts";
import { type Origin, type ServerDefinition, transportOf } from "../config/entry/definition.ts";
import { mayBeDirect } from "../config/entry/exposure.ts";
import { sandboxOf } from "../config/entry/sandbox.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Connection } from "../mcp/connection.ts";
import { madeTools } from "../tools/listed.ts";
import type { ServerLists } from "./lists.ts";
import { backoffMs, type ServerEffect, type ServerPhase } from "./state.ts";

/** How long the server took, in milliseconds, since the session began. */
export interface ServerTimings {
  /** Its last start, from the first step to its complete list of tools. */
  startMs?: number;
  /** Its slowest call that was answered. */
  slowestCallMs: number;
  /** Calls that it did not answer in time. */
  lateCalls: number;
}

interface StatusFacts {
  phase: ServerPhase;
  /** What the start waits for, in words. */
  waits: string | undefined;
  /** Undefined: none is open, so the definition says which transport there would be. */
  connection: Connection | undefined;
  settings: Settings;
  reconnectMs: number;
  signIn: SignInStatus | undefined;
}

/** Whether the server is in no file of ours. Of a project's files outside `.pi/` only `.mcp.json` is one. */
const isForeign = (origin: Origin, file: string): boolean =>
  ["import", "package", "extension"].includes(origin) ||
  (origin === "project-file" && basename(file) !== ".mcp.json");

/** A server's state as `/mcp` and main show it. */
export function serverStatus(
  server: Pick<ServerLists, "definition" | "held" | "tools" | "resources" | "skills">,
  { phase, waits, connection, settings, reconnectMs, signIn }: StatusFacts,
): ServerStatus {
  const { definition, held } = server;
  const { name, lifecycle, file, origin, description } = definition;
  const { count: toolCount, wishes } = held ? listMark(held) : { count: 0, wishes: false };
  const made = madeTools(server);
  const skillCount = made.filter(
    ({ kind, tool }) => kind === "skill" && tool.name !== SKILL_BY_ADDRESS,
  ).length;
  const error = statusError(definition, phase, reconnectMs);
  const sharing = connection?.sharing?.();
  return {
    name,
    state: phase.name,
    lifecycle,
    transport: connection?.transport ?? transportOf(definition),
    source: file,
    ...(isForeign(origin, file) && { isForeign: true as const }),
    ...(description === undefined ? {} : { description }),
    toolCount,
    resourceCount: made.filter(({ kind }) => kind === "resource").length,
    ...(skillCount === 0 ? {} : { skillCount }),
    toolsKnown: held !== undefined,
    direct: mayBeDirect(definition, settings.directTools) || wishes,
    ...(connection?.protocol.version ? { protocol: connection.protocol.version } : {}),
    ...(error ? { error: toWireError(error) } : {}),
    ...(waits === undefined ? {} : { waits: oneLine(waits, LIMITS.waitsChars) }),
    ...(connection?.pid === undefined ? {} : { pid: connection.pid }),
    ...(definition.isOff ? { isOff: true } : {}),
    ...(sandboxOf(definition.sandbox) ? { isSandboxed: true } : {}),
    ...(sharing ? { sharing } : {}),
    ...(signIn === undefined ? {} : { signIn }),
  };
}

const KNOWN_SHOWN = 20;

/** Why a wish for a connection was refused. */
export type Refusal = Extract<ServerEffect, { type: "refuse" }>["reason"];

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));

/** Says why a wish for a connection was refused, and when or how it would be granted. */
export function refusal(
  { name, file, isOff }: ServerDefinition,
  phase: ServerPhase,
  reason: Refusal,
  nowMs: number,
): ThreadsError {
  if (reason === "disabled" && isOff) {
    return new ThreadsError("server_disabled", `${name} is switched off for this session.`, {
      remedy: `Only the user can switch it on: ${commandFor("on", name)}.`,
      data: { server: name },
    });
  }
  if (reason === "disabled") {
    return new ThreadsError("server_disabled", `${name} is disabled in ${file}.`, {
      remedy: `${commandFor("enable", name)} switches it on.`,
      data: { server: name },
    });
  }
  if (phase.name === "failed" && reason === "waiting-to-retry") {
    const waitS = seconds(phase.retryAtMs - nowMs);
    const { code, message, remedy } = phase.error;
    const again = `It is tried again in ${waitS} s; ${commandFor("reconnect", name)} tries now.`;
    return new ThreadsError(code, message, {
      remedy: remedy === undefined ? again : `${remedy} ${again}`,
      data: { ...phase.error.data, server: name, retryInMs: waitS * 1_000 },
    });
  }
  return new ThreadsError("server_died", `${name} is being closed.`, { data: { server: name } });
}

/**
 * The error that a status shows for a phase, if there is one. The error of a server that is dropped soon after each
 * connect says how often that was, and when the server is connected again.
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
    remedy: `It is connected again after ${seconds(retryInMs)} s; ${commandFor("reconnect", name)} tries now.`,
    data: { ...data, retryInMs },
  });
}

/** The connection was lost. `message`: one sentence on how it ended, without secrets. */
export const droppedError = (server: string, message: string): ThreadsError =>
  new ThreadsError("server_died", withName(server, message), { data: { server } });

export function unknownTool(server: string, tool: string, known: readonly CachedTool[] = []): ThreadsError {
  return new ThreadsError("unknown_tool", `${server} no longer offers a tool named ${tool}.`, {
    remedy: advice("search"),
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

/** The server has marked the tool for its own pages: see workers/shared/signs.ts. */
export const appOnlyTool = (server: string, tool: string): ThreadsError =>
  new ThreadsError(
    "tool_app_only",
    `${server} offers ${oneLine(tool, LIMITS.resourceTitleChars)} only to its own pages (MCP Apps), which are not shown here.`,
    { data: { server } },
  );

/** `uri`: of a page, by its address or by what a template makes. */
export const pageOfApp = (server: string, uri: string): ThreadsError =>
  new ThreadsError(
    "tool_app_only",
    `${oneLine(uri, LIMITS.resourceTitleChars)} of ${server} is a page of MCP Apps and no resource: pages are not shown here.`,
    { data: { server } },
  );

/** `why`: a sentence without its full stop. */
export const heldBackError = (server: string, why: string): ThreadsError =>
  new ThreadsError("server_died", `${server}: ${why}. The server is no longer connected by itself.`, {
    remedy: `A call of one of its tools or ${commandFor("reconnect", server)} connects it.`,
    data: { server, reason: "held-back" },
  });

/** The person has taken back the permission by which the server was to run, or runs still. */
export const takenBackError = (server: string): ThreadsError =>
  new ThreadsError("server_not_trusted", `${server} is not used: its permission was taken back.`, {
    remedy: "Only the user can allow it.",
    data: { server },
  });

/** Servers that may not run -> the reason, worded to follow a colon, and who alone can allow them. */
export type Withheld = ReadonlyMap<string, { reason: string; by: "user" | "administrator" }>;

/**
 * The error for a name that no server has: `server_not_trusted`, `server_removed` or `unknown_server`. `removed`: by an edit, in this session.
 */
export function noServer(
  name: string,
  known: readonly string[],
  { withheld, removed }: { withheld: Withheld; removed: ReadonlySet<string> },
): ThreadsError {
  const found = withheld.get(name);
  if (found) {
    return new ThreadsError("server_not_trusted", `${name} is not started: ${found.reason}.`, {
      remedy: `Only the ${found.by} can allow it.`,
      data: { server: name },
    });
  }
  if (removed.has(name)) {
    return new ThreadsError("server_removed", `The server ${name} was removed from the configuration.`, {
      remedy: advice("search"),
      data: { server: name, known: [...known] },
    });
  }
  return new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
    remedy: advice("lists"),
    data: { known: [...known] },
  });
}
