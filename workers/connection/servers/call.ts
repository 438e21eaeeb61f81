/**
 * One call of a server's tool, or of a tool that reads one of its resources or skills. Every call of every caller comes through
 * here, so that here the user's yes is asked for. Connects first if it must, and never repeats a call, because a call that
 * failed may have run.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { isAppOnly, isPage } from "../../shared/signs.ts";
import type { Yes } from "../approval/approval.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CallRequest, Connection } from "../mcp/connection.ts";
import { type CallToolResult, INVALID_PARAMS, METHOD_NOT_FOUND } from "../mcp/wire/wire.ts";
import type { ExpectedFile } from "../skills/check.ts";
import { prepareSkill, type SkillCall } from "../skills/load.ts";
import type { Server } from "./server.ts";
import { appOnlyTool, excludedTool, pageOfApp, unknownTool } from "./status.ts";

/** `callId`: what a question about the call names. `byPerson`: a person has asked for this skill, who needs no question. */
export type Asked = Omit<CallRequest, "timeoutMs"> & { callId: string; byPerson?: boolean };

/** A call that can be sent. */
interface Ready {
  connection: Connection;
  tool: CachedTool;
  /** What the call reads of a skill. */
  skill?: SkillCall;
  send(): Promise<CallToolResult>;
}

/** `file`: the result is this file of a skill, if it fits. */
export interface Called {
  result: CallToolResult;
  file?: ExpectedFile;
}

/**
 * Throws `ThreadsError`: `tool_excluded`, `tool_app_only`, `unknown_tool`, `not_approved`, or what the connection or the call
 * throws.
 * `onYes`: the user has let the call run, after a time that is not the server's.
 */
export function callTool(server: Server, asked: Asked, onYes?: () => void): Promise<Called> {
  return server.during(async () => {
    const { callId, args, signal, byPerson } = asked;
    const judged = ({ tool, skill }: Ready) => {
      const loads = skill && { of: skill.skill, byPerson: byPerson === true };
      return server.approvals.of({ callId, definition: server.definition, tool, args, signal, loads });
    };
    let yes: Yes | undefined;
    /** Nothing may wait between this and `send`. A yes for what was remembered counts for the server that is there, if it holds. */
    const allowed = async (): Promise<Ready> => {
      let now = await prepare(server, asked);
      if (!yes) {
        yes = await judged(now);
        if (!yes) return now;
        onYes?.();
        // A person takes time: the server may have ended or changed its tools, and an edit may have changed the rules.
        now = await prepare(server, asked);
      }
      yes.check({ definition: server.definition, tool: now.tool, skill: now.skill?.skill });
      return now;
    };
    const run = async (): Promise<Called> => {
      let ready = await allowed();
      const result = await server.orAgain(ready, async () => {
        // What the server has now may need a yes that what was remembered did not.
        ready = await allowed();
        return await ready.send();
      });
      return { result, ...(ready.skill?.file ? { file: ready.skill.file } : {}) };
    };
    return run().catch((error: unknown) => {
      // The call did not run: main may repeat it after a sign-in.
      if (error instanceof ThreadsError && error.code === "needs_auth") yes?.keep?.();
      throw error;
    });
  });
}

/** Connects, and finds the tool as the connected server describes it, or the skill with the file that is asked for. */
async function prepare(server: Server, asked: Asked): Promise<Ready> {
  const what = `${server.name}/${asked.tool}`;
  const connect = () => abortable(server.connect("call"), asked.signal, what);
  let connection = await connect();
  const request = { ...asked, tool: server.nameOf(asked.tool), timeoutMs: callTimeoutMs(server.definition) };
  if (server.excludes(request.tool)) throw excludedTool(server.definition, request.tool);
  const find = () => server.tools?.find((known) => known.name === request.tool);
  if (!find() && connection.isFromMemory()) {
    // The tool may be new, which only the server can say.
    server.doubt(connection, false);
    connection = await connect();
  }
  const tool = find();
  // Whoever calls, and however it learned the name: by a declaration of an earlier session, a cache, or a guess.
  if (tool && isAppOnly(tool)) throw appOnlyTool(server.name, tool.name);
  if (tool) return { connection, tool, send: () => called(server, () => connection.callTool(request)) };
  const loader = server.skillTool(request.tool);
  if (loader) {
    const skill = await prepareSkill(server, connection, loader, asked);
    const { file, text } = skill;
    const send = text ?? (() => connection.readResource({ ...request, uri: file?.uri ?? skill.skill.uri }));
    return { connection, tool: loader.tool, skill, send };
  }
  const uri = await server.uriOf(request);
  if (uri === undefined) throw unknownTool(server.name, request.tool, server.tools);
  // The arguments of a template decide what it makes.
  if (isPage(uri)) throw pageOfApp(server.name, uri);
  return {
    connection,
    // The tool is ours, and so is its hint: a resource is only read.
    tool: { name: request.tool, annotations: { readOnlyHint: true } },
    send: () => connection.readResource({ ...request, uri }),
  };
}

/**
 * The codes with which servers refuse a tool that they do not have: MCP 2025-11-25 (server/tools, "Error Handling") names the
 * first, and gateways answer the second. No words decide, and a server that answers a result in place of an error is not known.
 */
const UNKNOWN_TOOL: readonly unknown[] = [INVALID_PARAMS, METHOD_NOT_FOUND];

const maySayUnknown = ({ code, data }: ThreadsError): boolean =>
  code === "call_rejected" && UNKNOWN_TOOL.includes(data?.rpcCode) && !data?.begun;

/** Runs the call of a listed tool, and notes how long the server took. */
async function called<T>(server: Server, call: () => Promise<T>): Promise<T> {
  const { timings } = server;
  const startedAt = performance.now();
  try {
    const result = await call();
    timings.slowestCallMs = Math.max(timings.slowestCallMs, Math.round(performance.now() - startedAt));
    return result;
  } catch (error) {
    if (!(error instanceof ThreadsError)) throw error;
    if (error.code === "call_timeout") timings.lateCalls++;
    if (maySayUnknown(error)) server.doubtList();
    throw error;
  }
}

/** How long one call may go without an answer or progress, in milliseconds. */
export const callTimeoutMs = ({ requestTimeoutMs }: Pick<ServerDefinition, "requestTimeoutMs">): number =>
  requestTimeoutMs ?? LIMITS.requestTimeoutMs;
