/**
 * Results of a session: how the results of a server are shaped (shape.ts), the files that hold long ones as a whole
 * (store.ts), and the statistics of calls (stats.ts). Must not: call a server. To show another kind of content: content.ts.
 * To change how long results are cut: guard.ts.
 */
import { join } from "node:path";
import type { StatsReport } from "../../../src/shared/protocol/calls.ts";
import { type ErrorCode, messageOf } from "../../../src/shared/protocol/errors.ts";
import { formatBytes, formatMs } from "../../../src/shared/text/amounts.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { Log } from "../../shared/log.ts";
import { wantedResultBytes } from "../../shared/signs.ts";
import { guardForTool, guardFrom, type Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/server.ts";
import { resourceReader } from "../tools/listed.ts";
import type { ResultSettings } from "./content.ts";
import type { ResultStore } from "./files.ts";
import { createStats, readStats, type Stats, type StatsEntry, statsSettings } from "./stats.ts";
import { createResultStore, RESULTS_FOLDER, removeOldResults } from "./store.ts";
import { toonWanted } from "./structured.ts";

const TOOL_CHARS = 200;

interface ResultsOptions {
  agentDir: string;
  settings: () => Settings;
  log: Log;
  /** Shows the user a problem that the user can mend. */
  warn: (problem: string) => void;
}

/** Whoever called has ended the call. */
const QUIET: ReadonlySet<ErrorCode> = new Set(["cancelled", "not_approved"]);

/** Names, time and sizes: no argument and no answer. A result that was cut has two sizes. */
function callLine(
  { server, tool, failed, durationMs, receivedBytes, shownBytes }: StatsEntry,
  code: ErrorCode | undefined,
): string {
  const what = `${server}/${oneLine(tool, TOOL_CHARS)}`;
  if (code !== undefined) return `${what} ended with ${code} after ${formatMs(durationMs)}`;
  const cut = shownBytes < receivedBytes ? `, of which the model got ${formatBytes(shownBytes)}` : "";
  return `${what} answered ${failed ? "with an error " : ""}after ${formatMs(durationMs)}: ${formatBytes(receivedBytes)}${cut}`;
}

export class Results {
  readonly store: ResultStore;
  readonly #options: ResultsOptions;
  #open: { stats: Stats; path: string; flushDelayMs: number } | undefined;

  constructor(options: ResultsOptions) {
    const { agentDir, log, warn } = options;
    const root = join(agentDir, RESULTS_FOLDER);
    this.#options = options;
    const onOldKept = (error: unknown): void =>
      log.warn(`old results cannot be removed: ${messageOf(error)}`);
    this.store = createResultStore({ root, onFull: warn, onOldKept });
    removeOldResults(root).catch(onOldKept);
  }

  /**
   * How results of this server are shaped, under the current settings. `servers`: all servers of the session. `tool`: the
   * server's name of the tool that was called, if one was.
   */
  settingsFor(server: Server, servers: readonly Server[], tool?: string): ResultSettings {
    const settings = this.#options.settings();
    const guards = [settings.outputGuard, server.definition.outputGuard] as const;
    const called = tool === undefined ? undefined : server.tools?.find(({ name }) => name === tool);
    const wantedBytes = called && wantedResultBytes(called);
    return {
      guard: wantedBytes === undefined ? guardFrom(...guards) : guardForTool(wantedBytes, ...guards),
      toon: toonWanted(settings.toonEncode, server.name),
      readResource: resourceReader(server, { servers, settings }),
    };
  }

  /** A call has ended: a line of the log, and of the statistics. `code`: of the error that it ended with. */
  called(entry: StatsEntry, code?: ErrorCode): void {
    const { log } = this.#options;
    log.write(code === undefined || QUIET.has(code) ? "info" : "warn", callLine(entry, code));
    this.#stats()?.record(entry);
  }

  /** Undefined if the settings do not want statistics. */
  #stats(): Stats | undefined {
    const wanted = this.#statsWanted();
    if (!wanted) return undefined;
    if (this.#open?.path !== wanted.path || this.#open.flushDelayMs !== wanted.flushDelayMs) {
      const { warn, log, settings } = this.#options;
      // A file that nobody has named is a courtesy: the log alone says that it cannot be written.
      const onProblem = typeof settings().captureStats === "object" ? warn : log.warn;
      this.#open = { ...wanted, stats: createStats({ ...wanted, onProblem }) };
    }
    return this.#open.stats;
  }

  /** Throws `bad_config` if the file of the statistics cannot be read. */
  async statsReport(): Promise<StatsReport> {
    const wanted = this.#statsWanted();
    if (!wanted) return { captured: false };
    await this.#stats()?.flush();
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
