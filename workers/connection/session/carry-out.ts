/**
 * Carries a plan of the configuration out: servers, then what the cache knows of them, then the catalog. Owns the
 * settings and files of the plan that runs. Called by: session.ts, for the first plan and for each change.
 */
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { AcceptedBefore } from "../../../src/shared/protocol/session.ts";
import type { StatusReport } from "../../../src/shared/protocol/status.ts";
import {
  boundResources,
  normalizePrompts,
  normalizeResources,
  normalizeTemplates,
} from "../../shared/listed.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { CacheEntry, CacheQuery } from "../../shared/tasks.ts";
import type { CacheWorker } from "../catalog/cache-worker.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import type { DefinitionHashes } from "../catalog/kept.ts";
import { catalogSettings } from "../catalog/publish.ts";
import type { ConfigState } from "../config/config.ts";
import { cacheIdentity } from "../config/entry/cache-identity.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { DEFAULT_SETTINGS, type Settings } from "../config/entry/settings.ts";
import { isIdle, type Plan } from "../config/plan/plan.ts";
import { messageLimitIsOf } from "../messages/too-large.ts";
import type { KnownTools } from "../servers/lists.ts";
import type { Supervisor } from "../servers/supervisor.ts";

export interface PlanCarrierOptions {
  cwd: string;
  /** Absolute path of the cache file. */
  cachePath: string;
  supervisor: Pick<Supervisor, "servers" | "carryOut" | "restoreAndConnect">;
  catalog: Pick<CatalogPublisher, "noteUsed" | "changed">;
  hashes: DefinitionHashes;
  cache: Pick<CacheWorker, "readCache" | "warm">;
  /** Nothing connects before a request needs it. */
  onDemand?: boolean | undefined;
  emit: (event: WorkerEvent) => void;
  /** A plan after the first one changed something and is carried out. */
  onChanged: (change: Plan) => void;
  /** Settles when the servers of the first plan may start. */
  firstRequestGone: () => Promise<void>;
  /** Fires when the session ends: a plan that is being carried out then connects nothing more. */
  signal: AbortSignal;
}

/** The plan that runs, as the rest of the session reads it. */
export class CurrentPlan {
  settings: Settings = DEFAULT_SETTINGS;
  /** Files that the configuration was read from. The same list stays the same object: lists are compared by identity. */
  files: readonly string[] = [];

  take(settings: Settings, files: readonly string[]): void {
    this.settings = settings;
    messageLimitIsOf(settings.messageLimitOf);
    if (files.join("\0") !== this.files.join("\0")) this.files = files;
  }
}

type CarryOut = (change: Plan, state: ConfigState, accepted: AcceptedBefore) => Promise<void>;

export function createPlanCarrier(current: CurrentPlan, options: PlanCarrierOptions): CarryOut {
  const { cwd, cachePath, supervisor, catalog, hashes, cache, emit, onChanged, signal, firstRequestGone } =
    options;
  let isFirst = true;

  const read = async (query: CacheQuery): ReturnType<CacheWorker["readCache"]> => {
    const found = await cache.readCache(query);
    const isAllKnown = Object.keys(found.entries).length === Object.keys(query.definitions).length;
    // A server of which nothing is known will list its tools, for a snapshot that the thread makes. On demand, this one
    // may never be asked for.
    if (!isAllKnown && !options.onDemand) cache.warm();
    return found;
  };

  /** Gives the servers that start what the cache knows of them, and connects those that are to be up. */
  const start = async (names: ReadonlySet<string>, hashed: Promise<void>): Promise<void> => {
    const definitions = supervisor.servers
      .map(({ definition }) => definition)
      .filter(({ name }) => names.has(name));
    const query = cacheQuery(cachePath, definitions, cwd);
    const reading = Promise.all([read(query), hashed]);
    const known = await abortable(reading, signal, "The plan").catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (known === undefined) return;
    const [{ entries, used }] = known;
    catalog.noteUsed(used);
    supervisor.restoreAndConnect(
      Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, knownTools(entry)])),
    );
  };

  return async (change, state, accepted) => {
    if (signal.aborted) return;
    current.take(change.settings.after, state.files);
    supervisor.carryOut(change, withheldServers(state));
    emit({
      type: "planned",
      settings: catalogSettings(current.settings, current.files),
      accepted,
      ...statusReport(supervisor, state),
    });
    if (isFirst) await firstRequestGone();
    if (signal.aborted) return;
    const hashed = hashes.update(supervisor.servers.map(({ definition }) => definition));
    const starting = startedBy(change);
    // A plan that starts no server need not wait for the cache.
    if (starting.length > 0) await start(new Set(starting), hashed);
    if (signal.aborted) return;
    // Also if no server has listed anything: servers may have been added, removed or changed since the snapshot.
    catalog.changed();
    if (!isFirst && !isIdle(change)) onChanged(change);
    isFirst = false;
  };
}

export const statusReport = ({ servers }: Pick<Supervisor, "servers">, state: ConfigState): StatusReport => ({
  servers: servers.map((server) => server.status()),
  ...state,
});

/** Names of the servers that a plan starts or replaces. */
export const startedBy = ({ servers }: Plan): string[] =>
  servers.filter(({ action }) => action === "start" || action === "restart").map(({ name }) => name);

/** Names of the servers that a plan replaces or removes. */
export const endedBy = ({ servers }: Plan): string[] =>
  servers.filter(({ action }) => action === "restart" || action === "stop").map(({ name }) => name);

/** Servers of the project that may not run -> the reason, worded to follow a colon. */
const withheldServers = ({
  refused,
  questions,
}: Pick<ConfigState, "refused" | "questions">): Map<string, string> =>
  new Map([
    ...questions.map(({ server }) => [server, "it waits for the user's consent"] as const),
    ...refused.map(({ name, reason }) => [name, reason] as const),
  ]);

const cacheQuery = (path: string, definitions: readonly ServerDefinition[], cwd: string): CacheQuery => ({
  path,
  definitions: Object.fromEntries(
    definitions.map((definition) => [definition.name, cacheIdentity(definition, cwd)]),
  ),
});

/** Other adapters write entries too, so their resources are checked like a server's. */
const knownTools = ({
  tools,
  instructions,
  resources,
  resourceTemplates,
  prompts,
  protocol,
}: CacheEntry): KnownTools => ({
  tools,
  protocol,
  instructions,
  prompts: prompts && normalizePrompts(prompts).slice(0, LIMITS.resourcesPerServer),
  resources:
    resources &&
    boundResources({
      resources: normalizeResources(resources),
      templates: normalizeTemplates(resourceTemplates),
    }).known,
});
