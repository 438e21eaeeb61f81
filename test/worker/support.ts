/** Owns: the real connection worker in a temporary agent folder, real servers, and their end after each test. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { enableCompileCache } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { expect, inject } from "vitest";
import type { Crash, KeepLimits, Runtime } from "../../src/runtime/contract.ts";
import type { CallResult } from "../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import type { SessionFacts, SessionLimits } from "../../src/shared/protocol/session.ts";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { endHub } from "../support/end-hub.ts";
import { freePort } from "../support/free-port.ts";
import { type OneFile, oneFile } from "../support/one-file.ts";
import { killMarked, processesWithMarker, waitGone } from "../support/processes.ts";
import { type RecordingUser, recordingUser } from "../support/recording-user.ts";
import { followHub, SHARED } from "../support/shared.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { type Watched, watchRuntime } from "../support/watched-runtime.ts";

export { onCleanup } from "../support/cleanup.ts";
export { freePort } from "../support/free-port.ts";
export { currentCatalog, newestCatalog } from "../support/watched-runtime.ts";

export const root = join(import.meta.dirname, "..", "..");
export const fixtures = join(root, "test", "fixtures");

/** test/support/built-setup.ts builds the packed files again if a source is newer. */
export const builtWorker = pathToFileURL(join(root, "dist", "workers", "connection.js"));
/** Only tests of both builds start the raw worker, because it strips types from 200 files at each start. */
export const BUILDS = ["raw", "built"] as const;
export type Build = (typeof BUILDS)[number];

type Entry = Record<string, unknown>;

const npmProgram = (name: string): OneFile =>
  oneFile(name, join(root, "node_modules/@modelcontextprotocol", name, "dist/index.js"));
const npmServer = (name: string, args: string[] = [], more: Record<string, string> = {}): Entry => {
  const { file, env } = npmProgram(name);
  return { command: process.execPath, args: [file, ...args], env: { ...env, ...more } };
};
export const everything = (): Entry => npmServer("server-everything");
export const filesystem = (folder: string): Entry => npmServer("server-filesystem", [folder]);
export const memory = (file: string): Entry => npmServer("server-memory", [], { MEMORY_FILE_PATH: file });
/** The fixture of both eras over stdio. `more`: its environment, such as ERAS. */
export const modernProgram = (more: Record<string, string> = {}): Entry => {
  const { file, env } = oneFile("server-of-both-eras", join(fixtures, "modern", "stdio.mjs"));
  return { command: process.execPath, args: [file], env: { ...env, ...more } };
};
/** A server of test/fixtures/servers. */
export const fixture = (name: string, env: Record<string, string> = {}, more: Entry = {}): Entry => ({
  command: process.execPath,
  args: [join(fixtures, "servers", name)],
  env,
  ...more,
});

export interface Place {
  agentDir: string;
  cwd: string;
}

/**
 * Creates a temporary agent folder and working directory. A process that still runs with it at the end fails the
 * test.
 */
export async function createPlace(): Promise<Place> {
  const dir = await makeTempFolder("pmt-worker");
  const place = { agentDir: join(dir, "agent"), cwd: join(dir, "project") };
  await mkdir(place.agentDir);
  await mkdir(place.cwd);
  // As in Pi, the threads find what Node compiled for an earlier one.
  const compiled = join(inject("piCaches"), "workers");
  await mkdir(compiled, { recursive: true });
  await symlink(compiled, join(place.agentDir, "mcp-code"), "junction");
  onCleanup(async () => {
    if (SHARED) await endHub(place.agentDir);
    const left = await processesWithMarker(place.agentDir);
    if (left.length > 0) await killMarked(`PMT_PLACE=${place.agentDir}`);
    await removeFolder(dir);
    expect(left.map(({ command }) => command)).toEqual([]);
  });
  return place;
}

/** Not the name itself, which would be taken out of texts as a secret of the environment. */
const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

/**
 * Writes mcp.json. Every stdio server gets the agent folder in its environment, so that leftovers can be found, and its name,
 * so that two servers of one session that share are two processes.
 */
export async function configure(
  { agentDir }: Place,
  servers: Record<string, Entry>,
  settings: Record<string, unknown> = {},
): Promise<void> {
  const marked = Object.entries(servers).map(([name, entry]) => [
    name,
    "command" in entry
      ? {
          ...entry,
          env: {
            ...(entry.env ?? {}),
            PMT_PLACE: agentDir,
            ...(SHARED ? { PMT_NAME: shortHash(name) } : {}),
          },
        }
      : entry,
  ]);
  const file = {
    mcpServers: Object.fromEntries(marked),
    settings: { ...settings, ...(SHARED ? { shared: true } : {}) },
  };
  await writeFile(join(agentDir, "mcp.json"), JSON.stringify(file));
}

type AskedByServer = ReturnType<RecordingUser["ofServers"]>[number];

export interface Started extends Place, Watched {
  user: RecordingUser;
  /** The first question of a server that fits, past or to come, from this number on, from 0. */
  question(number?: number, fits?: (asked: { server: string }) => boolean): Promise<AskedByServer>;
  /** The crash with the number `count`, from 1; waits for it if it has not happened yet. */
  crash(count: number): Promise<Crash>;
  /** The error of a call that must fail. */
  failedCall(server: string, tool: string, args?: Entry, signal?: AbortSignal): Promise<ThreadsError>;
  log(): Promise<string>;
}

/** A worker that obeys `tellWorker`. */
export const breakable = pathToFileURL(join(fixtures, "workers", "breakable.mjs"));
/** A worker that breaks at a message of the fixture `breaks-worker.mjs`. */
export const breaksOnMessage = pathToFileURL(join(fixtures, "workers", "breaks-on-message.mjs"));
export type Way = "crash" | "exit" | "hang" | "loop" | "oom" | "stuck";
let told = 0;
/**
 * Makes the worker break or write its heap size. A rename creates the file, so that the worker never reads half of
 * it.
 */
export async function tellWorker({ agentDir }: Place, what: Way | "heap" | "memory"): Promise<void> {
  const trigger = join(agentDir, "mcp-threads.log.break");
  const unfinished = `${trigger}.${++told}`;
  await writeFile(unfinished, what);
  await rename(unfinished, trigger);
}

let marks = 0;
/** The wait for a mark ends after this time, because a dead worker writes no mark. */
const MARK_WAIT_MS = 2_000;

/**
 * Answers the log with all lines so far. The worker writes lines late, so this sends a mark after them and waits for
 * it.
 */
async function readWholeLog(runtime: Runtime, file: string): Promise<string> {
  const mark = `mark ${++marks} of a test`;
  runtime.log("info", mark);
  const giveUpAt = performance.now() + MARK_WAIT_MS;
  let text = await readIfThere(file);
  while (!text.includes(mark) && performance.now() < giveUpAt) {
    await sleep(10);
    text = await readIfThere(file);
  }
  return text.replace(/^.*mark \d+ of a test\n/gm, "");
}

export interface StartOptions {
  /** Default: the packed worker. */
  build?: Build;
  place?: Place;
  facts?: Partial<SessionFacts>;
  /** Of the user's file. */
  settings?: Record<string, unknown>;
  /** A worker that replaces the one of the build. */
  workerUrl?: URL;
  /** These limits override those of `LIMITS`. */
  limits?: Partial<SessionLimits> & KeepLimits;
}

const workerOf = ({ build, workerUrl }: StartOptions): { workerUrl?: URL } => {
  if (workerUrl) return { workerUrl };
  return build === "raw" ? {} : { workerUrl: builtWorker };
};

/**
 * The raw worker loads hundreds of files before it answers for the first time. On a machine with much other work it needs
 * longer than the product's limit, so this limit ends hangs only.
 */
const RAW_LIMITS: KeepLimits = { heartbeatMs: 60_000 };

/** Starts the connection worker with the servers and waits until its session is planned. */
export async function start(servers: Record<string, Entry>, options: StartOptions = {}): Promise<Started> {
  // As Pi does. A test that has enabled a cache of its own keeps it.
  enableCompileCache(join(inject("piCaches"), "workers"));
  const place = options.place ?? (await createPlace());
  await configure(place, servers, options.settings);
  const logFile = join(place.agentDir, "mcp-threads.log");
  const user = recordingUser(() => watched.look());
  let stopped = false;
  const watched = watchRuntime(place, {
    facts: { ...(options.limits ? { limits: options.limits } : {}), ...options.facts },
    onQuestion: user.ask,
    ...workerOf(options),
    limits: { ...(options.build === "raw" ? RAW_LIMITS : {}), ...options.limits },
  });
  const { events, crashes, when, call } = watched;
  const unfollow = SHARED ? await followHub(place.agentDir, watched.add) : () => undefined;
  const runtime: Runtime = {
    ...watched.runtime,
    stop: async () => {
      await watched.runtime.stop();
      stopped = true;
    },
  };
  onCleanup(async () => {
    await runtime.stop();
    unfollow();
    // Shared ones stay until their hub ends.
    if (SHARED) return;
    await waitGone(
      events.flatMap((event) => (event.type === "spawned" ? [event.pid] : [])),
      5_000,
    );
  });
  await watched.planned;
  return {
    ...place,
    ...watched,
    runtime,
    user,
    question: (number = 0, fits = () => true) =>
      when(() =>
        user
          .ofServers()
          .slice(number)
          .find(({ question }) => fits(question)),
      ),
    crash: (count) => when(() => crashes[count - 1]),
    failedCall: async (...request) => {
      const answer = await call(...request).catch((error: unknown) => error);
      if (answer instanceof ThreadsError) return answer;
      throw new Error(`the call did not fail as it must: ${JSON.stringify(answer)} ${String(answer)}`);
    },
    log: () => (stopped ? readFile(logFile, "utf8") : readWholeLog(runtime, logFile)),
  };
}

/**
 * One worker for all rows of a table, in which each row has a server of its own: the first row starts it, it ends after the
 * file.
 */
export const forRows = <T = Started>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () => {
    made ??= forWholeFile(make);
    return made;
  };
};

/** Ends the session, and what outlives it: the hub with the servers that are shared. */
export async function endAll({ runtime, agentDir }: Pick<Started, "runtime" | "agentDir">): Promise<void> {
  await runtime.stop();
  if (SHARED) await endHub(agentDir);
}

export const textOf = (result: CallResult): string =>
  result.content.map((content) => (content.type === "text" ? content.text : `<${content.type}>`)).join("\n");

/**
 * Waits until `check` gives a defined value. The test's own time limit ends the wait. `pauseMs`: longer where the worker answers
 * each check, and what is waited for takes seconds.
 */
export async function until<T>(check: () => Promise<T | undefined>, pauseMs = 20): Promise<T> {
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    await sleep(pauseMs);
  }
}

export const readIfThere = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");

/** Starts server-everything over HTTP, waits until it listens, and answers its origin. */
export async function startEverything(mode: "streamableHttp" | "sse"): Promise<string> {
  const port = await freePort();
  const { file, env } = npmProgram("server-everything");
  const child: ChildProcess = spawn(process.execPath, [file, mode], {
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  onCleanup(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (chunk: Buffer) => {
      if (String(chunk).includes(String(port))) resolve();
    });
    child.once("exit", () => reject(new Error(`server-everything ${mode} ended before it listened`)));
  });
  return `http://127.0.0.1:${port}`;
}

/** Starts an HTTP server with one handler and answers its origin. */
export async function startHttp(answer: RequestListener): Promise<string> {
  const server = createHttpServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanup(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
