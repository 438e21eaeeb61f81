/**
 * The connection worker as a thread: starts it, also before a session needs it, passes its events on, and reports its end.
 * Knows nothing about the content of messages. The thread keeps Pi alive only while a request is open.
 */
import * as nodeModule from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { expose, type Remote, wrap } from "comlink";
import manifest from "../../package.json" with { type: "json" };
import type { ConnectionApi, MainApi, Question, WorkerEvent } from "../shared/protocol/contract.ts";
import { messageOf } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import {
  createTalkMemory,
  createTurnEndpoint,
  eventOf,
  type Port,
  type WorkerBoot,
} from "../shared/protocol/port.ts";
import { ownFiles, userCodeFolder } from "./files.ts";

/** Asks the person until the signal aborts. Answers undefined if nobody answers. */
export type OnQuestion = (question: Question, signal: AbortSignal) => Promise<unknown>;

export interface RuntimeThread {
  api: Remote<ConnectionApi>;
  /** Resolves when the thread has ended, after all of its events. Does not reject. */
  exited: Promise<ThreadEnd>;
  /** While held, the thread keeps the process alive. */
  hold(): void;
  release(): void;
  /** Nobody waits for the worker's questions any more. */
  dismiss(): void;
  /** Settles when the thread has ended. A thread in native code cannot be interrupted and ends later. */
  terminate(): Promise<void>;
}

export interface ThreadEnd {
  exitCode: number;
  /** The error that ended the thread, if one did. */
  reason: string | undefined;
  /** The thread reached the limit of its heap. */
  outOfMemory?: true;
}

/**
 * The folder of the worker's compiled code, which saves a third of its start: a worker does not inherit the cache of its
 * process. Pi's own folder is not used, since it lies in the temp folder. Undefined if the worker gets a folder from the
 * environment, or if Pi uses no cache (Bun has none), or if the folder would not be the user's alone.
 */
function compileCacheFolder(agentDir: string): string | undefined {
  if (process.env.NODE_COMPILE_CACHE !== undefined || nodeModule.getCompileCacheDir?.() === undefined) {
    return undefined;
  }
  return userCodeFolder(agentDir);
}

/** What each thread does at the end of Pi. One listener for all: Node warns a program with more than ten sessions. */
const readAtExit = new Set<() => void>();
const readAll = (): void => {
  for (const read of readAtExit) read();
};

export function startThread(options: {
  logFile: string;
  /** Absent: `pi`. */
  commands?: WorkerBoot["commands"] | undefined;
  onEvent: (event: WorkerEvent) => void;
  /** Asks the person. Absent: there is none. */
  onQuestion?: OnQuestion | undefined;
  url: URL;
  /** Answers where the file of that URL is now. Absent: it stays. */
  locate?: (() => Promise<URL>) | undefined;
  /** The memory that the worker writes into (protocol/port.ts). */
  talk?: SharedArrayBuffer;
}): RuntimeThread {
  // A port of its own: at the end of Pi, messages can be taken from it by hand.
  const { port1: port, port2 } = new MessageChannel();
  const talk = options.talk ?? createTalkMemory();
  const { logFile, commands = "pi" } = options;
  const compileCache = compileCacheFolder(dirname(logFile));
  const { version } = manifest;
  const boot = { version, port: port2 as Port, logFile, commands, compileCache, talk } satisfies WorkerBoot;
  const worker = new Worker(options.url, {
    name: "pi-mcp-threads connection",
    workerData: boot,
    // Must be set here: the worker's own code runs after its file has been compiled.
    ...(compileCache && { env: { ...process.env, NODE_COMPILE_CACHE: compileCache } }),
    transferList: [port2],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: LIMITS.workerHeapMebibytes },
  });
  // The worker writes its own output to the log file. Other output must not reach the terminal, and reading it, even to
  // drop it, would keep the process alive for ever.
  worker.stdout.destroy();
  worker.stderr.destroy();

  let reason: string | undefined;
  let outOfMemory = false;
  // Without this listener an error in the worker would end Pi.
  worker.on("error", (error) => {
    reason = messageOf(error);
    outOfMemory = (error as NodeJS.ErrnoException | null)?.code === "ERR_WORKER_OUT_OF_MEMORY";
  });
  const endpoint = createTurnEndpoint(port as Port, options.onEvent);
  const api = wrap<ConnectionApi>(endpoint);
  const asked = new Map<number, AbortController>();
  const dismiss = (): void => {
    for (const controller of asked.values()) controller.abort();
  };
  const main: MainApi = {
    ask: async (id, question) => {
      const controller = new AbortController();
      asked.set(id, controller);
      try {
        return await options.onQuestion?.(question, controller.signal);
      } finally {
        asked.delete(id);
      }
    },
    withdraw: (id) => asked.get(id)?.abort(),
    workerFolder: async () => dirname(fileURLToPath((await options.locate?.()) ?? options.url)),
  };
  expose(main, endpoint);
  worker.unref();
  port.unref();
  const unread = (): unknown => receiveMessageOnPort(port)?.message;
  // At the end of Pi main kills the processes that it knows of: the last one may not have been read yet.
  const onExit = (): void => {
    for (let message = unread(); message; message = unread()) {
      const event = eventOf(message);
      if (event?.type === "spawned") options.onEvent(event);
    }
  };
  // Before the listener that kills.
  if (readAtExit.add(onExit).size === 1) process.prependListener("exit", readAll);

  let holders = 0;
  let terminating: Promise<unknown> | undefined;
  return {
    api,
    exited: new Promise((resolve) => {
      worker.once("exit", (exitCode) => {
        // Closing drops what is unread, and the process that was started last would be forgotten.
        for (let message = unread(); message; message = unread()) endpoint.receive(message);
        if (readAtExit.delete(onExit) && readAtExit.size === 0) process.off("exit", readAll);
        port.close();
        dismiss();
        resolve({ exitCode, reason, ...(outOfMemory ? { outOfMemory: true as const } : {}) });
      });
    }),
    hold: () => {
      if (holders++ === 0) worker.ref();
    },
    release: () => {
      if (--holders === 0) worker.unref();
    },
    dismiss,
    terminate: async () => {
      // Each call of Node's `terminate` adds a listener until the thread has ended.
      terminating ??= worker.terminate();
      await terminating;
    },
  };
}

/** A session begins a moment after the factory. Without a session the thread ends. */
const UNUSED_MS = 30_000;

type ThreadListener = Pick<Parameters<typeof startThread>[0], "onEvent" | "onQuestion">;

interface PreparedWorker {
  /** The memory that the worker writes into. */
  talk: SharedArrayBuffer;
  /** The thread, whose events and questions go there from now on. There are none before `startSession`. */
  use(to: ThreadListener): RuntimeThread;
}

let prepared: { logFile: string; worker: Promise<PreparedWorker> } | undefined;

async function startUnused(logFile: string): Promise<PreparedWorker> {
  const talk = createTalkMemory();
  let listener: ThreadListener | undefined;
  const thread = startThread({
    logFile,
    onEvent: (event) => listener?.onEvent(event),
    onQuestion: async (question, signal) => listener?.onQuestion?.(question, signal),
    url: await ownFiles.locate(),
    locate: ownFiles.locate,
    talk,
  });
  const unused = setTimeout(() => {
    prepared = undefined;
    thread.terminate().catch(() => undefined);
  }, UNUSED_MS);
  unused.unref();
  return {
    talk,
    use: (to) => {
      clearTimeout(unused);
      listener = to;
      return thread;
    },
  };
}

/** Starts the worker that the next runtime with this log file takes. */
export function prepareWorker(logFile: string): void {
  if (prepared) return;
  const worker = startUnused(logFile);
  // The runtime starts one of its own, and says why it cannot.
  worker.catch(() => {
    prepared = undefined;
  });
  prepared = { logFile, worker };
}

/** The worker that was prepared, which is the caller's from now on. */
export async function preparedWorker(logFile: string): Promise<PreparedWorker | undefined> {
  if (prepared?.logFile !== logFile) return undefined;
  const { worker } = prepared;
  prepared = undefined;
  return worker.catch(() => undefined);
}
