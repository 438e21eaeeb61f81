/**
 * The connection worker as a thread: spawns it, passes its events on, and tells when it is gone. Knows
 * nothing of what is said to it. The thread never keeps Pi alive except while a request is open.
 */
import * as nodeModule from "node:module";
import { dirname } from "node:path";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { type Remote, wrap } from "comlink";
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import type { ConnectionApi } from "../shared/protocol/api.ts";
import type { WorkerBoot } from "../shared/protocol/boot.ts";
import { messageOf } from "../shared/protocol/errors.ts";
import type { WorkerEvent } from "../shared/protocol/events.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { createTalkMemory } from "../shared/protocol/talk.ts";

export interface RuntimeThread {
  api: Remote<ConnectionApi>;
  /** Settles with the exit code and, where it crashed, with why. Never rejects; all of its events have come by then. */
  exited: Promise<ThreadEnd>;
  /** While held, the thread keeps the process alive. */
  hold(): void;
  release(): void;
  /** Settles when the thread has ended. One in native code, which cannot be interrupted, ends after that. */
  terminate(): Promise<void>;
}

export interface ThreadEnd {
  exitCode: number;
  reason: string | undefined;
  /** It reached the limit of its heap. */
  outOfMemory?: true;
}

/**
 * Folder of the compile cache that the host uses, for a worker, which does not inherit it: it saves the worker
 * a third of its start. Undefined where the worker has it from the environment, or the host has none (Bun knows
 * no such cache).
 */
function compileCacheFolder(): string | undefined {
  if (process.env.NODE_COMPILE_CACHE !== undefined) return undefined;
  const folder = nodeModule.getCompileCacheDir?.();
  // Below the folder that is asked for, there is one for each version of Node.
  return folder && dirname(folder);
}

export function startThread(options: {
  logFile: string;
  onEvent: (event: WorkerEvent) => void;
  url: URL;
  /** For the worker to write into (protocol/talk.ts). */
  talk?: SharedArrayBuffer;
}): RuntimeThread {
  const { port1: events, port2 } = new MessageChannel();
  const compileCache = compileCacheFolder();
  const talk = options.talk ?? createTalkMemory();
  const boot = { events: port2, logFile: options.logFile, compileCache, talk } satisfies WorkerBoot;
  const worker = new Worker(options.url, {
    name: "pi-mcp-threads connection",
    workerData: boot,
    // Only so is it there before the worker's own file is compiled.
    ...(compileCache && { env: { ...process.env, NODE_COMPILE_CACHE: compileCache } }),
    transferList: [port2],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: LIMITS.workerHeapMebibytes },
  });
  // The worker writes its own output to the log file. What still gets here must not reach the terminal, and
  // reading it, even to throw it away, would keep the process alive for ever.
  worker.stdout.destroy();
  worker.stderr.destroy();

  let reason: string | undefined;
  let outOfMemory = false;
  // Without this listener an error in the worker would end Pi.
  worker.on("error", (error) => {
    reason = messageOf(error);
    outOfMemory = (error as NodeJS.ErrnoException | null)?.code === "ERR_WORKER_OUT_OF_MEMORY";
  });
  events.on("message", (event: WorkerEvent) => options.onEvent(event));
  const api = wrap<ConnectionApi>(nodeEndpoint(worker));
  worker.unref();
  events.unref();

  let holders = 0;
  let terminating: Promise<unknown> | undefined;
  return {
    api,
    exited: new Promise((resolve) => {
      worker.once("exit", (exitCode) => {
        // Closing would drop what has not been read: a process that was started last would be forgotten.
        for (let last = receiveMessageOnPort(events); last; last = receiveMessageOnPort(events)) {
          options.onEvent(last.message as WorkerEvent);
        }
        events.close();
        resolve({ exitCode, reason, ...(outOfMemory ? { outOfMemory: true as const } : {}) });
      });
    }),
    hold: () => {
      if (holders++ === 0) worker.ref();
    },
    release: () => {
      if (--holders === 0) worker.unref();
    },
    terminate: async () => {
      // Each call of Node's own would add a listener until the thread has ended.
      terminating ??= worker.terminate();
      await terminating;
    },
  };
}
