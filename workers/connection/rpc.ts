/**
 * The requests of main, as comlink exposes them: each gets an abort signal, each outcome becomes a `Reply`, and bytes are
 * transferred instead of copied. The few about the worker itself are answered here, all others by the session that is
 * open. Owns which session that is: a new one replaces the old one, whose servers are closed first. Also gives the memory
 * of results back to the system.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Remote, transfer } from "comlink";
import type {
  ConnectionApi,
  ConnectionMethod,
  ConnectionMethods,
  MainApi,
  WorkerEvent,
} from "../../src/shared/protocol/contract.ts";
import { messageOf, type Reply, ThreadsError, toWireError } from "../../src/shared/protocol/errors.ts";
import { endIfFileGone, type Log } from "../shared/log.ts";
import type { AskUser } from "./asks/asks.ts";
import { createCacheWorker } from "./catalog/cache-worker.ts";
import { bytesRead } from "./messages/incoming.ts";
import type { Talkers } from "./servers/talkers.ts";
import {
  createPatternMatcher,
  type Handler,
  openSession,
  type Session,
  type WorkerRequest,
} from "./session/session.ts";

export interface WorkerParts {
  emit: (event: WorkerEvent) => void;
  askUser: AskUser;
  log: Log;
  talkers: Talkers;
  /** Folder of Node's compile cache, for the cache worker, which does not inherit it. */
  compileCache?: string | undefined;
}

/** The answer to a request. Throws `runtime_stopped` without a session, if the request is about one. */
export type Answer = <M extends ConnectionMethod>(
  method: M,
  params: ConnectionMethods[M]["params"],
  signal: AbortSignal,
) => Promise<ConnectionMethods[M]["value"]>;

export function createAnswer({ emit, askUser, log, talkers, compileCache }: WorkerParts): Answer {
  const cache = createCacheWorker(log, compileCache);
  const patterns = createPatternMatcher();
  let session: Session | undefined;

  const own: { [M in WorkerRequest]: Handler<M> } = {
    startSession: async (facts) => {
      await session?.close();
      session = openSession(facts, { emit, askUser, log, cache, talkers });
      await session.planned;
      return undefined;
    },
    matchTools: (task, signal) => patterns.match(task, signal),
    ping: async () => undefined,
    log: async ({ level, message }) => {
      log.write(level, message, "main");
      return undefined;
    },
    shutdown: async () => {
      await session?.close();
      session = undefined;
      await cache
        .close()
        .catch((error: unknown) => log.error(`the cache worker could not be closed: ${messageOf(error)}`));
      log.info("stopped");
      await log.flush();
      return undefined;
    },
  };
  return async <M extends ConnectionMethod>(
    method: M,
    params: ConnectionMethods[M]["params"],
    signal: AbortSignal,
  ) => {
    const handlers = Object.hasOwn(own, method) ? own : session?.requests;
    if (!handlers) throw new ThreadsError("runtime_stopped", "No session is open in the connection worker.");
    return (handlers as { [N in ConnectionMethod]: Handler<N> })[method](params, signal);
  };
}

/** Fewer bytes are copied sooner than their buffer changes its thread. */
const TRANSFERRED_BYTES = 16 * 1024;

function replyWith(value: unknown): Reply<unknown> {
  const reply: Reply<unknown> = { ok: true, value };
  const isLarge = value instanceof Uint8Array && value.byteLength >= TRANSFERRED_BYTES;
  return isLarge ? transfer(reply, [value.buffer as ArrayBuffer]) : reply;
}

/** What comlink exposes. No error is thrown across the thread boundary. */
export function serve(answer: Answer, log: Log, collector = createCollector()): ConnectionApi {
  const open = new Map<number, AbortController>();
  return {
    request: async (requestId, method, params) => {
      const controller = new AbortController();
      collector.busy();
      open.set(requestId, controller);
      try {
        return replyWith(await answer(method, params as never, controller.signal));
      } catch (error) {
        await endIfFileGone(error, log);
        if (!(error instanceof ThreadsError)) {
          log.error(`${method}: ${error instanceof Error ? error.stack : String(error)}`);
        }
        return { ok: false, error: toWireError(error) };
      } finally {
        open.delete(requestId);
        if (open.size === 0) collector.idle();
      }
    },
    cancel: (requestId) => open.get(requestId)?.abort(),
  };
}

/** Asks over comlink. A question that is taken back settles at once, and main takes it off the screen. */
export function createAskUser(main: Remote<MainApi>): AskUser {
  let lastId = 0;
  return async (question, signal) => {
    if (signal.aborted) return undefined;
    const id = ++lastId;
    const { promise: withdrawn, resolve } = Promise.withResolvers<undefined>();
    const withdraw = (): void => {
      main.withdraw(id).catch(() => undefined);
      resolve(undefined);
    };
    signal.addEventListener("abort", withdraw, { once: true });
    try {
      const answer = main.ask(id, question) as Promise<never>;
      return await Promise.race([withdrawn, answer.catch(() => undefined)]);
    } finally {
      signal.removeEventListener("abort", withdraw);
    }
  };
}

interface Collector {
  /** A request of main has come. */
  busy(): void;
  /** No request of main is open. */
  idle(): void;
}

/** A collection takes some milliseconds and is worth it after so many bytes of messages. */
const WORTH_BYTES = 16 * 1024 * 1024;
/** A model that goes on calls again sooner than this. */
const QUIET_MS = 1_000;

/** Does nothing where there is no V8: in Bun, which gives memory back by itself. Measured with Node 22.19 and 24, and Bun 1.4. */
export function collectGarbage(): void {
  const { gc } = globalThis;
  if (gc) {
    gc();
    return;
  }
  try {
    // The flags belong to the whole process, and only a context that is made meanwhile gets the function.
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("globalThis.gc");
    setFlagsFromString("--no-expose-gc");
    if (typeof collect === "function") collect();
  } catch {
    // V8 collects by itself later.
  }
}

/**
 * V8 collects garbage when it needs room, and a thread that rests needs none: without this the thread keeps three times
 * the bytes of its last results until the session ends. `read`: bytes of messages so far.
 */
export function createCollector(read = bytesRead, collect = collectGarbage): Collector {
  let readBefore = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    busy: () => clearTimeout(timer),
    idle: () => {
      clearTimeout(timer);
      if (read() - readBefore < WORTH_BYTES) return;
      timer = setTimeout(() => {
        readBefore = read();
        collect();
      }, QUIET_MS).unref();
    },
  };
}
