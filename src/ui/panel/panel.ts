/**
 * The panel that `/mcp` opens in a terminal: the servers, live, with what can be done about each. Owns: its views (model),
 * their picture (draw), and the way between them and the session (component, act, world-source). Must not: know more of a server
 * than the session tells, or keep a truth of its own. Called by: ui/command/screens.ts, in whose file the build puts it.
 * Pi stacks dialogs: a question that arrives while the panel is open covers the panel, which comes back after the answer.
 */
import type { Keybindings, PiContext } from "../../pi/api.ts";
import { createPanel } from "./component.ts";
import type { PanelHost } from "./host.ts";

export type { PanelHost, TriedSearch } from "./host.ts";

/** Resolves when the person closes the panel, or the session ends. Only for a context whose mode is `tui`. */
export const openPanel = (ctx: PiContext, host: PanelHost): Promise<void> =>
  ctx.ui.custom<void>((tui, theme, keybindings, done) =>
    createPanel({ ctx, host, tui, theme, keybindings: keybindings as Keybindings, done: () => done() }),
  );
