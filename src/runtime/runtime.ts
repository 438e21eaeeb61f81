/**
 * The runtime of a session: keeps a worker alive, sends it requests, and ends the server processes that a worker leaves
 * behind. Loaded after Pi's first paint.
 */
import { dirname } from "node:path";
import { type CallResult, type CallToolParams, decode } from "../shared/protocol/calls.ts";
import type { ConnectionMethod, ConnectionMethods, WorkerEvent } from "../shared/protocol/contract.ts";
import { ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { Runtime, RuntimeOptions } from "./contract.ts";
import { createFiles, ownFiles, REMEMBER_MS, tellUpdate } from "./files.ts";
import { keepWorker, type RequestOptions } from "./keep-worker.ts";
import { createPidRegistry } from "./pids.ts";
import { createSuspicion } from "./suspicion.ts";
import { preparedWorker, startThread } from "./thread.ts";

export { prepareWorker } from "./thread.ts";

/** Above every limit of the worker's own, such as a server's start, npm's for its package, and the cap of a call. */
const SERVER_DEADLINE_MS = LIMITS.requestCapMs * 24;
/** Requests that connect a server. The worker ends each by the server's own limits; a worker that hangs is replaced. */
const CONNECTING: ReadonlySet<ConnectionMethod> = new Set([
  "callTool",
  "reconnect",
  "tryServer",
  "launchByHand",
  "getPrompt",
  "readResource",
]);

/** Milliseconds until main gives the request of a person up. */
export const deadlineOf = (method: ConnectionMethod): number =>
  CONNECTING.has(method) ? SERVER_DEADLINE_MS : LIMITS.startupTimeoutMs + LIMITS.rpcGraceMs;

/** Puts the call's name into an error of the runtime itself: requests do not know which call they carry. */
function nameCall({ server, tool }: CallToolParams, error: unknown): unknown {
  if (!(error instanceof ThreadsError)) return error;
  const { code, message, remedy } = error;
  const data = { server, ...error.data };
  const name = `${server}/${tool}`;
  switch (code) {
    case "cancelled":
      return new ThreadsError(code, `${name} was cancelled.`, { remedy, data });
    case "runtime_stopped":
      return new ThreadsError(code, `${name} was not called: ${message}`, { remedy, data });
    case "runtime_restarted":
    case "deadline":
      return new ThreadsError(code, `${name} got no answer: ${message}`, { remedy, data });
    default:
      return error;
  }
}

/** A command of the shell has mostly ended by then, and pays 20 ms of processor time less. */
const rememberMs = ({ commands }: RuntimeOptions): number => (commands === "shell" ? REMEMBER_MS : 0);

export function startRuntime(options: RuntimeOptions): Runtime {
  const pids = createPidRegistry();
  const files = options.workerUrl ? createFiles(options.workerUrl) : ownFiles;
  if (!options.hasRested) void tellUpdate(files, options.onEvent);
  const suspicion = createSuspicion();
  let first = true;
  let isStopped = false;
  let renewing = 0;

  const onEvent = (event: WorkerEvent): void => {
    if (event.type === "spawned") pids.add(event.pid);
    if (event.type === "exited") pids.remove(event.pid);
    if (event.type === "renewing") renewing = event.open;
    // A thread that did not end in time may still start a process, and nobody else would end it.
    if (isStopped && event.type === "spawned") pids.killAll();
    suspicion.see(event);
    options.onEvent(event);
  };

  const startOptions: RequestOptions = { deadlineMs: LIMITS.startupTimeoutMs, background: true };
  const worker = keepWorker({
    start: async () => {
      const prepared = first && !options.workerUrl ? await preparedWorker(options.logFile) : undefined;
      first = false;
      if (prepared) {
        suspicion.startWorker(prepared.talk);
        return prepared.use({ onEvent, onQuestion: options.onQuestion });
      }
      return startThread({
        logFile: options.logFile,
        commands: options.commands,
        onEvent,
        onQuestion: options.onQuestion,
        url: await files.locate(),
        locate: files.locate,
        talk: suspicion.startWorker(),
      });
    },
    onStart: (rpc) => {
      rpc
        .request("startSession", { ...options.facts(), ...suspicion.facts() }, startOptions)
        .then(() => files.remember(dirname(options.logFile), rememberMs(options)), options.onStartFailed)
        // Without the copy, only a worker that crashes after its package was deleted cannot be started again.
        .catch((error: Error) => post("log", { level: "warn", message: `worker files: ${error.message}` }));
    },
    onGone: () => {
      renewing = 0;
      pids.killAll();
    },
    blame: suspicion.blame,
    onCrash: options.onCrash,
    ...(options.limits ? { limits: options.limits } : {}),
  });

  const request = async <M extends ConnectionMethod>(
    method: M,
    params: ConnectionMethods[M]["params"],
    requestOptions: RequestOptions,
  ): Promise<ConnectionMethods[M]["value"]> => {
    const rpc = await worker.ready(requestOptions.signal);
    return rpc.request(method, params, requestOptions);
  };
  const short: RequestOptions = { deadlineMs: LIMITS.rpcShortMs };
  /** The answer is not needed, nor an error: without a worker there is nothing to do. */
  const post = <M extends ConnectionMethod>(method: M, params: ConnectionMethods[M]["params"]): void => {
    request(method, params, { ...short, background: true }).catch(() => undefined);
  };

  return {
    callTool: async (params, signal) => {
      try {
        const bytes = await request("callTool", params, { deadlineMs: SERVER_DEADLINE_MS, signal });
        return decode(bytes) as CallResult;
      } catch (error) {
        throw nameCall(params, error);
      }
    },
    settleTools: (params, signal) =>
      request("settleTools", params, { deadlineMs: params.timeoutMs + LIMITS.rpcGraceMs, signal }),
    ask: (method, params, signal) => request(method, params, { deadlineMs: deadlineOf(method), signal }),
    post,
    log: (level, message) => post("log", { level, message }),
    isBehind: async () => false,
    stop: async () => {
      await worker.stop(async (rpc) => {
        // A worker that does not finish in time is ended, and `killAll` below ends the processes that it leaves running.
        const deadlineMs = LIMITS.shutdownMs + (renewing > 0 ? LIMITS.renewalEndMs : 0);
        await rpc.request("shutdown", {}, { deadlineMs }).catch(() => undefined);
      });
      isStopped = true;
      try {
        pids.killAll();
      } catch {
        // Nothing can be done about a failure, and a rejection here would end Pi.
      }
      pids.dispose();
    },
  };
}
