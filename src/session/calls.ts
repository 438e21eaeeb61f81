/**
 * Calls that are open: forwards them to the worker and brings their progress back. A tool of ours that calls
 * others for the model says so, since only scripts read the server's own result.
 */

import type { Runtime } from "../runtime/runtime.ts";
import type { CallResult } from "../shared/protocol/calls.ts";
import type { WorkerEvent } from "../shared/protocol/events.ts";
import type { CallTool, ToolCall } from "../tools/definition/definition.ts";

export interface SessionCalls {
  call: CallTool;
  onProgress(event: Extract<WorkerEvent, { type: "progress" }>): void;
  /** While the task runs, what the calling tool with this id calls is for the model, not for a script. */
  forModel<T>(callId: string, task: () => Promise<T>): Promise<T>;
}

/** `now`: throws where the session is over. */
export function createSessionCalls(now: () => { runtime: Runtime; generation: number }): SessionCalls {
  const progress = new Map<string, ToolCall["onProgress"]>();
  const forModel = new Set<string>();
  return {
    call: async ({ signal, onProgress, ...request }): Promise<CallResult> => {
      const { runtime, generation } = now();
      const { callId } = request;
      const wantsStructured = request.wantsStructured && !forModel.has(callId.replace(/\/\d+$/, ""));
      progress.set(callId, onProgress);
      try {
        return await runtime.callTool({ generation, ...request, wantsStructured }, signal);
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
  };
}
