/**
 * The panel that `/mcp` opens in a terminal: the servers, live, with what can be done about each. Joins its views (model) and
 * their picture (draw) with the terminal and the session: keys in, lines out, a new picture after each event. Must not: know
 * more of a server than the session tells, or keep a truth of its own; world.ts holds what is known.
 * Pi stacks dialogs: a question that arrives while the panel is open covers the panel, which comes back after the answer.
 */
import { lstat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Keybindings, PanelTui, PiContext, RenderTheme, ScreenComponent } from "../../pi/api.ts";
import { guardStale, notify } from "../../pi/extension.ts";
import { ACTIONS, type Action, type ActionName, doneText, OF_SESSION } from "../../report/actions.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import { counted } from "../../shared/text/amounts.ts";
import { unreadFiles } from "../../shared/untrusted.ts";
import { isRuntimeEnd } from "../dialog.ts";
import type { McpHost } from "../mcp-host.ts";
import type { Area } from "../screen/frame.ts";
import { keyOf } from "../screen/list.ts";
import { askedKey } from "../setup/key.ts";
import { addServer, editConfig, importServers, removeServer } from "../setup/setup.ts";
import { tryTool, type Wanted } from "../try/try.ts";
import { takesKeys } from "../typing.ts";
import { draw, sizeOf } from "./draw/draw.ts";
import { onKey, onWorld, seen } from "./model/model.ts";
import { type Effect, push, START, type State, shown, type View } from "./model/state.ts";
import { EXPOSURE_WORDS } from "./model/tools.ts";
import { concerns, isSeen, WorldSource } from "./world.ts";

/** Rows of the screen that Pi's own lines below the panel take, and one line of the conversation above it. */
const OTHER_ROWS = 5;
const FEWEST_ROWS = 12;
const MOST_ROWS = 40;

type Act = Exclude<Effect, { type: "close" | "try" }>;
/** What they change stands in the open view. */
const READ_AGAIN: readonly Effect["type"][] = ["set", "take-back", "capture"];

type Expose = Extract<Effect, { type: "expose" }>;

/** What the panel says while the action is under way; undefined for an action with a dialog of its own. */
function busyText(effect: Act): string | undefined {
  switch (effect.type) {
    case "reconnect":
      return `Connecting ${effect.server}`;
    case "enable":
      return `${effect.enabled ? "Enabling" : "Disabling"} ${effect.server}`;
    case "switch":
      return `Switching ${effect.server} ${effect.on ? "on" : "off"}`;
    case "sign-out":
      return `Signing out of ${effect.server}`;
    default:
      return undefined;
  }
}

/** Answers a sentence for the person, or anything else if the screen shows the effect. Rejects with what went wrong. */
async function act(effect: Act, ctx: PiContext, host: McpHost): Promise<unknown> {
  const end = async ({ run }: Action, server: string, project = false): Promise<string> =>
    doneText(await run(host.ask, { server, project, words: "", columns: 0 }));
  const run = (name: ActionName, server: string, project?: boolean) => end(ACTIONS[name], server, project);
  switch (effect.type) {
    case "reconnect": {
      const { server } = effect;
      await host.ask("reconnect", { server });
      // A failure stands in the server's state, which the panel shows.
      const isConnected = host.servers().some(({ name, state }) => name === server && state === "connected");
      return isConnected ? `${server} is connected.` : undefined;
    }
    case "enable":
      return run(effect.enabled ? "enable" : "disable", effect.server, effect.project);
    case "switch":
      return end(OF_SESSION[effect.on ? "on" : "off"], effect.server);
    case "sign-in":
      return askedKey(await host.signIn(effect.server), ctx, host.ask);
    case "sign-out":
      return run("logout", effect.server);
    case "set": {
      const { server, change } = effect;
      const { file } = await host.ask("setServer", { server, project: false, ...change });
      return `${change.key} of ${server} is ${change.value ?? "what the settings say"}, in ${file}.`;
    }
    case "expose": {
      const { server, tools, to } = effect;
      const params = { server, tools: tools && [...tools], to, project: false };
      const { file, ruled } = await host.ask("setExposure", params);
      const what = tools?.length === 1 ? tools[0] : tools ? counted(tools.length, "tool") : "every tool";
      return ruled
        ? `${what} of ${server}: ${EXPOSURE_WORDS[to]}, in ${file}.`
        : `${what} of ${server}: ${EXPOSURE_WORDS[to]} again, as no rule is left in ${file}.`;
    }
    case "set-up":
      return effect.word === "add" ? addServer("", ctx, host.ask) : importServers(ctx, host.ask);
    case "remove":
      return removeServer(effect.server, ctx, host.ask);
    case "take-back":
      await host.ask("takeBack", { id: effect.id });
      return `What was decided about ${effect.server} is taken back: you are asked again.`;
    case "capture":
      return `Calls are counted from now on, in ${(await host.ask("captureStats", {})).file}.`;
    case "trust":
      return host.askConsents();
    case "edit":
      return editConfig(effect.project, ctx, host.ask);
  }
}

/**
 * Writes what the person chooses for tools, one after another, and of one tool only the last word of those that came while an
 * earlier one was being written. `ended` is called after the last one of those that wait.
 */
function createWriter(write: (effect: Expose) => Promise<void>, ended: () => void): (effect: Expose) => void {
  let waiting: Expose[] = [];
  let isWriting = false;
  const toolOf = ({ tools }: Expose): string | undefined => (tools?.length === 1 ? tools[0] : undefined);
  return async (effect) => {
    const tool = toolOf(effect);
    const isOlder = (one: Expose): boolean => one.server === effect.server && toolOf(one) === tool;
    waiting = [...waiting.filter((one) => tool === undefined || !isOlder(one)), effect];
    if (isWriting) return;
    isWriting = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) await write(next);
    isWriting = false;
    ended();
  };
}

/** One tool at a time is tried. `show`: opens the view of its result. */
function createTrial(
  ctx: PiContext,
  host: McpHost,
  panel: { tell(change: Partial<State>): void; failed(error: unknown): void; show(view: View): void },
) {
  let giveUp: AbortController | undefined;
  const run = async ({ server, tool }: Wanted, signal: AbortSignal): Promise<void> => {
    const onCall = (): void => panel.tell({ busy: `Calling ${tool}. Escape cancels it` });
    try {
      const text = await tryTool({ server, tool }, ctx, host, { signal, onCall });
      if (text !== undefined) panel.show({ name: "result", server, tool, text, top: 0 });
    } catch (error) {
      panel.failed(error);
    } finally {
      giveUp = undefined;
      panel.tell({ busy: undefined });
    }
  };
  return {
    start: (wanted: Wanted): void => {
      if (giveUp) return;
      giveUp = new AbortController();
      void run(wanted, giveUp.signal);
    },
    /** Whether there was something to give up. */
    stop: (): boolean => {
      giveUp?.abort();
      return giveUp !== undefined;
    },
  };
}

/**
 * What an action of a closed panel met, unless the end of the session has broken it off. The session may be another one by then,
 * and Pi refuses its old objects.
 */
const tellLate = (ctx: PiContext, error: unknown): void =>
  guardStale(
    () => notify(ctx, `/mcp: ${describeThrown(error)}`, "error"),
    () => undefined,
  );

function createPanel(
  ctx: PiContext,
  host: McpHost,
  {
    tui,
    theme,
    keybindings,
    done,
    wanted,
  }: {
    wanted: Wanted | undefined;
    tui: PanelTui;
    theme: RenderTheme;
    keybindings: Keybindings;
    done: () => void;
  },
): ScreenComponent {
  let isOpen = true;
  let isOver = false;
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
  const unread = () =>
    unreadFiles({ cwd: ctx.cwd, projectTrusted: ctx.isProjectTrusted() }, { lstat, resolve });
  const source = new WorldSource(host, { state: () => state, changed: redraw, failed, unread });
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
      if (typeof text === "string") tell({ notice: { text, level: "info" } });
    } catch (error) {
      if (isOpen) failed(error);
      else if (!isOver && !isRuntimeEnd(error)) tellLate(ctx, error);
    } finally {
      if (state.busy === busy) tell({ busy: undefined });
    }
    if (effect.type === "expose") source.written(effect);
    if (READ_AGAIN.includes(effect.type)) source.readAgain(effect.type === "capture");
  };
  const trial = createTrial(ctx, host, {
    tell,
    failed,
    show: (view) => tell({ views: push(state, view).views }),
  });
  const expose = createWriter(carryOut, () => source.readAgain());
  const ended = takesKeys();
  const dispose = (): void => {
    isOpen = false;
    for (const end of [ended, trial.stop, unsubscribe]) end();
    source.stop();
  };
  const close = (): void => {
    if (!isOpen) return;
    dispose();
    done();
  };
  const unsubscribe = host.onChange((event) => {
    isOver = event === undefined;
    if (event === undefined) return close();
    if (!isSeen(event)) return;
    source.take(event);
    const before = state;
    state = onWorld(before, source.now());
    // The reading of a view that is closed ends with the view: its failure would replace the word about the server.
    if (state !== before) source.follow();
    if (concerns(event, shown(state))) source.readAgain();
    redraw();
  });
  source.start();
  if (wanted) {
    state = push(state, { name: "tool", ...wanted, top: 0 });
    source.follow();
    trial.start(wanted);
  }
  return {
    render: (cells) => {
      width = cells;
      state = seen(state, source.now());
      return draw(state, source.now(), area());
    },
    capturesViewportInput: true,
    handleInput: (data) => {
      const key = keyOf(data, (typed, binding) => keybindings.matches(typed, binding));
      if (key === undefined || !isOpen) return;
      if (key === "escape" && trial.stop()) return;
      const world = source.now();
      const { state: next, effect } = onKey(state, key, { world, ...sizeOf(state, world, area()) });
      state = next;
      if (effect?.type === "close") return close();
      if (effect?.type === "expose") {
        source.choose(effect);
        expose(effect);
      } else if (effect?.type === "try") trial.start(effect);
      else if (effect) void carryOut(effect);
      source.follow();
      redraw();
    },
    invalidate: () => undefined,
    dispose,
  };
}

/**
 * `wanted`: a tool that is tried at once. Resolves when the person closes the panel, or the session ends. Only for a context
 * whose mode is `tui`.
 */
export const openPanel = (ctx: PiContext, host: McpHost, wanted?: Wanted): Promise<void> =>
  ctx.ui.custom<void>((tui, theme, keybindings, done) =>
    createPanel(ctx, host, {
      wanted,
      tui,
      theme,
      keybindings: keybindings as Keybindings,
      done: () => done(),
    }),
  );
