/**
 * Entry of the cache worker's thread: runs the tasks that a file exports (connection/catalog/cache-worker.ts). Must not:
 * know what they do.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../src/shared/protocol/errors.ts";
import type { PublishResult, TaskCall, TaskEvent } from "./shared/tasks.ts";

const port = parentPort;
if (!port) throw new Error("workers/cache-thread must run as a worker thread");

const say = (event: TaskEvent, transfer: ArrayBuffer[] = []): void => port.postMessage(event, transfer);
const { url } = workerData as { url: string };
const tasks = (await import(url)) as Record<string, (task: unknown) => Promise<unknown>>;

port.on("message", async ({ id, name, task }: TaskCall) => {
  try {
    const value = await tasks[name]?.(task);
    const snapshot = (value as Partial<PublishResult> | undefined)?.snapshot;
    say({ id, value }, snapshot ? [snapshot.buffer] : []);
  } catch (error) {
    say({ id, error: messageOf(error) });
  }
});
say("loaded");
