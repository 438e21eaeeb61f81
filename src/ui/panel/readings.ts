/**
 * What the panel reads on demand, for the view that is open: a server's details and tools, a schema, a log, a tried search,
 * statistics, the doctor. Each is read once and again when the session says that it changed; nothing is asked while nothing changes,
 * but for the log, whose request waits in the worker. An answer that comes too late is dropped.
 */
import { type Catalog, type CatalogTool, createSlices, eachTool } from "../../catalog/catalog.ts";
import { renderDoctor } from "../../report/doctor.ts";
import { renderStats } from "../../report/stats.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import type { ServerDetails } from "../../shared/protocol/panel.ts";
import type { PanelHost } from "./host.ts";
import {
  reportKey,
  type State,
  shown,
  type ToolList,
  type ToolRow,
  type View,
  type World,
} from "./model/model.ts";

type ReportView = Extract<View, { name: "stats" | "doctor" }>;

export type Readings = Pick<World, "details" | "tools" | "schema" | "log" | "report" | "tried">;

export interface Reader {
  now(): Readings;
  /** Reads what the shown view lacks. */
  follow(state: State): void;
  /** The session has changed: what is shown is read again. */
  changed(state: State): void;
  stop(): void;
}

/** More hits than a person compares. */
const HITS = 50;
/** Of a description: enough for a filter. */
const FILTER_CHARS = 300;
/** Milliseconds between two readings of a log after one failed. */
const LOG_PAUSE_MS = 2_000;

const rowOf = (details: ServerDetails["tools"], at: number, tool: CatalogTool | undefined): ToolRow => {
  const key = details.names[at] ?? "";
  const description = tool?.description ?? "";
  return {
    key,
    name: tool?.name,
    description,
    exposure: details.exposures[at] ?? "search",
    place: details.places[details.rules[at] ?? -1],
    text: `${key}\n${description.slice(0, FILTER_CHARS)}`.toLowerCase(),
  };
};

/** In slices: there may be thousands of tools. Undefined if `isOver` came true meanwhile. */
async function listOf(
  server: string,
  { tools }: ServerDetails,
  catalog: Catalog,
  isOver: () => boolean,
): Promise<ToolList | undefined> {
  const slices = createSlices();
  const known = new Map<string, CatalogTool>();
  for (const tool of eachTool(catalog)) {
    const pause = slices.step();
    if (pause) await pause;
    if (tool.server.name === server) known.set(tool.tool, tool);
  }
  const rows: ToolRow[] = [];
  const at = new Map<string, number>();
  for (let i = 0; i < tools.names.length; i++) {
    const pause = slices.step();
    if (pause) await pause;
    if (isOver()) return undefined;
    const row = rowOf(tools, i, known.get(tools.names[i] ?? ""));
    at.set(row.key, rows.push(row) - 1);
  }
  return isOver() ? undefined : { rows, at };
}

/** `failed`: tells the person why something could not be read. */
export function createReader(host: PanelHost, onRead: () => void, failed: (error: unknown) => void): Reader {
  let readings: Readings = {
    details: new Map(),
    tools: new Map(),
    schema: undefined,
    log: undefined,
    report: undefined,
    tried: undefined,
  };
  let isOver = false;
  /** What is being read, or was read for the shown view. */
  let serverRead: string | undefined;
  let run = 0;
  let schemaRead: string | undefined;
  let queryRead: string | undefined;
  let reportRead: string | undefined;
  let logRead: { server: string; giveUp: AbortController } | undefined;

  const put = (part: Partial<Readings>): void => {
    if (isOver) return;
    readings = { ...readings, ...part };
    onRead();
  };
  const quietly = (task: Promise<void>): void => {
    task.catch((error: unknown) => {
      if (!isOver) failed(error);
    });
  };

  const readServer = async (server: string): Promise<void> => {
    const own = ++run;
    serverRead = server;
    const details = await host.ask("serverDetails", { server });
    if (own !== run) return;
    put({ details: new Map([[server, details]]) });
    const list = await listOf(server, details, host.catalog(), () => own !== run || isOver);
    if (list) put({ tools: new Map([[server, list]]) });
  };

  const readSchema = async (server: string, tool: string): Promise<void> => {
    schemaRead = `${server}\0${tool}`;
    const text = await host.ask("declaredSchema", { server, tool });
    put({ schema: { server, tool, text: text ?? "Its server declares no schema that could be kept." } });
  };

  const tryQuery = async (query: string): Promise<void> => {
    queryRead = query;
    if (query.trim() === "") return put({ tried: undefined });
    const { hits, likely, tookMs } = await host.search(query, HITS);
    if (queryRead !== query) return;
    const told = hits.map(({ tool, score }) => ({
      key: tool.name,
      server: tool.server.name,
      tool: tool.tool,
      score,
      description: tool.description,
    }));
    put({ tried: { query, hits: told, likely, tookMs, count: host.catalog().count } });
  };

  const readReport = async (view: ReportView): Promise<void> => {
    const of = reportKey(view);
    reportRead = of;
    if (view.name === "stats") {
      const report = await host.ask("stats", {});
      if (reportRead === of) put({ report: { of, text: (columns) => renderStats(report, columns) } });
      return;
    }
    const report = await host.ask("diagnose", { server: view.server });
    if (reportRead === of) put({ report: { of, text: (columns) => renderDoctor(report, columns) } });
  };

  const followLog = async (server: string, signal: AbortSignal): Promise<void> => {
    let seen: number | undefined;
    while (!signal.aborted) {
      try {
        const { lines, size } = await host.ask("serverLog", { server, seen }, signal);
        if (signal.aborted) return;
        if (seen !== size) put({ log: { server, lines } });
        seen = size;
      } catch (error) {
        if (signal.aborted) return;
        // The worker may have ended; the next one reads the same file.
        put({ log: { server, lines: [messageOf(error)] } });
        seen = undefined;
        await new Promise((resolve) => {
          setTimeout(resolve, LOG_PAUSE_MS).unref();
        });
      }
    }
  };
  const showLog = (server: string | undefined): void => {
    if (logRead?.server === server) return;
    logRead?.giveUp.abort();
    logRead = undefined;
    if (server === undefined) return;
    const giveUp = new AbortController();
    logRead = { server, giveUp };
    void followLog(server, giveUp.signal);
  };

  const follow = (state: State): void => {
    const view = shown(state);
    const server = state.views.map((one) => ("server" in one ? one.server : undefined)).findLast(Boolean);
    if (server === undefined) serverRead = undefined;
    else if (server !== serverRead) quietly(readServer(server));
    if (view.name === "tool" && schemaRead !== `${view.server}\0${view.tool}`) {
      quietly(readSchema(view.server, view.tool));
    }
    if (view.name === "search" && queryRead !== view.query) quietly(tryQuery(view.query));
    if (view.name !== "stats" && view.name !== "doctor") reportRead = undefined;
    else if (reportRead !== reportKey(view)) quietly(readReport(view));
    showLog(view.name === "log" ? view.server : undefined);
  };

  return {
    now: () => readings,
    follow,
    changed: (state) => {
      serverRead = undefined;
      schemaRead = undefined;
      queryRead = undefined;
      follow(state);
    },
    stop: () => {
      isOver = true;
      run++;
      showLog(undefined);
    },
  };
}
