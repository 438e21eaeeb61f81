/**
 * Everything that one session runs off the main thread, behind a handful of calls: thread, requests and
 * the processes that must not outlive it.
 */
import type { LogLevel } from "../protocol/api.ts";
import { decode } from "../protocol/codec.ts";
import { LIMITS } from "../protocol/limits.ts";
import type {
  CallResult,
  CallToolParams,
  SessionFacts,
  StatusReport,
  WorkerEvent,
} from "../protocol/types.ts";
import { createPidRegistry } from "./pids.ts";
import { createRpc } from "./rpc.ts";
import { startThread } from "./thread.ts";

export interface Runtime {
  startSession(facts: SessionFacts): Promise<void>;
  callTool(params: CallToolParams, signal: AbortSignal | undefined): Promise<CallResult>;
  settleTools(
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<{ pending: string[]; checksum: number | undefined }>;
  status(): Promise<StatusReport>;
  log(level: LogLevel, message: string): void;
  /** Closes all servers and ends the thread; within `LIMITS.shutdownMs` and a kill. */
  stop(): Promise<void>;
}

/** Beyond any limit of the worker's own: a server's start, a call, renewals by progress. */
const CALL_DEADLINE_MS = 24 * 60 * 60 * 1_000;

export function startRuntime(options: {
  logFile: string;
  onEvent: (event: WorkerEvent) => void;
  /** The worker ended without being asked to. */
  onCrash: (reason: string) => void;
}): Runtime {
  const pids = createPidRegistry();
  let stopping = false;
  const thread = startThread({
    logFile: options.logFile,
    onEvent: (event) => {
      if (event.type === "spawned") pids.add(event.pid);
      if (event.type === "exited") pids.remove(event.pid);
      options.onEvent(event);
    },
  });
  const rpc = createRpc(thread);
  thread.exited.then(({ exitCode, reason }) => {
    pids.killAll();
    pids.dispose();
    if (!stopping) options.onCrash(reason ?? `exit code ${exitCode}`);
  });
  const short = { deadlineMs: LIMITS.rpcShortMs };

  return {
    startSession: (facts) => rpc.request("startSession", facts, { deadlineMs: LIMITS.startupTimeoutMs }),
    callTool: async (params, signal) =>
      decode(await rpc.request("callTool", params, { deadlineMs: CALL_DEADLINE_MS, signal })) as CallResult,
    settleTools: (timeoutMs, signal) =>
      rpc.request("settleTools", { timeoutMs }, { deadlineMs: timeoutMs + LIMITS.rpcGraceMs, signal }),
    status: () => rpc.request("status", {}, short),
    log: (level, message) => {
      // The log is a courtesy: without a worker there is nobody to write it.
      rpc.request("log", { level, message }, short).catch(() => undefined);
    },
    stop: async () => {
      stopping = true;
      // A worker that does not finish in time is ended; what it leaves running is killed by its exit.
      await rpc.request("shutdown", {}, { deadlineMs: LIMITS.shutdownMs }).catch(() => undefined);
      await thread.terminate();
      await thread.exited;
    },
  };
}
