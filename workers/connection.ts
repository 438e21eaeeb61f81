/**
 * Entry of the connection worker: a guard and wiring. Main starts the worker with a port and the path of the log file, and talks to
 * it over comlink.
 */
import { isMainThread, threadId, workerData } from "node:worker_threads";
import { expose, wrap } from "comlink";
import manifest from "../package.json" with { type: "json" };
import type { MainApi, WorkerEvent } from "../src/shared/protocol/contract.ts";
import { ThreadsError } from "../src/shared/protocol/errors.ts";
import { createTurnEndpoint, type WorkerBoot } from "../src/shared/protocol/port.ts";
import { compileHeavyIn } from "./connection/messages/heavy-thread.ts";
import { type Answer, createAnswer, createAskUser, serve } from "./connection/rpc.ts";
import { createTalkers } from "./connection/servers/talkers.ts";
import { nameCommandsFor } from "./shared/commands.ts";
import { nodeFiles, sweepCompiled } from "./shared/files/file-system.ts";
import { createLog } from "./shared/log.ts";
import { findOwnFilesBy } from "./shared/own-file.ts";

if (isMainThread) throw new Error("workers/connection must run as a worker thread");

const boot = workerData as WorkerBoot;
// Meant for this thread only: spawned servers must see the user's own environment.
if (boot.compileCache !== undefined) delete process.env.NODE_COMPILE_CACHE;
nameCommandsFor(boot.commands);
const log = createLog({ file: boot.logFile, label: `connection#${threadId}` });
// A server's answers that come together are read one after the other: only the end of the turn has them all.
const endpoint = createTurnEndpoint(boot.port, undefined, setImmediate);
const emit = (event: WorkerEvent): void =>
  endpoint.tell(event, event.type === "catalog" ? [event.snapshot.buffer] : []);

/** No output of this thread may reach the terminal: what a library prints goes to the log. */
for (const [name, stream] of [
  ["stdout", process.stdout],
  ["stderr", process.stderr],
] as const) {
  stream.write = (chunk: unknown) => {
    log.warn(`${name}: ${String(chunk).trimEnd()}`);
    return true;
  };
}

process.on("unhandledRejection", (reason) => {
  log.error(`unhandled rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
});

const talkers = createTalkers(boot.talk, emit);
const main = wrap<MainApi>(endpoint);
const askUser = createAskUser(main);
compileHeavyIn(boot.compileCache);
/** No session waits for it, and a short one leaves it to others. */
const SWEEP_AFTER_MS = 60_000;
const { compileCache } = boot;
if (compileCache !== undefined)
  setTimeout(() => void sweepCompiled(compileCache, nodeFiles, Date.now()), SWEEP_AFTER_MS).unref();
findOwnFilesBy(() => main.workerFolder());
/** Main is older or newer: an update came before main could keep this file's predecessor. */
const refuse: Answer = async () => {
  const versions = `${boot.version} is loaded, ${manifest.version} is on the disk`;
  throw new ThreadsError("runtime_stopped", `pi-mcp-threads was updated: ${versions}.`, {
    remedy: "Start Pi again.",
  });
};
const answer =
  boot.version === manifest.version
    ? createAnswer({ emit, askUser, log, talkers, compileCache: boot.compileCache })
    : refuse;
expose(serve(answer, log), endpoint);
log.info("started");
