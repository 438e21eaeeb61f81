/**
 * Joins model and picture with the terminal: keys in, lines out, a new picture after each event of the session. Holds the
 * reading of the session that the model works on.
 */
import { homedir } from "node:os";
import type { Keybindings, PanelTui, PiContext, RenderTheme } from "../../pi/api.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import { type Act, act, busyText } from "./act.ts";
import { createCostCounter } from "./costs.ts";
import { type Area, draw, pageOf } from "./draw/draw.ts";
import type { PanelHost } from "./host.ts";
import { keyOf, onKey, onWorld, START, type State, type World } from "./model/model.ts";

/** Rows of the screen that Pi's own lines below the panel take, and one line of the conversation above it. */
const OTHER_ROWS = 5;
const FEWEST_ROWS = 12;
const MOST_ROWS = 40;

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

export function createPanel({ ctx, host, tui, theme, keybindings, done }: PanelOptions): PanelComponent {
  let isOpen = true;
  let state: State = START;
  let report: Pick<World, "problems" | "files" | "questions" | "refused"> = {
    problems: [],
    files: [],
    questions: [],
    refused: [],
  };
  let width = tui.terminal.columns;
  const redraw = (): void => {
    if (isOpen) tui.requestRender();
  };
  const counter = createCostCounter(redraw);
  const count = (): void => {
    const declared = new Set(host.declared());
    counter.count(host.catalog(), (tool) => tool.direct === true || declared.has(tool.name));
  };
  const world = (): World => ({
    servers: host.servers(),
    ...report,
    costs: counter.costs(),
    home: homedir(),
    now: Date.now(),
  });
  const area = (): Area => ({
    width,
    height: Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, tui.terminal.rows - OTHER_ROWS)),
    theme,
  });

  const dispose = (): void => {
    isOpen = false;
    unsubscribe();
    counter.stop();
  };
  const close = (): void => {
    if (!isOpen) return;
    dispose();
    done();
  };
  const unsubscribe = host.onChange((event) => {
    if (event === undefined) return close();
    if (UNSEEN.includes(event.type)) return;
    if (event.type === "planned") {
      const { problems, files, questions, refused } = event;
      report = { problems, files, questions, refused };
    }
    if (event.type === "catalog" || event.type === "removed" || event.type === "planned") count();
    state = onWorld(state, world());
    redraw();
  });

  const tell = (change: Partial<State>): void => {
    state = { ...state, ...change };
    redraw();
  };
  const failed = (error: unknown): void => tell({ notice: { text: describeThrown(error), level: "error" } });
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
  };

  count();
  host
    .ask("status", {})
    .then(({ problems, files, questions, refused }) => {
      report = { problems, files, questions, refused };
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
      const step = onKey(state, key, { world: now, page: pageOf(state, now, area()) });
      state = step.state;
      if (step.effect?.type === "close") return close();
      if (step.effect) void carryOut(step.effect);
      redraw();
    },
    invalidate: () => undefined,
    dispose,
  };
}
