/**
 * Results of a session: how the results of a server are shaped (shape.ts), the files that hold long ones as a whole
 * (store.ts), and the statistics of calls (stats.ts). Must not: call a server. To show another kind of content: content.ts.
 * To change how long results are cut: guard.ts.
 */
import { join } from "node:path";
import type { StatsReport } from "../../../src/shared/protocol/calls.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { Log } from "../../shared/log.ts";
import { guardFrom, type Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/server.ts";
import { resourceReader } from "../tools/listed.ts";
import type { ResultSettings } from "./content.ts";
import { createStats, readStats, type Stats, statsSettings } from "./stats.ts";
import { createResultStore, RESULTS_FOLDER, type ResultStore, removeOldResults } from "./store.ts";
import { toonWanted } from "./structured.ts";

interface ResultsOptions {
  agentDir: string;
  settings: () => Settings;
  log: Log;
  /** Shows the user a problem that the user can mend. */
  warn: (problem: string) => void;
}

export class Results {
  readonly store: ResultStore;
  readonly #options: ResultsOptions;
  #open: { stats: Stats; path: string; flushDelayMs: number } | undefined;

  constructor(options: ResultsOptions) {
    const { agentDir, log, warn } = options;
    const root = join(agentDir, RESULTS_FOLDER);
    this.#options = options;
    this.store = createResultStore({ root, onFull: warn });
    removeOldResults(root).catch((error) => log.warn(`old results cannot be removed: ${messageOf(error)}`));
  }

  /** How results of this server are shaped, under the current settings. `servers`: all servers of the session. */
  settingsFor(server: Server, servers: readonly Server[]): ResultSettings {
    const settings = this.#options.settings();
    return {
      guard: guardFrom(settings.outputGuard, server.definition.outputGuard),
      toon: toonWanted(settings.toonEncode, server.name),
      readResource: resourceReader(server, { servers, settings }),
    };
  }

  /** Undefined if the settings do not ask for statistics. */
  stats(): Stats | undefined {
    const wanted = this.#statsWanted();
    if (!wanted) return undefined;
    if (this.#open?.path !== wanted.path || this.#open.flushDelayMs !== wanted.flushDelayMs) {
      this.#open = { ...wanted, stats: createStats({ ...wanted, onProblem: this.#options.warn }) };
    }
    return this.#open.stats;
  }

  /** Throws `bad_config` if the file of the statistics cannot be read. */
  async statsReport(): Promise<StatsReport> {
    const wanted = this.#statsWanted();
    if (!wanted) return { captured: false };
    await this.stats()?.flush();
    return { captured: true, summary: await readStats(wanted.path) };
  }

  async close(): Promise<void> {
    await this.#open?.stats.flush();
  }

  #statsWanted() {
    const { settings, agentDir } = this.#options;
    return statsSettings(settings().captureStats, agentDir);
  }
}
