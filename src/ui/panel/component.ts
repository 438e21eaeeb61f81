/**
 * Joins model and picture with the terminal: keys in, lines out, a new picture after each event of the session. Holds where
 * the person is; world-source.ts holds what is known of the session.
 */
import type { Keybindings, PanelTui, PiContext, RenderTheme, ScreenComponent } from "../../pi/api.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import { type Act, act, busyText } from "./act.ts";
import { createChoices } from "./choices.ts";
import { type Area, draw, sizeOf } from "./draw/draw.ts";
import { concerns, isSeen } from "./events.ts";
import type { PanelHost } from "./host.ts";
import { keyOf, onKey, onWorld, START, type State, shown } from "./model/model.ts";
import { createWorldSource } from "./world-source.ts";

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

export function createPanel({ ctx, host, tui, theme, keybindings, done }: PanelOptions): ScreenComponent {
  let isOpen = true;
  let state: State = START;
  let width = tui.terminal.columns;
  const redraw = (): void => {
    if (isOpen) tui.requestRender();
  };
  const tell = (change: Partial<State>): void => {
    state = { ...state, ...change };
    redraw();
  };
  const failed = (error: unknown): void => tell({ notice: { text: describeThrown(error), level: "error" } });
  const source = createWorldSource({
    host,
    state: () => state,
    chosen: () => choices.now(),
    onTools: () => choices.read(),
    onChange: redraw,
    onFailed: failed,
  });
  const area = (): Area => ({
    width,
    height: Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, tui.terminal.rows - OTHER_ROWS)),
    theme,
  });

  const readAgain = (): void => {
    if (isOpen) source.readAgain();
  };

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
    unsubscribe();
    source.stop();
  };
  const close = (): void => {
    if (!isOpen) return;
    dispose();
    done();
  };
  const unsubscribe = host.onChange((event) => {
    if (event === undefined) return close();
    if (!isSeen(event)) return;
    source.take(event);
    state = onWorld(state, source.now());
    if (concerns(event, shown(state))) source.readAgain();
    redraw();
  });
  source.start();

  const onInput = (data: string): void => {
    const key = keyOf(data, (typed, binding) => keybindings.matches(typed, binding));
    if (key === undefined || !isOpen) return;
    const world = source.now();
    const { state: next, effect } = onKey(state, key, { world, ...sizeOf(state, world, area()) });
    state = next;
    if (effect?.type === "close") {
      close();
      return;
    }
    if (effect?.type === "expose") choices.add(effect);
    else if (effect) void carryOut(effect);
    source.follow(state);
    redraw();
  };
  return {
    render: (cells) => {
      width = cells;
      return draw(state, source.now(), area());
    },
    capturesViewportInput: true,
    handleInput: onInput,
    invalidate: () => undefined,
    dispose,
  };
}
