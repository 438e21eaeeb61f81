/**
 * Gathers what the panel shows of the session at one moment: its servers and last report, what was read on demand, costs,
 * and what the person has chosen. Reads again what is shown when the session has changed. Called by: component.ts.
 */
import { homedir } from "node:os";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import { createCostCounter } from "./costs.ts";
import { changesTools } from "./events.ts";
import type { PanelHost } from "./host.ts";
import type { State, World } from "./model/model.ts";
import { createReader } from "./readings.ts";

/** Changes within this time are read together: thirty servers that come and go must not cost thirty readings. */
const READ_MS = 150;

type Report = Pick<World, "problems" | "files" | "questions" | "refused">;

const reportOf = ({ problems, files, questions, refused }: Report): Report => ({
  problems,
  files,
  questions,
  refused,
});

export interface SourceOptions {
  host: PanelHost;
  /** Where the person is now. */
  state: () => State;
  chosen: () => World["chosen"];
  /** The tools of a server have been read, or read again. */
  onTools: () => void;
  /** The world is another one. */
  onChange: () => void;
  onFailed: (error: unknown) => void;
}

export interface WorldSource {
  now(): World;
  /** Asks the session for its report, and counts the costs. */
  start(): void;
  /** Takes what the event says. */
  take(event: WorkerEvent): void;
  /** Reads what the shown view lacks. */
  follow(state: State): void;
  /** Reads again soon what is shown. */
  readAgain(): void;
  stop(): void;
}

export function createWorldSource(options: SourceOptions): WorldSource {
  const { host, state, chosen, onTools, onChange, onFailed } = options;
  let report: Report = { problems: [], files: [], questions: [], refused: [] };
  let tools: World["tools"] | undefined;
  let timer: NodeJS.Timeout | undefined;
  const counter = createCostCounter(onChange);
  const count = (): void => {
    const declared = new Set(host.declared());
    counter.count(host.catalog(), (tool) => tool.direct === true || declared.has(tool.name));
  };
  const onRead = (): void => {
    const now = reader.now();
    if (now.tools !== tools) onTools();
    tools = now.tools;
    onChange();
  };
  const reader = createReader(host, onRead, onFailed);
  return {
    now: () => ({
      servers: host.servers(),
      ...report,
      ...reader.now(),
      costs: counter.costs(),
      tokensOf: counter.of,
      chosen: chosen(),
      home: homedir(),
      now: Date.now(),
    }),
    start: () => {
      count();
      host
        .ask("status", {})
        .then((told) => {
          report = reportOf(told);
          onChange();
        })
        .catch(onFailed);
    },
    take: (event) => {
      if (event.type === "planned") report = reportOf(event);
      if (changesTools(event)) count();
    },
    follow: reader.follow,
    readAgain: () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        reader.changed(state());
      }, READ_MS).unref();
    },
    stop: () => {
      clearTimeout(timer);
      counter.stop();
      reader.stop();
    },
  };
}
