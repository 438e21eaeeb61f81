/**
 * One Pi session in the connection worker: configuration, then cache, then servers, then the catalog; and
 * the same again for each change. Reads as the table of contents of what happens.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ConnectionMethods } from "../../../src/shared/protocol/api.ts";
import type { CallToolParams, StatsReport } from "../../../src/shared/protocol/calls.ts";
import { messageOf, type WireError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { AcceptedBefore, RegisteredServer, SessionFacts } from "../../../src/shared/protocol/session.ts";
import type { StatusReport } from "../../../src/shared/protocol/status.ts";
import { SNAPSHOT_FOLDER, snapshotFileName } from "../../../src/shared/snapshot/file-name.ts";
import { boundResources, normalizeResources, normalizeTemplates } from "../../shared/listed/resource.ts";
import type { Log } from "../../shared/log.ts";
import type { CacheEntry } from "../../shared/tasks.ts";
import type { CachePool } from "../catalog/catalog.ts";
import { catalogSettings, createCatalogPublisher, publishTimes } from "../catalog/catalog.ts";
import { type ConfigState, type RunningConfiguration, runConfiguration } from "../config/config.ts";
import { cacheIdentity } from "../config/entry/cache-identity.ts";
import { DEFAULT_SETTINGS } from "../config/entry/settings.ts";
import { cacheFile, npxCacheFile } from "../config/files/files.ts";
import { describeEffect, isIdle, type Plan } from "../config/plan/plan.ts";
import { createResults } from "../results/results.ts";
import type { KnownTools, Talkers } from "../servers/servers.ts";
import { createSupervisor, type Supervisor } from "../servers/servers.ts";
import { runCall } from "./calls.ts";
import { explainAbsent } from "./explain-server.ts";
import { explainMissing } from "./explain-tool.ts";
import { createUserEdits, type UserEdits } from "./user-edits.ts";

export { createPatternMatcher } from "./match-pattern.ts";

export interface SessionContext {
  emit: (event: WorkerEvent) => void;
  log: Log;
  cache: CachePool;
  talkers: Talkers;
}

export interface Session extends UserEdits {
  /** The configuration is read and every server that must start is starting. */
  planned: Promise<void>;
  settleTools(
    params: ConnectionMethods["settleTools"]["params"],
    signal: AbortSignal,
  ): Promise<ConnectionMethods["settleTools"]["value"]>;
  callTool(params: CallToolParams, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  reconnect(server: string | undefined): Promise<void>;
  answerConsent(hash: string, allow: boolean): Promise<void>;
  askAgain(): Promise<void>;
  applyHeld(id: string, apply: boolean): Promise<void>;
  setRegistered(servers: RegisteredServer[]): Promise<void>;
  explainMissing(name: string): Promise<WireError | undefined>;
  turnEnded(): Promise<void>;
  /** For `/mcp stats`. */
  stats(): Promise<StatsReport>;
  status(): Promise<StatusReport>;
  /** Also where the start failed. Never rejects: what cannot be closed is in the log. */
  close(): Promise<void>;
}

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Other adapters write entries too, so their resources are checked like a server's. */
const knownTools = ({ tools, instructions, resources, resourceTemplates }: CacheEntry): KnownTools => ({
  tools,
  instructions,
  resources:
    resources &&
    boundResources({
      resources: normalizeResources(resources),
      templates: normalizeTemplates(resourceTemplates),
    }).known,
});
/** Servers of the project that may not run -> why. */
const withheldServers = ({ refused, questions }: ConfigState): Map<string, string> =>
  new Map([
    ...questions.map(({ server }) => [server, "it waits for the user's consent"] as const),
    ...refused.map(({ name, reason }) => [name, reason] as const),
  ]);

const startedBy = ({ servers }: Plan): Plan["servers"] =>
  servers.filter(({ action }) => action === "start" || action === "restart");

/** A change is told when the servers that it started have settled, but not later than this. */
const NOTICE_WAIT_MS = 10_000;

/** After the start of the session: Pi has made its first request by then. */
const PRELOAD_MS = 1_500;

export function openSession(facts: SessionFacts, { emit, log, cache, talkers }: SessionContext): Session {
  const { generation, agentDir, cwd } = facts;
  const limits = { ...LIMITS, ...facts.limits };
  const cachePath = cacheFile(agentDir);
  const lifetime = new AbortController();
  let configuration: RunningConfiguration | undefined;
  let hashes = new Map<string, string>();
  const settings = () => configuration?.now.settings ?? planSettings;
  /** Of the plan that is being carried out, while the first one is. */
  let planSettings = DEFAULT_SETTINGS;
  let configFiles: readonly string[] = [];

  const supervisor: Supervisor = createSupervisor({
    cwd,
    npxCacheFile: npxCacheFile(agentDir),
    log,
    emit,
    talkers,
    heldBack: new Map(facts.heldBack?.map(({ server, why }) => [server, why])),
    limits,
    settings,
    onStatus: (server) => emit({ type: "server", generation, status: server.status() }),
    onTools: (server) => catalog.changed(server),
  });
  const catalog = createCatalogPublisher({
    generation,
    cachePath,
    snapshotPath: join(
      agentDir,
      SNAPSHOT_FOLDER,
      snapshotFileName({ cwd, configFile: facts.configPath }, sha256Hex),
    ),
    knownChecksum: facts.snapshotChecksum,
    servers: () => supervisor.servers,
    settings,
    configFiles: () => configFiles,
    hashOf: (server) => hashes.get(server) ?? "",
    cache,
    log,
    emit,
    times: publishTimes(limits),
  });
  const results = createResults({
    agentDir,
    settings,
    log,
    warn: (text) => {
      log.warn(text);
      emit({ type: "notice", generation, text, level: "warning" });
    },
  });

  const report = (state: ConfigState): StatusReport => ({
    servers: supervisor.servers.map((server) => server.status()),
    ...state,
  });

  /** Tells the whole effect of a change in one line, once the servers that it started have settled. */
  const tellEffect = async (change: Plan): Promise<void> => {
    // Whoever reads the notice finds what it says. A server that starts anew has its old tools until it has listed.
    if (!catalog.withdraw() || startedBy(change).length > 0) {
      await supervisor.settleTools({ timeoutMs: NOTICE_WAIT_MS }, lifetime.signal);
      if (lifetime.signal.aborted) return;
      await catalog.flush();
    }
    const counts = new Map(
      supervisor.servers.flatMap(({ name, tools }) => (tools ? [[name, tools.length] as const] : [])),
    );
    const text = describeEffect(change, counts);
    if (text === undefined) return;
    log.info(text);
    emit({ type: "notice", generation, text, level: "info" });
  };

  /** The newest plan's hashes win, however long an older one's take. */
  let hashing: Promise<void> = Promise.resolve();
  const rehash = (): Promise<void> => {
    const definitions = supervisor.servers.map(({ definition }) => definition);
    const hashed = cache.hashDefinitions(definitions.map((definition) => cacheIdentity(definition, cwd)));
    hashing = hashing.then(async () => {
      const found = await hashed;
      hashes = new Map(definitions.map(({ name }, i) => [name, found[i] ?? ""]));
    });
    return hashing;
  };

  const carryOut = async (change: Plan, state: ConfigState, accepted: AcceptedBefore): Promise<void> => {
    planSettings = change.settings.after;
    // The same list stays the same object: whoever compares publications goes by identity.
    if (state.files.join("\0") !== configFiles.join("\0")) configFiles = state.files;
    supervisor.carryOut(change, withheldServers(state));
    const main = { settings: catalogSettings(change.settings.after, configFiles), accepted };
    emit({ type: "planned", generation, ...main, ...report(state) });
    const hashed = rehash();
    const starting = startedBy(change);
    // Whoever starts no server has no need to wait for the cache.
    if (starting.length > 0) {
      const wanted = new Set(starting.map(({ name }) => name));
      const definitions = supervisor.servers
        .filter(({ name }) => wanted.has(name))
        .map(({ name, definition }) => [name, cacheIdentity(definition, cwd)]);
      const query = { path: cachePath, definitions: Object.fromEntries(definitions) };
      const [{ entries, used }] = await Promise.all([cache.readCache(query), hashed]);
      catalog.noteUsed(used);
      supervisor.learn(
        Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, knownTools(entry)])),
      );
    }
    // Also without any fresh list: servers may have been added, removed or changed since the snapshot.
    catalog.changed();
    // The first plan is the start of the session; `configuration` is there from the second on.
    if (configuration && !isIdle(change)) {
      tellEffect(change).catch((error: Error) => log.error(`telling a change failed: ${error.message}`));
    }
  };

  const started = runConfiguration({
    facts,
    log,
    onPlan: carryOut,
    onFirstChange: () => cache.warm(),
    onHeld: ({ id, change }) =>
      emit({ type: "held", generation, id, text: describeEffect(change, new Map()) ?? "" }),
  }).then((running) => {
    configuration = running;
    return running;
  });

  // Read and compiled in a quiet moment, the client does not wait for the first call of a lazy server. A file
  // that cannot be loaded says so when a server is connected.
  const preload = setTimeout(() => {
    if (supervisor.servers.length > 0) import("../transports/transports.ts").catch(() => undefined);
  }, PRELOAD_MS);
  preload.unref();

  /** One thing that cannot be closed keeps no other open. */
  const closeAll = async (...closing: (Promise<unknown> | undefined)[]): Promise<void> => {
    for (const outcome of await Promise.allSettled(closing)) {
      if (outcome.status === "rejected")
        log.error(`closing the session failed: ${messageOf(outcome.reason)}`);
    }
  };

  const edits = started.then((running) => createUserEdits(running, supervisor));
  // Its failure is that of the start, which is told.
  edits.catch(() => undefined);

  return {
    planned: started.then(() => undefined),
    settleTools: async (params, signal) => {
      await started;
      const pending = await supervisor.settleTools(params, signal);
      await catalog.flush();
      return { pending, checksum: catalog.checksum };
    },
    callTool: async (params, signal) => {
      await started;
      return runCall(params, { supervisor, emit, signal, results });
    },
    reconnect: async (server) => {
      const { state } = await started;
      const isThere = server === undefined || supervisor.servers.some(({ name }) => name === server);
      const absent = isThere ? undefined : explainAbsent(server, state);
      if (absent) throw absent;
      catalog.retry(server);
      await supervisor.reconnect(server);
    },
    answerConsent: async (hash, allow) => (await started).answer(hash, allow ? "allowed" : "refused"),
    askAgain: async () => (await started).askAgain(),
    applyHeld: async (id, apply) => (await started).applyHeld(id, apply),
    setRegistered: async (registered) => (await started).register(registered),
    setEnabled: async (params) => (await edits).setEnabled(params),
    readConfig: async (params) => (await edits).readConfig(params),
    writeConfig: async (params) => (await edits).writeConfig(params),
    turnEnded: async () => {
      await started;
      supervisor.revive();
    },
    explainMissing: async (name) => {
      await started;
      return explainMissing(name, supervisor);
    },
    stats: async () => {
      await started;
      return results.statsReport();
    },
    status: async () => report((await started).state),
    close: async () => {
      lifetime.abort();
      clearTimeout(preload);
      // A start that failed has opened something, too, and has told why it failed.
      const running = await started.catch(() => undefined);
      await closeAll(running?.close());
      await closeAll(catalog.finish(), supervisor.close(), results.close());
    },
  };
}
