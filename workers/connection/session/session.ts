/**
 * One Pi session in the connection worker: configuration, then cache, then servers, then the catalog; and the same
 * again for each change. Owns the wiring of these and the order of their end. Must not: know how each does its work.
 * To add a request of main: requests.ts.
 */
import { createHash } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SessionFacts } from "../../../src/shared/protocol/session.ts";
import { SNAPSHOT_FOLDER, snapshotFileName } from "../../../src/shared/snapshot/contract.ts";
import { unreadFiles, unreadLine } from "../../../src/shared/untrusted.ts";
import type { Log } from "../../shared/log.ts";
import { Approvals } from "../approval/approval.ts";
import { type AskUser, SessionAsks } from "../asks/asks.ts";
import type { CacheWorker } from "../catalog/cache-worker.ts";
import { CatalogPublisher } from "../catalog/catalog.ts";
import { DefinitionHashes } from "../catalog/kept.ts";
import { publishTimes } from "../catalog/publish.ts";
import { runConfiguration } from "../config/config.ts";
import { cacheFile, npxCacheFile } from "../config/files/sources.ts";
import { describeEffect } from "../config/plan/plan.ts";
import { Results } from "../results/results.ts";
import type { Connect } from "../servers/server.ts";
import { Supervisor, type SupervisorContext } from "../servers/supervisor.ts";
import type { Talkers } from "../servers/talkers.ts";
import { AllowedSkills } from "../skills/allowed.ts";
import { CurrentPlan, createPlanCarrier, endedBy, firstHint, reportEffect } from "./carry-out.ts";
import { createFirstRequest, endingTheWait, type SessionRequests } from "./first-request.ts";
import { rehearseCall } from "./rehearsal.ts";
import { createSessionRequests } from "./requests.ts";
import { createRest, sinceRest } from "./rest.ts";
import { createSignInRequests, openSessionAuth } from "./sign-ins.ts";
import { createUserEdits } from "./user-edits.ts";

export type { Handler, SessionRequests, WorkerRequest } from "./first-request.ts";
export { createPatternMatcher } from "./match-pattern.ts";

export interface SessionContext {
  emit: (event: WorkerEvent) => void;
  askUser: AskUser;
  log: Log;
  cache: CacheWorker;
  talkers: Talkers;
  /** Absent: the transports open connections. */
  connect?: Connect;
}

export interface Session {
  requests: SessionRequests;
  /** The configuration is read and every server that must start is starting. */
  planned: Promise<void>;
  /** Closes also what a start that failed has opened. Never rejects: what cannot be closed is in the log. */
  close(): Promise<void>;
}

/** After the start of the session. Pi has made its first request by then. */
const PRELOAD_MS = 1_500;
/** A first plan takes less, and goes first. */
const PRELOAD_SOON_MS = 200;

export function openSession(facts: SessionFacts, context: SessionContext): Session {
  const { emit, askUser, log, cache } = context;
  const { agentDir, cwd } = facts;
  const limits = { ...LIMITS, ...facts.limits };
  const lifetime = new AbortController();
  const first = createFirstRequest(lifetime.signal);
  const current = new CurrentPlan();
  const settings = () => current.settings;
  const hashes = new DefinitionHashes(cache, cwd);
  const signInOptions = {
    agentDir,
    cwd,
    log,
    emit,
    askUser,
    supervisor: () => supervisor,
    settings,
    signal: lifetime.signal,
  };
  const auth = openSessionAuth(signInOptions);
  const allowedSkills = new AllowedSkills(join(agentDir, "mcp-skills.json"), log);
  const approvals = new Approvals({
    canAsk: facts.canAsk,
    sideBySide: facts.asksSideBySide === true,
    definitions: () => supervisor.servers.map(({ definition }) => definition),
    toolsOf: (name) =>
      supervisor.servers.find((server) => server.name === name)?.tools?.map((tool) => tool.name) ?? [],
    settings,
    askUser,
    allowAlways: ({ definition, tool }) => {
      edits
        .then((user) => user.allowTool(definition.name, tool.name))
        .catch((error: unknown) => emit({ type: "notice", text: messageOf(error), level: "error" }));
    },
    allowedSkills,
    warn: (text) => emit({ type: "notice", text, level: "warning" }),
    log,
  });
  const asks = new SessionAsks({
    askUser,
    sideBySide: facts.asksSideBySide === true,
    emit,
    openPage: async (url, onNote) => {
      const { openBrowser } = await import("../auth/sign-in/browser.ts");
      return openBrowser(url, { env: process.env, platform: process.platform, onNote });
    },
  });
  const supervisor: Supervisor = openServers(facts, context, {
    auth,
    approvals,
    // Without a person no server is told that it may ask, so it can do without.
    asks: facts.canAsk ? asks : undefined,
    limits,
    settings,
    onStatus: (server) => {
      const status = server.status();
      // Its tools make a new snapshot: the thread for it starts beside the server.
      if (facts.onDemand && status.state === "connecting" && !status.toolsKnown) cache.warm();
      emit({ type: "server", status });
    },
    onTools: (server) => catalog.changed(server),
  });
  const catalog: CatalogPublisher = new CatalogPublisher({
    cachePath: cacheFile(agentDir),
    snapshotPath: () => snapshotPath(facts, current.off),
    knownChecksum: facts.snapshotChecksum,
    servers: () => supervisor.servers,
    settings,
    configFiles: () => current.files,
    hashOf: (server) => hashes.of(server),
    cache,
    log,
    emit,
    onKept: createRest({
      facts,
      started: () => started,
      servers: () => supervisor.servers,
      files: () => current.files,
      snapshotPath: () => snapshotPath(facts, current.off),
      log,
    }),
    times: publishTimes(limits),
  });
  const results = new Results({
    agentDir,
    settings,
    log,
    warn: (text) => {
      log.warn(text);
      emit({ type: "notice", text, level: "warning" });
    },
  });
  const rehearse = (): Promise<void> =>
    rehearseCall({
      cwd,
      npxCacheFile: npxCacheFile(agentDir),
      settings,
      log,
      results,
      signal: lifetime.signal,
    });
  const preload = preloadTransports(supervisor, {
    // What ends a rest is a call that is near, as a rule.
    ms: facts.rested === undefined ? PRELOAD_MS : PRELOAD_SOON_MS,
    rehearse,
  });
  const notice = { supervisor, catalog, log, emit, signal: lifetime.signal };
  const carryOut = createPlanCarrier(current, {
    cwd,
    cachePath: cacheFile(agentDir),
    supervisor,
    catalog,
    hashes,
    cache,
    onDemand: facts.onDemand,
    emit,
    signal: lifetime.signal,
    firstRequestGone: () => {
      preload.beforeConnects();
      return first.gone();
    },
    onChanged: (change) => {
      auth.abandon(endedBy(change));
      void reportEffect(change, notice);
    },
    sinceRest: (first) => sinceRest(facts, first),
  });
  // A call need not wait until the files are followed, too.
  const carriedOut = Promise.withResolvers<void>();
  const started = runConfiguration({
    facts,
    log,
    signal: lifetime.signal,
    onPlan: async (...plan) => {
      await carryOut(...plan);
      carriedOut.resolve();
    },
    onFirstChange: () => cache.warm(),
    onHeld: (edit) =>
      emit({
        type: "held",
        id: edit?.id ?? "",
        text: (edit && describeEffect(edit.change, new Map())) ?? "",
      }),
  });
  if (facts.hints) {
    started
      .then(firstHint)
      .then((text) => text && emit({ type: "notice", text, level: "info" }))
      // The failure of a start is told by its requests.
      .catch(() => undefined);
  }
  if (!facts.canAsk)
    void unreadFiles(facts, { lstat, resolve }).then((unread) => {
      const text = unreadLine(unread, "/trust in Pi, or --approve, decides that.");
      if (text) emit({ type: "notice", text, level: "warning" });
    });
  const edits = started.then((running) => createUserEdits(running, supervisor));
  // It fails as the start does, and the start's failure is reported.
  edits.catch(() => undefined);
  const callable = Promise.race([started, carriedOut.promise]);
  callable.catch(() => undefined);
  const requests = createSessionRequests({
    started,
    callable,
    supervisor,
    catalog,
    results,
    signIns: createSignInRequests(auth, started, signInOptions),
    approvals,
    allowedSkills,
    asks,
    edits,
    emit,
    agentDir,
    cwd,
  });
  return {
    requests: endingTheWait(requests, first),
    planned: started.then(() => undefined),
    close: async () => {
      lifetime.abort();
      preload.cancel();
      // A start that failed has opened something, too, and has reported why it failed.
      const running = await started.catch(() => undefined);
      await closeAll(
        log,
        running?.close(),
        catalog.finish(),
        supervisor.close(),
        results.close(),
        auth.close(LIMITS.renewalEndMs),
      );
    },
  };
}

type ServerHooks = Pick<
  SupervisorContext,
  "auth" | "approvals" | "asks" | "limits" | "settings" | "onStatus" | "onTools"
>;

/** A warning about servers that are not shared as they should be, once in a session. */
function warnOnce({ emit, log }: Pick<SessionContext, "emit" | "log">): (why: string) => void {
  let isTold = false;
  return (why) => {
    if (isTold) return;
    isTold = true;
    const text = `Shared servers cannot be used: ${why}. This session runs its own.`;
    // A subagent's notice is shown nowhere.
    log.warn(text);
    emit({ type: "notice", level: "warning", text });
  };
}

const openServers = (
  { cwd, agentDir, configPath, heldBack, onDemand }: SessionFacts,
  { log, emit, talkers, connect }: SessionContext,
  hooks: ServerHooks,
): Supervisor =>
  new Supervisor({
    ...hooks,
    cwd,
    npxCacheFile: npxCacheFile(agentDir),
    configPath,
    hub: { agentDir, onUnusable: warnOnce({ emit, log }) },
    log,
    emit,
    talkers,
    ...(connect ? { connect } : {}),
    onDemand,
    heldBack: new Map(heldBack?.map(({ server, why }) => [server, why])),
  });

const snapshotPath = (
  { agentDir, cwd, configPath, onlyServers }: SessionFacts,
  off: readonly string[] | undefined,
): string =>
  join(
    agentDir,
    SNAPSHOT_FOLDER,
    snapshotFileName({ cwd, configFile: configPath, only: onlyServers, off }, sha256Hex),
  );

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * Reads and compiles the client before a server is connected: in a quiet moment, so that the first call of a lazy server
 * does not wait for that, and, for a shared server, which may run already, while Pi's first request is being prepared. A file
 * that cannot be loaded is reported when a server is connected.
 */
function preloadTransports(
  supervisor: Pick<Supervisor, "servers" | "connectsShared">,
  { ms, rehearse }: { ms: number; rehearse: () => Promise<void> },
) {
  const load = async () => {
    await import("../transports/transports.ts");
    return import("../transports/stdio/stdio.ts");
  };
  /** Where a server connects the code runs anyway, and a call may wait for it. */
  const isUseful = (): boolean =>
    supervisor.servers.every(({ phase }) => phase === "idle" || phase === "disabled") &&
    supervisor.servers.some(({ definition: { enabled, target } }) => enabled && target.kind === "stdio");
  const timer = setTimeout(() => {
    if (supervisor.servers.length === 0) return;
    load()
      .then(({ preload }) => preload())
      .then(() => (isUseful() ? rehearse() : undefined))
      .catch(() => undefined);
  }, ms);
  timer.unref();
  return {
    /** The first plan is made, and connects its servers soon. */
    beforeConnects: (): void => {
      if (!supervisor.connectsShared) return;
      load()
        .then(({ preloadShared }) => preloadShared())
        .catch(() => undefined);
    },
    cancel: (): void => clearTimeout(timer),
  };
}

/** Closes one thing even if another cannot be closed. */
async function closeAll(log: Log, ...closing: (Promise<unknown> | undefined)[]): Promise<void> {
  for (const outcome of await Promise.allSettled(closing)) {
    if (outcome.status === "rejected") log.error(`closing the session failed: ${messageOf(outcome.reason)}`);
  }
}
