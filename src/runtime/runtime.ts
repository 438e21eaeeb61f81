/**
 * The runtime of a session from its first moment on: it is loaded and started in the background, and whoever calls
 * it waits for that. One that is stopped before it has started never starts.
 */
import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import type { Runtime, RuntimeOptions } from "./contract.ts";

export type { Crash, Runtime, RuntimeOptions } from "./contract.ts";

export function startRuntimeLater(options: RuntimeOptions): Runtime {
  let isStopped = false;
  // At once: what Pi does after `session_start` keeps its thread busy, and the worker would start that much later.
  const started = import("./run.ts").then(({ startRuntime }) =>
    isStopped ? undefined : startRuntime(options),
  );
  started.catch((error: unknown) =>
    options.onStartFailed(error instanceof Error ? error : new Error(messageOf(error))),
  );
  const ready = async (): Promise<Runtime> => {
    const runtime = await started;
    if (runtime) return runtime;
    throw new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped.");
  };
  /** For what nobody waits for; why it did not start has been told. */
  const quietly = (task: (runtime: Runtime) => void): void => {
    started.then((runtime) => runtime && task(runtime)).catch(() => undefined);
  };
  return {
    callTool: async (params, signal) => (await ready()).callTool(params, signal),
    settleTools: async (params, signal) => (await ready()).settleTools(params, signal),
    ask: async (method, params) => (await ready()).ask(method, params),
    tell: (method, params) => quietly((runtime) => runtime.tell(method, params)),
    log: (level, message) => quietly((runtime) => runtime.log(level, message)),
    stop: async () => {
      isStopped = true;
      const runtime = await started.catch(() => undefined);
      await runtime?.stop();
    },
  };
}
