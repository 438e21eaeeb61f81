/** What Pi draws, and what draws itself on Pi's screen: components, colours, keys. Types only; their source: api.ts. */

/** The value of a renderer. Pi ends with an error if a line is wider than `width` cells. */
export interface Component {
  render(width: number): string[];
  invalidate(): void;
}

export type ThemeColor =
  | "toolTitle"
  | "toolOutput"
  | "accent"
  | "border"
  | "success"
  | "warning"
  | "error"
  | "muted"
  | "dim"
  | "text";

export interface RenderTheme {
  fg(color: ThemeColor, text: string): string;
  bold(text: string): string;
}

/** The terminal, as a component of its own screen sees it. */
export interface PanelTui {
  /** Draws again, soon and once for several requests. */
  requestRender(): void;
  terminal: { readonly rows: number; readonly columns: number };
}

/** The actions of Pi's lists and its line editor, whose keys a person may have bound anew. */
export type KeyAction =
  | "tui.select.up"
  | "tui.select.down"
  | "tui.select.pageUp"
  | "tui.select.pageDown"
  | "tui.select.confirm"
  | "tui.select.cancel"
  | "tui.editor.cursorLineStart"
  | "tui.editor.cursorLineEnd"
  | "tui.editor.deleteCharBackward";

export interface Keybindings {
  matches(data: string, action: KeyAction): boolean;
}

/** A component that takes the keys while it is shown. */
export interface ScreenComponent extends Component {
  /** In tuiMode fullscreen the keys that scroll the transcript come to the component, too. */
  readonly capturesViewportInput: true;
  handleInput(data: string): void;
  dispose(): void;
}
