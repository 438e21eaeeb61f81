import { createTalkMemory } from "../shared/protocol/port.ts";
import { type RuntimeThread, startThread } from "./thread.ts";
import { connectionWorkerUrl } from "./worker-files.ts";

/** A session begins a moment after the factory. Without a session the thread ends. */
const UNUSED_MS = 30_000;

type ThreadListener = Pick<Parameters<typeof startThread>[0], "onEvent" | "onQuestion">;

export interface PreparedWorker {
  logFile: string;
  /** The memory that the worker writes into. */
  talk: SharedArrayBuffer;
  /** The thread, whose events and questions go there from now on. There are none before `startSession`. */
  use(to: ThreadListener): RuntimeThread;
}

let prepared: PreparedWorker | undefined;

/** Starts the worker that the next runtime with this log file takes. */
export function prepareWorker(logFile: string): void {
  if (prepared) return;
  const talk = createTalkMemory();
  let listener: ThreadListener | undefined;
  const thread = startThread({
    logFile,
    onEvent: (event) => listener?.onEvent(event),
    onQuestion: async (question, signal) => listener?.onQuestion?.(question, signal),
    url: connectionWorkerUrl(),
    talk,
  });
  const unused = setTimeout(() => {
    prepared = undefined;
    thread.terminate().catch(() => undefined);
  }, UNUSED_MS);
  unused.unref();
  prepared = {
    logFile,
    talk,
    use: (to) => {
      clearTimeout(unused);
      prepared = undefined;
      listener = to;
      return thread;
    },
  };
}

export const preparedWorker = (logFile: string): PreparedWorker | undefined =>
  prepared?.logFile === logFile ? prepared : undefined;
