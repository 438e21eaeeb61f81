/**
 * What becomes of the results of a session: where the whole of a long one is kept, what settings and server
 * say of their shape, and what is counted of them.
 */
import { join } from "node:path";
import { messageOf } from "../../src/protocol/errors.ts";
import type { ResultSettings } from "./calls.ts";
import type { ServerDefinition } from "./config/definition.ts";
import type { Settings } from "./config/settings.ts";
import { createResultStore, RESULTS_FOLDER, type ResultStore, removeOldResults } from "./content/store.ts";
import type { Log } from "./log.ts";
import { guardFrom } from "./output-guard.ts";
import { createStats, readStats, type Stats, statsSettings } from "./stats.ts";
import { statsTable } from "./stats-table.ts";
import { toonWanted } from "./toon.ts";

export interface Results {
  store: ResultStore;
  /** How results of this server are shaped, under the settings of now. */
  settingsFor(definition: ServerDefinition): ResultSettings;
  /** Undefined where nothing is captured. */
  stats(): Stats | undefined;
  /** The captured statistics as a table, or how to capture some. */
  table(): Promise<string>;
  close(): Promise<void>;
}

export function createResults(options: { agentDir: string; settings: () => Settings; log: Log }): Results {
  const { agentDir, settings, log } = options;
  const root = join(agentDir, RESULTS_FOLDER);
  let open: { stats: Stats; path: string; flushDelayMs: number } | undefined;
  removeOldResults(root).catch((error) => log.warn(`old results cannot be removed: ${messageOf(error)}`));

  const stats = (): Stats | undefined => {
    const wanted = statsSettings(settings().captureStats, agentDir);
    if (!wanted) return undefined;
    if (open?.path !== wanted.path || open.flushDelayMs !== wanted.flushDelayMs) {
      open = { ...wanted, stats: createStats({ ...wanted, onProblem: (problem) => log.warn(problem) }) };
    }
    return open.stats;
  };

  return {
    store: createResultStore({ root }),
    settingsFor: (definition) => ({
      guard: guardFrom(settings().outputGuard, definition.outputGuard),
      toon: toonWanted(settings().toonEncode, definition.name),
    }),
    stats,
    table: async () => {
      const wanted = statsSettings(settings().captureStats, agentDir);
      if (!wanted) return 'Nothing is captured. Set "captureStats": true under "settings" in mcp.json.';
      await stats()?.flush();
      return statsTable(await readStats(wanted.path));
    },
    close: async () => {
      await open?.stats.flush();
    },
  };
}
