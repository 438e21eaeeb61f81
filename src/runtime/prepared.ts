/**
 * The first worker of the process, started before the session whose facts it waits for. The thread starts on another
 * processor while Pi does, which saves the first request that time if the request has to wait for the worker.
 */
import type { WorkerEvent } from "../shared/protocol/events.ts";
import { createTalkMemory } from "../shared/protocol/talk.ts";
import { type RuntimeThread, startThread } from "./thread.ts";
import { connectionWorkerUrl } from "./worker-files.ts";

/** A session begins a moment after the factory. Without a session the thread ends. */
const UNUSED_MS = 30_000;

export interface PreparedWorker {
  logFile: string;
  /** The memory that the worker writes into. */
  talk: SharedArrayBuffer;
  /** The thread, whose events go to `onEvent` from now on. There are none before `startSession`. */
  use(onEvent: (event: WorkerEvent) => void): RuntimeThread;
}

let prepared: PreparedWorker | undefined;

/** Starts the worker that the next runtime with this log file takes. */
export function prepareWorker(logFile: string): void {
  if (prepared) return;
  const talk = createTalkMemory();
  let listener: (event: WorkerEvent) => void = () => undefined;
  const onEvent = (event: WorkerEvent): void => listener(event);
  const thread = startThread({ logFile, onEvent, url: connectionWorkerUrl(), talk });
  const unused = setTimeout(() => {
    prepared = undefined;
    thread.terminate().catch(() => undefined);
  }, UNUSED_MS);
  unused.unref();
  prepared = {
    logFile,
    talk,
    use: (onWorkerEvent) => {
      clearTimeout(unused);
      prepared = undefined;
      listener = onWorkerEvent;
      return thread;
    },
  };
}

export const preparedWorker = (logFile: string): PreparedWorker | undefined =>
  prepared?.logFile === logFile ? prepared : undefined;
