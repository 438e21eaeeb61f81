/**
 * One Pi session in the connection worker: configuration, then cache, then servers, then the catalog.
 * Reads as the table of contents of what happens at a start.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ConnectionMethods } from "../../src/protocol/api.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { SNAPSHOT_FOLDER, snapshotFileName } from "../../src/protocol/paths.ts";
import type { CallToolParams, SessionFacts, StatusReport, WorkerEvent } from "../../src/protocol/types.ts";
import type { CachePool } from "./cache-pool.ts";
import { runCall } from "./calls.ts";
import { createCatalogPublisher } from "./catalog.ts";
import { catalogSettings } from "./catalog-settings.ts";
import { describeProblem, type LoadedConfig, loadConfig } from "./config/load.ts";
import { cacheFile, configSources, npxCacheFile } from "./config/paths.ts";
import type { Log } from "./log.ts";
import { createSupervisor, type KnownTools, type Supervisor } from "./supervisor.ts";

export interface SessionContext {
  emit: (event: WorkerEvent) => void;
  log: Log;
  cache: CachePool;
}

export interface Session {
  /** The configuration is read and every server that must start is starting. */
  planned: Promise<void>;
  settleTools(timeoutMs: number, signal: AbortSignal): Promise<ConnectionMethods["settleTools"]["value"]>;
  callTool(params: CallToolParams, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  reconnect(server: string | undefined): Promise<void>;
  turnEnded(): Promise<void>;
  status(): Promise<StatusReport>;
  close(): Promise<void>;
}

interface Started {
  config: LoadedConfig;
  supervisor: Supervisor;
  catalog: ReturnType<typeof createCatalogPublisher>;
}

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Tools of servers whose cache entry fits their definition. Without a readable cache: none. */
async function loadKnownTools(
  { servers }: LoadedConfig,
  cachePath: string,
  cache: CachePool,
): Promise<{ known: Record<string, KnownTools>; hashes: Map<string, string> }> {
  const hashed = await cache.hashDefinitions(servers.map((server) => server.raw));
  const hashes = new Map(servers.map((server, i) => [server.name, hashed[i] ?? ""]));
  return { known: await cache.readCache(cachePath, Object.fromEntries(hashes)), hashes };
}

async function start(facts: SessionFacts, { emit, log, cache }: SessionContext): Promise<Started> {
  const { generation, agentDir, cwd } = facts;
  const config = await loadConfig(configSources(facts));
  for (const problem of config.problems) log.warn(describeProblem(problem));

  const supervisor: Supervisor = createSupervisor(config.servers, {
    cwd,
    npxCacheFile: npxCacheFile(agentDir),
    log,
    emit,
    idleTimeoutMs: LIMITS.idleTimeoutMs,
    maxMessageBytes: LIMITS.messageBytes,
    onStatus: (server) => emit({ type: "server", generation, status: server.status() }),
    onTools: (server) => catalog.changed(server),
  });
  const servers = supervisor.servers.map((server) => server.status());
  const settings = catalogSettings(config.settings);
  emit({ type: "planned", generation, servers, problems: config.problems, settings });

  const cachePath = cacheFile(agentDir);
  const { known, hashes } = await loadKnownTools(config, cachePath, cache);
  const catalog = createCatalogPublisher({
    generation,
    cachePath,
    snapshotPath: join(agentDir, SNAPSHOT_FOLDER, snapshotFileName(cwd, sha256Hex)),
    knownChecksum: facts.snapshotChecksum,
    servers: () => supervisor.servers,
    settings: () => settings,
    hashOf: (server) => hashes.get(server) ?? "",
    cache,
    emit,
  });
  supervisor.start(known);
  // Also without any fresh list: servers may have been added, removed or changed since the snapshot.
  catalog.changed();
  return { config, supervisor, catalog };
}

export function openSession(facts: SessionFacts, context: SessionContext): Session {
  const started = start(facts, context);
  return {
    planned: started.then(() => undefined),
    settleTools: async (timeoutMs, signal) => {
      const { supervisor, catalog } = await started;
      const pending = await supervisor.settleTools(timeoutMs, signal);
      await catalog.flush();
      return { pending, checksum: catalog.checksum };
    },
    callTool: async (params, signal) => {
      const { supervisor } = await started;
      return runCall(params, { supervisor, emit: context.emit, signal });
    },
    reconnect: async (server) => (await started).supervisor.reconnect(server),
    turnEnded: async () => (await started).supervisor.revive(),
    status: async () => {
      const { config, supervisor } = await started;
      return {
        servers: supervisor.servers.map((server) => server.status()),
        problems: config.problems,
        files: config.files,
      };
    },
    close: async () => {
      const { supervisor, catalog } = await started;
      await Promise.all([catalog.finish(), supervisor.close()]);
    },
  };
}
