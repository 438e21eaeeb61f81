/**
 * What the panel knows of the session at one moment: its servers and last report, the costs of their tools, what was read for
 * the open view, and what the person has just chosen. Owns: when something is read, read again, or dropped because it comes
 * too late. Nothing is asked while nothing changes, but for the log, whose request waits in the worker.
 */
import { homedir } from "node:os";
import {
  type Catalog,
  type CatalogTool,
  createSlices,
  eachTool,
  inputSchemaOf,
  sameDefinition,
} from "../../catalog/catalog.ts";
import { renderDoctor } from "../../report/doctor.ts";
import { renderStats } from "../../report/status.ts";
import type { WorkerEvent } from "../../shared/protocol/contract.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import { SERVERS_WORD, type ServerDetails } from "../../shared/protocol/person.ts";
import { estimateTokens } from "../../shared/text/search-tool.ts";
import type { McpHost } from "../mcp-host.ts";
import type { FoundTool, ToolIndex } from "./model/find.ts";
import { reportKey } from "./model/model.ts";
import {
  type Cost,
  chosenKey,
  type Effect,
  type State,
  shown,
  type ToolRow,
  type View,
  type World,
} from "./model/state.ts";

/** Changes within this time are read together: thirty servers that come and go must not cost thirty readings. */
const READ_MS = 150;
/** Milliseconds between two readings of a log after one failed. */
const LOG_PAUSE_MS = 2_000;
/** More hits than a person compares. */
const HITS = 50;
/** Of a description: enough for a filter. */
const FILTER_CHARS = 300;
/** Milliseconds of one slice of counting: less than half of what a key press may take. */
const SLICE_MS = 4;

/** Events that change nothing of the panel. */
const UNSEEN: readonly WorkerEvent["type"][] = ["spawned", "exited", "talker", "progress", "renewing"];
/** Events after which the tools may be others. */
const TOOLS: readonly WorkerEvent["type"][] = ["catalog", "removed", "planned"];

export const isSeen = ({ type }: WorkerEvent): boolean => !UNSEEN.includes(type);

/** Whether what the view shows has to be read again. */
export function concerns(event: WorkerEvent, view: View): boolean {
  if (view.name === "stats" || view.name === "doctor" || view.name === "result") return false;
  if (event.type === "server") return "server" in view && view.server === event.status.name;
  return TOOLS.includes(event.type);
}

/** What is read for a key, once. What was begun for another key is given up. */
class Reading {
  #key: string | undefined;
  #giveUp = new AbortController();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  /** `read` drops what it has read once its signal has aborted. */
  start(read: (signal: AbortSignal) => Promise<void>): void {
    this.stop();
    this.#giveUp = new AbortController();
    const { signal } = this.#giveUp;
    read(signal).catch((error: unknown) => {
      if (!signal.aborted) this.#failed(error);
    });
  }

  /** Reads unless that key was the last one. `key`: undefined for nothing. */
  follow(key: string | undefined, read: (signal: AbortSignal) => Promise<void>): void {
    if (key === this.#key) return;
    this.#key = key;
    if (key === undefined) this.stop();
    else this.start(read);
  }

  /** The same key is read again. */
  forget(): void {
    this.#key = undefined;
  }

  stop(): void {
    this.#giveUp.abort();
  }
}

const tokensOf = (tool: CatalogTool): number =>
  estimateTokens(`${tool.name} ${tool.description} ${JSON.stringify(inputSchemaOf(tool))}`);

/** `at`: the tool's position in `details`. `tool`: absent for a hidden tool, which the catalog does not hold. */
function toolRow(details: ServerDetails["tools"], at: number, tool: CatalogTool | undefined): ToolRow {
  const key = details.names[at] ?? "";
  const description = tool?.description ?? "";
  const rule = details.rules[at] ?? -1;
  return {
    key,
    name: tool?.name,
    description,
    exposure: details.exposures[at] ?? "search",
    place: details.places[rule],
    serversWord: rule === SERVERS_WORD.pages ? "pages" : rule === SERVERS_WORD.wish ? "wish" : undefined,
    text: `${key}\n${description.slice(0, FILTER_CHARS)}`.toLowerCase(),
  };
}

type Report = Pick<World, "problems" | "files" | "questions" | "refused">;
type Readings = Pick<World, "details" | "tools" | "schema" | "log" | "report" | "tried" | "decisions">;
type Expose = Extract<Effect, { type: "expose" }>;

const keysOf = ({ server, tools = [] }: Expose): string[] => tools.map((tool) => chosenKey(server, tool));

interface Viewer {
  state: () => State;
  /** The world is another one. */
  changed: () => void;
  failed: (error: unknown) => void;
  /** As in the world. */
  unread: () => Promise<readonly string[]>;
}

function foundTool({ name, tool, server, description }: CatalogTool): FoundTool {
  const names = `${server.name} ${tool}`.toLowerCase();
  const about = description.slice(0, FILTER_CHARS);
  return {
    name,
    server: server.name,
    tool,
    description: about,
    names,
    text: `${names} ${name} ${about}`.toLowerCase(),
  };
}

/** A tool with its estimated tokens, by its name in Pi. */
type Counts = Map<string, { tool: CatalogTool; tokens: number }>;

export class WorldSource {
  readonly #host: McpHost;
  readonly #panel: Viewer;
  #report: Report = { problems: [], files: [], questions: [], refused: [] };
  #read: Readings = {
    details: new Map(),
    tools: new Map(),
    schema: undefined,
    log: undefined,
    report: undefined,
    tried: undefined,
    decisions: undefined,
  };
  #costs: ReadonlyMap<string, Cost> = new Map();
  /** A tool that a newer catalog holds unchanged is not counted again. */
  #counts: Counts = new Map();
  #index: ToolIndex = [];
  #loaded: ReadonlySet<string> = new Set();
  readonly #chosen = new Map<string, Expose["to"]>();
  /** Keys of `#chosen` that are written. They go when the tools are read again. */
  readonly #written = new Set<string>();
  readonly #reading: Readonly<
    Record<"server" | "schema" | "search" | "report" | "log" | "cost" | "decisions", Reading>
  >;
  #timer: NodeJS.Timeout | undefined;
  #unread: readonly string[] = [];
  #isOver = false;

  constructor(host: McpHost, panel: Viewer) {
    this.#host = host;
    this.#panel = panel;
    const reading = (): Reading => new Reading(panel.failed);
    this.#reading = {
      server: reading(),
      schema: reading(),
      search: reading(),
      report: reading(),
      log: reading(),
      cost: reading(),
      decisions: reading(),
    };
  }

  now(): World {
    return {
      ...this.#report,
      ...this.#read,
      servers: this.#host.servers(),
      costs: this.#costs,
      index: this.#index,
      loaded: this.#loaded,
      tokensOf: (name) => this.#counts.get(name)?.tokens,
      chosen: this.#chosen,
      unread: this.#unread,
      home: homedir(),
      now: Date.now(),
    };
  }

  /** Asks the session for its report, and counts the costs. */
  start(): void {
    this.#count();
    this.#panel
      .unread()
      .then((files) => {
        this.#unread = files;
        if (files.length > 0) this.#panel.changed();
      })
      .catch(this.#panel.failed);
    this.#host
      .ask("status", {})
      .then((report) => {
        this.#report = report;
        this.#panel.changed();
      })
      .catch(this.#panel.failed);
  }

  take(event: WorkerEvent): void {
    if (event.type === "planned") this.#report = event;
    if (TOOLS.includes(event.type)) this.#count();
  }

  /** What the person chooses for tools holds at once. */
  choose(effect: Expose): void {
    for (const key of keysOf(effect)) {
      this.#chosen.set(key, effect.to);
      this.#written.delete(key);
    }
  }

  written(effect: Expose): void {
    for (const key of keysOf(effect)) if (this.#chosen.get(key) === effect.to) this.#written.add(key);
  }

  follow(): void {
    const state = this.#panel.state();
    const view = shown(state);
    const name = state.views.map((one) => ("server" in one ? one.server : undefined)).findLast(Boolean) ?? "";
    const { server, schema, search, report, log, decisions } = this.#reading;
    decisions.follow(view.name === "decisions" ? view.name : undefined, (signal) =>
      this.#readDecisions(signal),
    );
    server.follow(name || undefined, (signal) => this.#readServer(name, signal));
    if (view.name === "tool") {
      schema.follow(chosenKey(name, view.tool), (signal) => this.#readSchema(name, view.tool, signal));
    }
    if (view.name === "search")
      search.follow(view.list.filter, (signal) => this.#search(view.list.filter, signal));
    const isReport = view.name === "stats" || view.name === "doctor";
    report.follow(isReport ? reportKey(view) : undefined, (signal) => this.#readReport(view, signal));
    log.follow(view.name === "log" ? name : undefined, (signal) => this.#followLog(name, signal));
  }

  /** Reads again soon what is shown. `withReport`: a report too, which is made once while it is open. */
  readAgain(withReport = false): void {
    if (this.#isOver) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const { server, schema, search, report, decisions } = this.#reading;
      if (withReport) report.forget();
      for (const reading of [server, schema, search, decisions]) reading.forget();
      this.follow();
    }, READ_MS).unref();
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    for (const reading of Object.values(this.#reading)) reading.stop();
  }

  #put(part: Partial<Readings>): void {
    this.#read = { ...this.#read, ...part };
    if (part.tools) {
      for (const key of this.#written) this.#chosen.delete(key);
      this.#written.clear();
    }
    this.#panel.changed();
  }

  /** In slices: there may be thousands of tools. */
  async #readServer(server: string, signal: AbortSignal): Promise<void> {
    const details = await this.#host.ask("serverDetails", { server });
    if (signal.aborted) return;
    this.#put({ details: new Map([[server, details]]) });
    const slices = createSlices();
    const known = new Map<string, CatalogTool>();
    for (const tool of eachTool(this.#host.catalog())) {
      const pause = slices.step();
      if (pause) await pause;
      if (tool.server.name === server) known.set(tool.tool, tool);
    }
    const rows: ToolRow[] = [];
    const at = new Map<string, number>();
    for (const [i, tool] of details.tools.names.entries()) {
      const pause = slices.step();
      if (pause) await pause;
      if (signal.aborted) return;
      at.set(tool, rows.push(toolRow(details.tools, i, known.get(tool))) - 1);
    }
    if (!signal.aborted) this.#put({ tools: new Map([[server, { rows, at }]]) });
  }

  async #readSchema(server: string, tool: string, signal: AbortSignal): Promise<void> {
    const text = await this.#host.ask("declaredSchema", { server, tool });
    if (signal.aborted) return;
    this.#put({
      schema: { server, tool, text: text ?? "Its server declares no schema that could be kept." },
    });
  }

  async #search(query: string, signal: AbortSignal): Promise<void> {
    if (query.trim() === "") return this.#put({ tried: undefined });
    const { hits, likely, tookMs } = await this.#host.search(query, HITS);
    if (signal.aborted) return;
    const told = hits.map(({ tool: { name, server, tool, description }, score }) => ({
      key: name,
      server: server.name,
      tool,
      score,
      description,
    }));
    this.#put({ tried: { query, hits: told, likely, tookMs, count: this.#host.catalog().count } });
  }

  async #readDecisions(signal: AbortSignal): Promise<void> {
    const told = await this.#host.ask("decisions", {});
    if (!signal.aborted) this.#put({ decisions: told.map((one) => ({ ...one, key: one.id })) });
  }

  async #readReport(view: View, signal: AbortSignal): Promise<void> {
    let text: (columns: number) => string;
    let off = false;
    if (view.name === "doctor") {
      const findings = await this.#host.ask("diagnose", { server: view.server });
      text = (columns) => renderDoctor(findings, columns);
    } else {
      const stats = await this.#host.ask("stats", {});
      off = !stats.captured;
      text = (columns) =>
        off
          ? "Calls are not counted. Enter switches it on, in your mcp.json; it stays on this machine."
          : renderStats(stats, columns);
    }
    if (!signal.aborted) this.#put({ report: { of: reportKey(view), text, off } });
  }

  /** Each request waits in the worker until there are new lines. */
  async #followLog(server: string, signal: AbortSignal): Promise<void> {
    let seen: number | undefined;
    while (!signal.aborted) {
      try {
        const { lines, size } = await this.#host.ask("serverLog", { server, seen }, signal);
        if (signal.aborted) return;
        if (seen !== size) this.#put({ log: { server, lines } });
        seen = size;
      } catch (error) {
        if (signal.aborted) return;
        // The worker may have ended; the next one reads the same file.
        this.#put({ log: { server, lines: [messageOf(error)] } });
        seen = undefined;
        await new Promise((resolve) => {
          setTimeout(resolve, LOG_PAUSE_MS).unref();
        });
      }
    }
  }

  #count(): void {
    const { catalog, declared } = this.#host;
    const [now, names] = [catalog(), new Set(declared())];
    this.#reading.cost.start((signal) =>
      this.#countCosts(now, (tool) => tool.direct === true || names.has(tool.name), signal),
    );
  }

  /** In slices that leave the keys alone. `isDeclared`: whether the model has the tool's definition now. */
  async #countCosts(catalog: Catalog, isDeclared: (tool: CatalogTool) => boolean, signal: AbortSignal) {
    const servers = catalog.servers.filter(({ toolsKnown }) => toolsKnown).map(({ name }) => name);
    const nothing = (isWhole: boolean): Cost => ({ declared: 0, all: 0, declaredTools: 0, isWhole });
    // A server that has not been counted yet says so until the walk has ended.
    this.#costs = new Map(servers.map((name) => [name, this.#costs.get(name) ?? nothing(false)]));
    const slices = createSlices({ sliceMs: SLICE_MS, steps: 4 });
    const counts: Counts = new Map();
    const index: FoundTool[] = [];
    const loaded = new Set<string>();
    const costs = new Map(servers.map((name) => [name, nothing(true)]));
    for (const tool of eachTool(catalog)) {
      const pause = slices.step();
      if (pause) await pause;
      if (signal.aborted) return;
      const before = this.#counts.get(tool.name);
      const tokens = before && sameDefinition(before.tool, tool) ? before.tokens : tokensOf(tool);
      counts.set(tool.name, { tool, tokens });
      index.push(foundTool(tool));
      const cost = costs.get(tool.server.name);
      if (!cost) continue;
      cost.all += tokens;
      if (!isDeclared(tool)) continue;
      loaded.add(tool.name);
      cost.declared += tokens;
      cost.declaredTools++;
    }
    this.#counts = counts;
    this.#index = index;
    this.#loaded = loaded;
    this.#costs = costs;
    this.#panel.changed();
  }
}
