/**
 * Results of a session. Owns: turning a server's result into text and images for the model (shape), the files that
 * hold long results as a whole (store), and the statistics of calls (stats). Must not: call a server.
 * Called by: session. To show another kind of content: blocks.ts. To change how long results are cut: guard.ts and
 * cut.ts.
 */
import { join } from "node:path";
import type { StatsReport } from "../../../src/shared/protocol/calls.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { Log } from "../../shared/log.ts";
import { guardFrom, type Settings } from "../config/entry/settings.ts";
import { resourceReader } from "../offers/offers.ts";
import type { Server } from "../servers/server.ts";
import type { ResultSettings } from "./context.ts";
import { removeOldResults } from "./room.ts";
import { createStats, readStats, type Stats, statsSettings } from "./stats.ts";
import { createResultStore, RESULTS_FOLDER, type ResultStore } from "./store.ts";
import { toonWanted } from "./toon.ts";

export { type HeldOptions, inBytes, linksIn, type Shaped, shapeAnywhere, toShaped } from "./held.ts";
export { shapeResult } from "./shape.ts";

export interface Results {
  store: ResultStore;
  /** How results of this server are shaped, under the current settings. `servers`: all servers of the session. */
  settingsFor(server: Server, servers: readonly Server[]): ResultSettings;
  /** Undefined if the settings do not ask for statistics. */
  stats(): Stats | undefined;
  /** Throws `bad_config` if the file of the statistics cannot be read. */
  statsReport(): Promise<StatsReport>;
  close(): Promise<void>;
}

export interface ResultsOptions {
  agentDir: string;
  settings: () => Settings;
  log: Log;
  /** Shows the user a problem that the user can mend. */
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
    store: createResultStore({ root, onFull: warn }),
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
