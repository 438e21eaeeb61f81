/** The runtime of a session, which is loaded late, and whose worker starts when it is needed: what is asked before waits. */
import type { ConnectionMethod } from "../shared/protocol/contract.ts";
import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { type Resting, type Runtime, type RuntimeOptions, STOPPED } from "./contract.ts";

/** What a worker that does not run need not be told. */
const OF_WORKER: readonly ConnectionMethod[] = ["firstRequest", "turnEnded"];

export function startRuntimeLater(options: RuntimeOptions): Runtime {
  let isStopped = false;
  let isAsked = false;
  const asked = Promise.withResolvers<void>();
  let resting: Resting | undefined;
  /** The worker that an edit has started has not read it yet. */
  let isUnread = false;
  const isBehind = async (): Promise<boolean> => (isUnread ||= Boolean(await resting?.isEdited()));
  /** What the model wrote at the session's end, nobody has agreed to: a worker reads and remembers that, and no more. */
  const isNeedless = async (): Promise<boolean> => isStopped && !(await isBehind());
  const start = async (): Promise<Runtime | undefined> => {
    resting = await options.rest?.(asked.promise);
    await resting?.over;
    isAsked = true;
    if (await isNeedless()) return undefined;
    // Loaded at once: Pi is busy after `session_start`, and a later import would delay the worker by that time.
    const [{ startRuntime }] = await Promise.all([import("./runtime.ts"), isBehind()]);
    if (await isNeedless()) return undefined;
    const isUnseen = isStopped;
    // Of the worker that follows a crash nobody wants to hear again what has changed since the rest.
    const rested = resting?.traces;
    let since = rested === undefined ? undefined : { rested };
    const facts: RuntimeOptions["facts"] = () => {
      const all = { ...options.facts(), ...since, ...(isUnseen && { onDemand: true }) };
      since = undefined;
      return all;
    };
    const runtime = startRuntime({ ...options, hasRested: rested !== undefined, facts });
    resting = undefined;
    if (isUnseen)
      await runtime.ask("status", {}, AbortSignal.timeout(LIMITS.shutdownMs)).catch(() => undefined);
    return runtime;
  };
  const started = start();
  started.catch((error: unknown) =>
    options.onStartFailed(error instanceof Error ? error : new Error(messageOf(error))),
  );
  const wake = (): void => {
    isAsked = true;
    asked.resolve();
  };
  const ready = async (): Promise<Runtime> => {
    wake();
    const runtime = await started;
    if (runtime && !isStopped) return runtime;
    throw new ThreadsError("runtime_stopped", STOPPED);
  };
  /** Runs the task if the runtime starts; `onStartFailed` reports why it does not. */
  const quietly = (task: (runtime: Runtime) => void): void => {
    started.then((runtime) => runtime && task(runtime)).catch(() => undefined);
  };
  return {
    callTool: async (params, signal) => (await ready()).callTool(params, signal),
    settleTools: async (params, signal) => {
      const learning = await (await ready()).settleTools(params, signal);
      isUnread = false;
      return learning;
    },
    ask: async (method, params, signal) => (await ready()).ask(method, params, signal),
    post: (method, params) => {
      if (!OF_WORKER.includes(method)) wake();
      // A `ping` only wakes. A worker that starts while the first request is prepared leaves the processor to it.
      if (method === "firstRequest" || (isAsked && method !== "ping"))
        quietly((runtime) => runtime.post(method, params));
    },
    log: (level, message) => quietly((runtime) => runtime.log(level, message)),
    isBehind,
    stop: async () => {
      isStopped = true;
      wake();
      const runtime = await started.catch(() => undefined);
      await runtime?.stop();
    },
  };
}

/** Starts the worker of the session that follows. A failure is reported when the session starts its runtime. */
export function prepareRuntime(logFile: string): void {
  import("./thread.ts").then(({ prepareWorker }) => prepareWorker(logFile)).catch(() => undefined);
}
