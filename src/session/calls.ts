/**
 * The calls that are open: sends them to the worker and hands their progress on. Scripts read the server's own result,
 * every character of it, and the model reads what they print, which is cleaned;
 * our proxy tool calls tools for the model, and its nested calls get the result that is shaped for the model.
 */

import type { FinishedMessage } from "../pi/api.ts";
import type { ResultContent } from "../shared/protocol/calls.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";
import type { LoadedSkills } from "../skills/skills.ts";
import type { CallTool, ToldResult, ToolCall } from "../tools/definition.ts";
import type { Instructions } from "../tools/told.ts";
import type { Running } from "./running.ts";

export interface SessionCalls {
  /** Rejects with `runtime_stopped` when no session runs. */
  call: CallTool;
  onProgress(event: Extract<WorkerEvent, { type: "progress" }>): void;
  /** While the task runs, the nested calls of the tool call `callId` get results for the model, not for a script. */
  forModel<T>(callId: string, task: () => Promise<T>): Promise<T>;
  /** For `message_end`: what a script printed that called tools, cleaned; undefined to leave the message as it is. */
  cleanScript<M extends FinishedMessage>(message: M): Promise<M | undefined> | undefined;
}

/** Pi gives a nested call the id `<id of the calling call>/<n>`. */
const callerOf = (callId: string): string => callId.replace(/\/\d+$/, "");

/** `runningOrThrow`: throws `runtime_stopped` when no session runs. */
export function createSessionCalls(
  runningOrThrow: () => Pick<Running, "runtime" | "settings" | "signIns" | "called">,
  {
    instructions,
    skills,
  }: { instructions: Pick<Instructions, "tell">; skills: Pick<LoadedSkills, "loaded"> },
): SessionCalls {
  const progress = new Map<string, ToolCall["onProgress"]>();
  const forModel = new Set<string>();
  /** Ids of the calls whose scripts got results as the servers sent them. */
  const scripts = new Set<string>();
  return {
    call: async ({ signal, onProgress, branch, ...request }): Promise<ToldResult> => {
      const session = runningOrThrow();
      const { runtime } = session;
      const { callId, server } = request;
      const wantsStructured = request.wantsStructured && !forModel.has(callerOf(callId));
      const send = async (): Promise<ToldResult> => {
        const result = await runtime.callTool({ ...request, wantsStructured }, signal);
        if (result.skill) skills.loaded(result.skill);
        if (wantsStructured) return result;
        return { ...result, instructions: await instructions.tell([server], branch) };
      };
      session.called.add(server);
      if (wantsStructured) scripts.add(callerOf(callId));
      progress.set(callId, onProgress);
      try {
        return await send();
      } catch (error) {
        const { settings, signIns } = session;
        if (!settings?.autoAuth || !(await signIns.forCall(server, error, signal))) throw error;
        // The server refused the call before it ran, so the call may be sent again: a call that has begun has another code.
        return await send();
      } finally {
        progress.delete(callId);
      }
    },
    onProgress: (event) => progress.get(event.callId)?.(event.message, event),
    forModel: async (callId, task) => {
      forModel.add(callId);
      try {
        return await task();
      } finally {
        forModel.delete(callId);
      }
    },
    cleanScript: (message) => {
      const { toolCallId, content } = message;
      if (toolCallId === undefined || !scripts.delete(toolCallId) || !Array.isArray(content))
        return undefined;
      return import("./late.ts")
        .then(({ cleanPrinted }) => cleanPrinted(content as ResultContent[]))
        .then((clean) => clean && { ...message, content: clean });
    },
  };
}
