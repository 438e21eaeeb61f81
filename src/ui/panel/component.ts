/**
 * Joins model and picture with the terminal: keys in, lines out, a new picture after each event of the session. Holds the
 * reading of the session that the model works on.
 */
import { homedir } from "node:os";
import type { Keybindings, PanelTui, PiContext, RenderTheme } from "../../pi/api.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import { type Act, act, busyText } from "./act.ts";
import { createChoices } from "./choices.ts";
import { createCostCounter } from "./costs.ts";
import { type Area, draw, sizeOf } from "./draw/draw.ts";
import type { PanelHost } from "./host.ts";
import { keyOf, onKey, onWorld, START, type State, shown, type World } from "./model/model.ts";
import { createReader } from "./readings.ts";

/** Rows of the screen that Pi's own lines below the panel take, and one line of the conversation above it. */
const OTHER_ROWS = 5;
const FEWEST_ROWS = 12;
const MOST_ROWS = 40;
/** Changes within this time are read together: thirty servers that come and go must not cost thirty readings. */
const READ_MS = 150;

export interface PanelOptions {
  ctx: PiContext;
  host: PanelHost;
  tui: PanelTui;
  theme: RenderTheme;
  keybindings: Keybindings;
  done: () => void;
}

export interface PanelComponent {
  render(width: number): string[];
  handleInput(data: string): void;
  invalidate(): void;
  dispose(): void;
}

/** Events that change nothing of the panel. */
const UNSEEN: readonly WorkerEvent["type"][] = ["spawned", "exited", "talker", "progress", "renewing"];
/** Events after which the open view is read again. */
const READ_AGAIN: readonly WorkerEvent["type"][] = ["catalog", "removed", "planned", "server"];

type Report = Pick<World, "problems" | "files" | "questions" | "refused">;

const reportOf = ({ problems, files, questions, refused }: Report): Report => ({
  problems,
  files,
  questions,
  refused,
});

export function createPanel({ ctx, host, tui, theme, keybindings, done }: PanelOptions): PanelComponent {
  let isOpen = true;
  let state: State = START;
  let report: Report = { problems: [], files: [], questions: [], refused: [] };
  let width = tui.terminal.columns;
  let timer: NodeJS.Timeout | undefined;
  const redraw = (): void => {
    if (isOpen) tui.requestRender();
  };
  const tell = (change: Partial<State>): void => {
    state = { ...state, ...change };
    redraw();
  };
  const failed = (error: unknown): void => tell({ notice: { text: describeThrown(error), level: "error" } });

  const counter = createCostCounter(redraw);
  const count = (): void => {
    const declared = new Set(host.declared());
    counter.count(host.catalog(), (tool) => tool.direct === true || declared.has(tool.name));
  };
  let tools: World["tools"] | undefined;
  const reader = createReader(
    host,
    () => {
      const now = reader.now();
      if (now.tools !== tools) choices.read();
      tools = now.tools;
      redraw();
    },
    failed,
  );
  const readAgain = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (isOpen) reader.changed(state);
    }, READ_MS).unref();
  };
  const world = (): World => ({
    servers: host.servers(),
    ...report,
    ...reader.now(),
    costs: counter.costs(),
    tokensOf: counter.of,
    chosen: choices.now(),
    home: homedir(),
    now: Date.now(),
  });
  const area = (): Area => ({
    width,
    height: Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, tui.terminal.rows - OTHER_ROWS)),
    theme,
  });

  const carryOut = async (effect: Act): Promise<void> => {
    const busy = busyText(effect);
    tell({ busy });
    try {
      const text = await act(effect, ctx, host);
      if (text !== undefined) tell({ notice: { text, level: "info" } });
    } catch (error) {
      failed(error);
    } finally {
      if (state.busy === busy) tell({ busy: undefined });
    }
    if (effect.type === "set") readAgain();
  };
  const choices = createChoices(carryOut, readAgain);

  const dispose = (): void => {
    isOpen = false;
    clearTimeout(timer);
    unsubscribe();
    counter.stop();
    reader.stop();
  };
  const close = (): void => {
    if (!isOpen) return;
    dispose();
    done();
  };
  const concerns = (event: WorkerEvent): boolean => {
    const view = shown(state);
    if (!READ_AGAIN.includes(event.type) || view.name === "stats" || view.name === "doctor") return false;
    return event.type !== "server" || ("server" in view && view.server === event.status.name);
  };
  const unsubscribe = host.onChange((event) => {
    if (event === undefined) return close();
    if (UNSEEN.includes(event.type)) return;
    if (event.type === "planned") report = reportOf(event);
    if (event.type === "catalog" || event.type === "removed" || event.type === "planned") count();
    state = onWorld(state, world());
    if (concerns(event)) readAgain();
    redraw();
  });

  count();
  host
    .ask("status", {})
    .then((told) => {
      report = reportOf(told);
      redraw();
    })
    .catch(failed);

  return {
    render: (cells) => {
      width = cells;
      return draw(state, world(), area());
    },
    handleInput: (data) => {
      const key = keyOf(data, (typed, binding) => keybindings.matches(typed, binding));
      if (key === undefined || !isOpen) return;
      const now = world();
      const { state: next, effect } = onKey(state, key, { world: now, ...sizeOf(state, now, area()) });
      state = next;
      if (effect?.type === "close") return close();
      if (effect?.type === "expose") choices.add(effect);
      else if (effect) void carryOut(effect);
      reader.follow(state);
      redraw();
    },
    invalidate: () => undefined,
    dispose,
  };
}
