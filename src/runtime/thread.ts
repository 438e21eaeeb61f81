/**
 * The connection worker as a thread: starts it, also before a session needs it, passes its events on, and reports its end. Owns
 * the files of the worker's code, too: an update of the package may delete them while Pi runs. Knows nothing about the
 * content of messages. The thread keeps Pi alive only while a request is open.
 */
import * as fs from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import * as nodeModule from "node:module";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { expose, type Remote, wrap } from "comlink";
import { codeFolder } from "../shared/process/code-folder.ts";
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
  return codeFolder(agentDir, { fs, path: { dirname, isAbsolute, join }, uid: process.getuid?.() });
}

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
  const boot = { port: port2 as Port, logFile, commands, compileCache, talk } satisfies WorkerBoot;
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
  process.prependListener("exit", onExit);

  let holders = 0;
  let terminating: Promise<unknown> | undefined;
  return {
    api,
    exited: new Promise((resolve) => {
      worker.once("exit", (exitCode) => {
        // Closing drops what is unread, and the process that was started last would be forgotten.
        for (let message = unread(); message; message = unread()) endpoint.receive(message);
        process.off("exit", onExit);
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

type ThreadListener = Pick<Parameters<typeof startThread>[0], "onEvent" | "onQuestion" | "locate">;

interface PreparedWorker {
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
  const url = connectionWorkerUrl();
  const thread = startThread({
    logFile,
    onEvent: (event) => listener?.onEvent(event),
    onQuestion: async (question, signal) => listener?.onQuestion?.(question, signal),
    url,
    locate: async () => (await listener?.locate?.()) ?? url,
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

/** Raw TypeScript in a checkout, one bundled file beside the packed entry. */
export function connectionWorkerUrl(here = import.meta.url): URL {
  return here.endsWith(".ts")
    ? new URL("../../workers/connection.ts", here)
    : new URL("./workers/connection.js", here);
}

export type WorkerFiles = ReturnType<typeof createWorkerFiles>;

export function createWorkerFiles(url: URL) {
  const path = fileURLToPath(url);
  let kept = new Map<string, Buffer>();
  let copy: URL | undefined;
  let locating: Promise<URL> | undefined;
  const isThere = ([name, code]: [string, Buffer]): Promise<boolean> =>
    readFile(join(dirname(path), name)).then(
      (found) => found.equals(code),
      () => false,
    );
  const find = async (): Promise<URL> => {
    if (copy) return copy;
    // An update leaves files of the same names, which do not fit this version of main or each other.
    const found = await Promise.all([...kept].map(isThere));
    if (found.every(Boolean)) return url;
    const folder = await mkdtemp(join(tmpdir(), "pi-mcp-threads-"));
    for (const [name, code] of kept) await writeFile(join(folder, name), code);
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    copy = pathToFileURL(join(folder, "connection.js"));
    return copy;
  };
  return {
    url,
    /** Keeps the packed files in memory. Does nothing in a checkout, which nobody deletes while Pi runs. */
    remember: async (): Promise<void> => {
      if (path.endsWith(".ts") || kept.size > 0) return;
      const folder = dirname(path);
      const names = (await readdir(folder)).filter((name) => name.endsWith(".js"));
      const read = await Promise.all(names.map((name) => readFile(join(folder, name))));
      // All files or none: a worker with a part of its files fails later and less clearly.
      kept = new Map(names.map((name, i) => [name, read[i] ?? Buffer.alloc(0)]));
    },
    /** The URL to start the worker from; after an update, the URL of the copy. Whoever asks meanwhile gets the same copy. */
    locate: (): Promise<URL> => {
      locating ??= find().finally(() => {
        locating = undefined;
      });
      return locating;
    },
    /** Removes the copy, if one was made. Does not fail. */
    dispose: async (): Promise<void> => {
      await locating?.catch(() => undefined);
      if (!copy) return;
      // The system cleans its temp folder if the removal fails here.
      await rm(dirname(fileURLToPath(copy)), { recursive: true, force: true }).catch(() => undefined);
      copy = undefined;
    },
  };
}
