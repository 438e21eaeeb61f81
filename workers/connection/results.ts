/**
 * What becomes of the results of a session: where the whole of a long one is kept, what settings and server
 * say of their shape, and what is counted of them.
 */
import { join } from "node:path";
import { messageOf } from "../../src/protocol/errors.ts";
import type { StatsReport } from "../../src/protocol/types.ts";
import type { ResultSettings } from "./calls.ts";
import type { Settings } from "./config/settings.ts";
import { createResultStore, RESULTS_FOLDER, type ResultStore, removeOldResults } from "./content/store.ts";
import type { Log } from "./log.ts";
import { guardFrom } from "./output-guard.ts";
import { resourceReader } from "./resources/reader.ts";
import type { Server } from "./server.ts";
import { createStats, readStats, type Stats, statsSettings } from "./stats.ts";
import { toonWanted } from "./toon.ts";

export interface Results {
  store: ResultStore;
  /** How results of this server are shaped, under the settings of now. `servers`: all of the session. */
  settingsFor(server: Server, servers: readonly Server[]): ResultSettings;
  /** Undefined where nothing is captured. */
  stats(): Stats | undefined;
  /** Throws `bad_config` where their file cannot be read. */
  statsReport(): Promise<StatsReport>;
  close(): Promise<void>;
}

export interface ResultsOptions {
  agentDir: string;
  settings: () => Settings;
  log: Log;
  /** For what the user can mend. */
  warn: (problem: string) => void;
}

export function createResults({ agentDir, settings, log, warn }: ResultsOptions): Results {
  const root = join(agentDir, RESULTS_FOLDER);
  let open: { stats: Stats; path: string; flushDelayMs: number } | undefined;
  removeOldResults(root).catch((error) => log.warn(`old results cannot be removed: ${messageOf(error)}`));

  const stats = (): Stats | undefined => {
    const wanted = statsSettings(settings().captureStats, agentDir);
    if (!wanted) return undefined;
    if (open?.path !== wanted.path || open.flushDelayMs !== wanted.flushDelayMs) {
      open = { ...wanted, stats: createStats({ ...wanted, onProblem: warn }) };
    }
    return open.stats;
  };

  return {
    store: createResultStore({ root }),
    settingsFor: (server, servers) => ({
      guard: guardFrom(settings().outputGuard, server.definition.outputGuard),
      toon: toonWanted(settings().toonEncode, server.name),
      readResource: resourceReader(server, { servers, settings: settings() }),
    }),
    stats,
    statsReport: async () => {
      const wanted = statsSettings(settings().captureStats, agentDir);
      if (!wanted) return { captured: false };
      await stats()?.flush();
      return { captured: true, summary: await readStats(wanted.path) };
    },
    close: async () => {
      await open?.stats.flush();
    },
  };
}
