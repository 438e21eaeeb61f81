/**
 * The requests of main, each handed to the session that is open. Owns which session that is: a new one
 * replaces the old, whose servers are closed first.
 */
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import type { Log } from "../../shared/log.ts";
import { createCachePool } from "../catalog/catalog.ts";
import type { Talkers } from "../servers/servers.ts";
import { createPatternMatcher, openSession, type Session } from "../session/session.ts";
import type { Handlers } from "./serve.ts";

export { serve } from "./serve.ts";

export function createHandlers(options: {
  emit: (event: WorkerEvent) => void;
  log: Log;
  talkers: Talkers;
  /** For the cache worker, which does not inherit it. */
  compileCache?: string | undefined;
}): Handlers {
  const { emit, log, talkers } = options;
  const cache = createCachePool(log, options.compileCache);
  const patterns = createPatternMatcher();
  let session: Session | undefined;

  const current = (): Session => {
    if (session) return session;
    throw new ThreadsError("runtime_stopped", "No session is open in the connection worker.");
  };

  return {
    startSession: async (facts) => {
      await session?.close();
      session = openSession(facts, { emit, log, cache, talkers });
      await session.planned;
      return undefined;
    },
    settleTools: (params, signal) => current().settleTools(params, signal),
    callTool: (params, signal) => current().callTool(params, signal),
    reconnect: async ({ server }) => {
      await current().reconnect(server);
      return undefined;
    },
    answerConsent: async ({ hash, allow }) => {
      await current().answerConsent(hash, allow);
      return undefined;
    },
    askAgain: async () => {
      await current().askAgain();
      return undefined;
    },
    applyHeld: async ({ id, apply }) => {
      await current().applyHeld(id, apply);
      return undefined;
    },
    setRegistered: async ({ servers }) => {
      await current().setRegistered(servers);
      return undefined;
    },
    setEnabled: (params) => current().setEnabled(params),
    readConfig: (params) => current().readConfig(params),
    writeConfig: (params) => current().writeConfig(params),
    explainMissing: ({ name }) => current().explainMissing(name),
    matchTools: (task, signal) => patterns.match(task, signal),
    stats: () => current().stats(),
    turnEnded: async () => {
      await current().turnEnded();
      return undefined;
    },
    ping: async () => undefined,
    status: async () => current().status(),
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
}
