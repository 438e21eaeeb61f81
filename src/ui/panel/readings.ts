/**
 * What the panel reads on demand, for the view that is open: a server's details and tools (server-reading), a log
 * (log-reading), a tried search (search-reading), a schema, statistics, the doctor. Each is read once and again when the
 * session says that it changed; nothing is asked while nothing changes, but for the log, whose request waits in the worker.
 * An answer that comes too late is dropped.
 */
import { renderDoctor } from "../../report/doctor.ts";
import { renderStats } from "../../report/stats.ts";
import type { PanelHost } from "./host.ts";
import { createLogReading } from "./log-reading.ts";
import { reportKey, type State, shown, type View, type World } from "./model/model.ts";
import { createSearchReading } from "./search-reading.ts";
import { createServerReading } from "./server-reading.ts";

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

const NOTHING: Readings = {
  details: new Map(),
  tools: new Map(),
  schema: undefined,
  log: undefined,
  report: undefined,
  tried: undefined,
};

/** `failed`: tells the person why something could not be read. */
export function createReader(host: PanelHost, onRead: () => void, failed: (error: unknown) => void): Reader {
  let readings = NOTHING;
  let isOver = false;
  /** What is being read, or was read for the shown view. */
  let schemaRead: string | undefined;
  let reportRead: string | undefined;

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
  const servers = createServerReading(host, put);
  const log = createLogReading(host, (server, lines) => put({ log: { server, lines } }));
  const search = createSearchReading(host, (tried) => put({ tried }));

  const readSchema = async (server: string, tool: string): Promise<void> => {
    schemaRead = `${server}\0${tool}`;
    const text = await host.ask("declaredSchema", { server, tool });
    put({ schema: { server, tool, text: text ?? "Its server declares no schema that could be kept." } });
  };
  const readReport = async (view: ReportView): Promise<void> => {
    const of = reportKey(view);
    reportRead = of;
    const text = await askReport(host, view);
    if (reportRead === of) put({ report: { of, text } });
  };

  const follow = (state: State): void => {
    const view = shown(state);
    quietly(
      servers.follow(state.views.map((one) => ("server" in one ? one.server : undefined)).findLast(Boolean)),
    );
    if (view.name === "tool" && schemaRead !== `${view.server}\0${view.tool}`) {
      quietly(readSchema(view.server, view.tool));
    }
    if (view.name === "search") quietly(search.follow(view.query));
    if (view.name !== "stats" && view.name !== "doctor") reportRead = undefined;
    else if (reportRead !== reportKey(view)) quietly(readReport(view));
    log.follow(view.name === "log" ? view.server : undefined);
  };

  return {
    now: () => readings,
    follow,
    changed: (state) => {
      servers.forget();
      schemaRead = undefined;
      search.forget();
      follow(state);
    },
    stop: () => {
      isOver = true;
      servers.stop();
      log.follow(undefined);
    },
  };
}

/** Answers the report as a text for a width. */
async function askReport(host: PanelHost, view: ReportView): Promise<(columns: number) => string> {
  if (view.name === "stats") {
    const report = await host.ask("stats", {});
    return (columns) => renderStats(report, columns);
  }
  const report = await host.ask("diagnose", { server: view.server });
  return (columns) => renderDoctor(report, columns);
}
