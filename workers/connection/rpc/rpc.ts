/**
 * The requests of main. Those about a session are handed on by name to the session that is open; the few about the
 * worker itself are answered here. Owns which session is open: a new one replaces the old one, whose servers are closed
 * first. Must not: know what a session does. Called by: workers/connection.ts.
 */
import { CONNECTION_METHODS, type ConnectionMethod } from "../../../src/shared/protocol/api.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import type { Log } from "../../shared/log.ts";
import { createCacheWorker } from "../catalog/cache-worker.ts";
import type { Talkers } from "../servers/talkers.ts";
import {
  createPatternMatcher,
  openSession,
  type Session,
  type SessionRequests,
  type WorkerRequest,
} from "../session/session.ts";
import type { Handlers } from "./serve.ts";

export { serve } from "./serve.ts";

export interface HandlerOptions {
  emit: (event: WorkerEvent) => void;
  log: Log;
  talkers: Talkers;
  /** Folder of Node's compile cache, for the cache worker, which does not inherit it. */
  compileCache?: string | undefined;
}

export function createHandlers({ emit, log, talkers, compileCache }: HandlerOptions): Handlers {
  const cache = createCacheWorker(log, compileCache);
  const patterns = createPatternMatcher();
  let session: Session | undefined;

  const own: Pick<Handlers, WorkerRequest> = {
    startSession: async (facts) => {
      await session?.close();
      session = openSession(facts, { emit, log, cache, talkers });
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
  return { ...handedOn(() => session, own), ...own };
}

/** Each request that `own` lacks, answered by the session that is then open. Without one: `runtime_stopped`. */
function handedOn(current: () => Session | undefined, own: Pick<Handlers, WorkerRequest>): SessionRequests {
  const isOfSession = (method: ConnectionMethod): method is keyof SessionRequests => !(method in own);
  const requests = CONNECTION_METHODS.filter(isOfSession).map((method) => [
    method,
    async (params: never, signal: AbortSignal) => {
      const session = current();
      if (!session) {
        throw new ThreadsError("runtime_stopped", "No session is open in the connection worker.");
      }
      return session.requests[method](params, signal);
    },
  ]);
  return Object.fromEntries(requests) as SessionRequests;
}
