/** The runtime of a session, which is loaded late: what is asked before waits until it is there. */
import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { type Runtime, type RuntimeOptions, STOPPED } from "./contract.ts";

export function startRuntimeLater(options: RuntimeOptions): Runtime {
  let isStopped = false;
  // Loaded at once: Pi is busy after `session_start`, and a later import would delay the worker by that time.
  const started = import("./runtime.ts").then(({ startRuntime }) =>
    isStopped ? undefined : startRuntime(options),
  );
  started.catch((error: unknown) =>
    options.onStartFailed(error instanceof Error ? error : new Error(messageOf(error))),
  );
  const ready = async (): Promise<Runtime> => {
    const runtime = await started;
    if (runtime) return runtime;
    throw new ThreadsError("runtime_stopped", STOPPED);
  };
  /** Runs the task if the runtime starts; `onStartFailed` reports why it does not. */
  const quietly = (task: (runtime: Runtime) => void): void => {
    started.then((runtime) => runtime && task(runtime)).catch(() => undefined);
  };
  return {
    callTool: async (params, signal) => (await ready()).callTool(params, signal),
    settleTools: async (params, signal) => (await ready()).settleTools(params, signal),
    ask: async (method, params, signal) => (await ready()).ask(method, params, signal),
    post: (method, params) => quietly((runtime) => runtime.post(method, params)),
    log: (level, message) => quietly((runtime) => runtime.log(level, message)),
    stop: async () => {
      isStopped = true;
      const runtime = await started.catch(() => undefined);
      await runtime?.stop();
    },
  };
}

/** Starts the worker of the session that follows. A failure is reported when the session starts its runtime. */
export function prepareRuntime(logFile: string): void {
  import("./thread.ts").then(({ prepareWorker }) => prepareWorker(logFile)).catch(() => undefined);
}
