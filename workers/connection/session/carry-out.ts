/**
 * Carries a plan of the configuration out: servers, then what the cache knows of them, then the catalog. Owns the
 * settings and files of the plan that runs.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { StatusReport } from "../../../src/shared/protocol/session.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { commandFor } from "../../shared/commands.ts";
import {
  boundResources,
  normalizePrompts,
  normalizeResources,
  normalizeTemplates,
} from "../../shared/listed.ts";
import type { Log } from "../../shared/log.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { normalizeSkills } from "../../shared/skills.ts";
import type { CacheQuery, KnownEntry } from "../../shared/tasks.ts";
import type { CacheWorker } from "../catalog/cache-worker.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import type { DefinitionHashes } from "../catalog/kept.ts";
import { catalogSettings } from "../catalog/publish.ts";
import type { ConfigState, OnPlan, RunningConfiguration } from "../config/config.ts";
import { cacheIdentity } from "../config/entry/cache-identity.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { DEFAULT_SETTINGS, type Settings } from "../config/entry/settings.ts";
import { policyFile } from "../config/files/sources.ts";
import { findHosts, titleOf } from "../config/found/found.ts";
import { describeEffect, type Effect, isIdle, type Plan } from "../config/plan/plan.ts";
import { messageLimitIsOf } from "../messages/too-large.ts";
import type { KnownTools } from "../servers/lists.ts";
import type { Withheld } from "../servers/status.ts";
import type { Supervisor } from "../servers/supervisor.ts";

const HINT_FILE = "mcp-hint.json";

/** True for the one session that made the file. False also if it cannot be made: else every start would tell. */
const isFirst = (agentDir: string): Promise<boolean> =>
  writeFile(join(agentDir, HINT_FILE), `${JSON.stringify({ version: 1, toldAt: Date.now() })}\n`, {
    // Fails if there is anything of that name, a link too: of several sessions one tells.
    flag: "wx",
    mode: 0o600,
  }).then(
    () => true,
    () => false,
  );

/** For example `7 servers of Claude Code and Cursor`; undefined if other programs have none. */
async function othersText(running: RunningConfiguration): Promise<string | undefined> {
  const found = await findHosts(running.facts);
  const counts = found
    .map(({ host, files }) => ({ host, count: files.reduce((sum, { servers }) => sum + servers.length, 0) }))
    .filter(({ count }) => count > 0);
  const titles = counts.map(({ host }) => titleOf(host));
  const all = counts.reduce((sum, { count }) => sum + count, 0);
  const names = [titles.slice(0, -1).join(", "), titles.at(-1)].filter(Boolean).join(" and ");
  return all === 0 ? undefined : `${counted(all, "server")} of ${names}`;
}

/** The line; undefined if it was told before, or there is something to see in `/mcp` already. */
export async function firstHint(running: RunningConfiguration): Promise<string | undefined> {
  const { servers, problems } = running.applied;
  if (servers.length + problems.length > 0 || !(await isFirst(running.facts.agentDir))) return undefined;
  const others = await othersText(running);
  const add = `No MCP server is configured yet. ${commandFor("add")} adds one`;
  return others === undefined
    ? `${add}.`
    : `${add}, ${commandFor("import")} takes over what other programs have: ${others}.`;
}

/** A change is reported when the servers that it started have settled, but not later than this. */
const NOTICE_WAIT_MS = 10_000;

interface EffectNoticeOptions {
  supervisor: Pick<Supervisor, "servers" | "settleTools">;
  catalog: Pick<CatalogPublisher, "withdraw" | "flush">;
  log: Log;
  emit: (event: WorkerEvent) => void;
  /** Fires when the session ends: nothing is reported then. */
  signal: AbortSignal;
}

/** Never rejects: what goes wrong is in the log. */
export async function reportEffect(change: Effect, options: EffectNoticeOptions): Promise<void> {
  const { supervisor, log, emit } = options;
  try {
    if (!(await isShown(change, options))) return;
    const text = describeEffect(change, toolCounts(supervisor.servers));
    if (text === undefined) return;
    log.info(text);
    emit({ type: "notice", text, level: "info" });
  } catch (error) {
    log.error(`reporting a change failed: ${(error as Error).message}`);
  }
}

/**
 * Settles when main has what the notice says, so that it is true when a person reads it. A server that was replaced
 * shows its old tools until the new one has listed its own. False: the session ended meanwhile.
 */
async function isShown(
  change: Effect,
  { supervisor, catalog, signal }: EffectNoticeOptions,
): Promise<boolean> {
  if (catalog.withdraw() && startedBy(change).length === 0) return true;
  await supervisor.settleTools({ timeoutMs: NOTICE_WAIT_MS }, signal);
  if (signal.aborted) return false;
  await catalog.flush();
  return true;
}

/** Name -> number of tools, for the servers whose tools are known. */
const toolCounts = (servers: Supervisor["servers"]): Map<string, number> =>
  new Map(servers.flatMap(({ name, held, toolCount }) => (held ? [[name, toolCount] as const] : [])));

interface PlanCarrierOptions {
  cwd: string;
  /** Absolute path of the cache file. */
  cachePath: string;
  supervisor: Pick<Supervisor, "servers" | "carryOut" | "restoreAndConnect" | "lookAgain" | "connectsShared">;
  catalog: Pick<CatalogPublisher, "noteUsed" | "changed">;
  hashes: DefinitionHashes;
  cache: Pick<CacheWorker, "readCache" | "warm">;
  /** Nothing connects before a request needs it. */
  onDemand?: boolean | undefined;
  emit: (event: WorkerEvent) => void;
  /** A plan changed something that the person knew, and is carried out. */
  onChanged: (change: Effect) => void;
  /** What the first plan changes. Absent: nobody knew of anything before. */
  sinceRest?: (first: Plan) => Effect | undefined;
  /** Settles when the servers of the first plan may start. */
  firstRequestGone: () => Promise<void>;
  /** Fires when the session ends: a plan that is being carried out then connects nothing more. */
  signal: AbortSignal;
}

/** The plan that runs, as the rest of the session reads it. */
export class CurrentPlan {
  settings: Settings = DEFAULT_SETTINGS;
  /**
   * Files that the configuration was read from, and the policy: a snapshot that is older may name servers that the policy denies. The
   * same list stays the same object: lists are compared by identity.
   */
  files: readonly string[] = [];
  /** Servers that are switched off for this session, in order; undefined: none. */
  off: readonly string[] | undefined;

  take(settings: Settings, { files, off }: Pick<ConfigState, "files" | "off">): void {
    this.settings = settings;
    this.off = off;
    messageLimitIsOf(settings.messageLimitOf);
    const all = [...files, policyFile(process.platform)];
    if (all.join("\0") !== this.files.join("\0")) this.files = all;
  }
}

export function createPlanCarrier(current: CurrentPlan, options: PlanCarrierOptions): OnPlan {
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

  /** What the cache knows of the servers that start. */
  const readKnown = (names: ReadonlySet<string>, hashed: Promise<unknown>) => {
    const definitions = supervisor.servers
      .map(({ definition }) => definition)
      .filter(({ name }) => names.has(name));
    const reading = Promise.all([read(cacheQuery(cachePath, definitions, cwd)), hashed]);
    return abortable(reading, signal, "The plan").catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  };

  /**
   * Stores what servers have listed under their new hashes: other rules need no other connection, and the next session would
   * not know the tools. Without the resources or the skills that it is to show now, a server is asked for them.
   */
  const storeAgain = (changed: readonly string[], { servers }: Plan): void => {
    const lacksSkills = servers.flatMap((one) =>
      one.action === "update" && one.before.skillPolicy.use === false && one.after.skillPolicy.use !== false
        ? [one.name]
        : [],
    );
    for (const server of supervisor.servers) {
      const { name, hasOwnLists, resources, definition } = server;
      const isWhole = (resources || !definition.exposeResources) && !lacksSkills.includes(name);
      if (changed.includes(name) && hasOwnLists && isWhole) catalog.changed(server);
    }
  };

  /** Gives the servers that start what the cache knows of them, and connects those that are to be up. */
  const start = async (reading: ReturnType<typeof readKnown>): Promise<void> => {
    const known = await reading;
    if (known === undefined) return;
    const [{ entries, used }] = known;
    catalog.noteUsed(used);
    supervisor.restoreAndConnect(
      Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, knownTools(entry)])),
    );
  };

  return async (change, state, accepted, mayRun) => {
    if (signal.aborted) return;
    current.take(change.settings.after, state);
    supervisor.carryOut(change, withheldServers(state), mayRun);
    emit({
      type: "planned",
      settings: catalogSettings(current.settings, current.files),
      accepted,
      ...statusReport(supervisor, state),
    });
    const starting = new Set(startedBy(change));
    const prepare = () => {
      const definitions = supervisor.servers.map(({ definition }) => definition);
      const hashed = hashes.update(definitions).then((changed) => storeAgain(changed, change));
      // A plan that starts no server need not wait for the cache.
      return starting.size === 0 ? undefined : readKnown(starting, hashed);
    };
    // A shared server that runs already is connected in a moment: what that needs is read while Pi prepares its request.
    const early = isFirst && supervisor.connectsShared ? prepare() : undefined;
    // A failure is reported where it is awaited.
    early?.catch(() => undefined);
    if (isFirst) await firstRequestGone();
    if (signal.aborted) return;
    const reading = early ?? prepare();
    if (reading) await start(reading);
    if (signal.aborted) return;
    // Also if no server has listed anything: servers may have been added, removed or changed since the snapshot.
    catalog.changed();
    // Not sooner: a server that replaces another would not connect yet.
    supervisor.lookAgain();
    const effect = isFirst ? options.sinceRest?.(change) : change;
    if (effect && !isIdle(effect)) onChanged(effect);
    isFirst = false;
  };
}

export const statusReport = (
  { servers }: Pick<Supervisor, "servers">,
  { off: _, ...state }: ConfigState,
): StatusReport => ({ servers: servers.map((server) => server.status()), ...state });

/** Names of the servers that a plan starts or replaces. */
const startedBy = ({ servers }: Effect): string[] =>
  servers.filter(({ action }) => action === "start" || action === "restart").map(({ name }) => name);

/** Names of the servers that a plan replaces or removes. */
export const endedBy = ({ servers }: Effect): string[] =>
  servers.filter(({ action }) => action === "restart" || action === "stop").map(({ name }) => name);

/** Servers that may not run -> the reason, worded to follow a colon, and who can allow them. */
const withheldServers = ({ refused, questions }: Pick<ConfigState, "refused" | "questions">): Withheld =>
  new Map([
    ...questions.map(
      ({ server }) => [server, { reason: "it waits for the user's consent", by: "user" }] as const,
    ),
    ...refused.map(
      ({ name, reason, byPolicy }) => [name, { reason, by: byPolicy ? "administrator" : "user" }] as const,
    ),
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
  skills,
  protocol,
  unattended,
  cachedAt,
}: KnownEntry): KnownTools => ({
  tools,
  protocol,
  unattended,
  cachedAt,
  instructions,
  skills: skills && normalizeSkills(skills).slice(0, LIMITS.skillsPerServer),
  prompts: prompts && normalizePrompts(prompts).slice(0, LIMITS.resourcesPerServer),
  resources:
    resources &&
    boundResources({
      resources: normalizeResources(resources),
      templates: normalizeTemplates(resourceTemplates),
    }).known,
});
