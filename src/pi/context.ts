/** What a handler gets of the session: its dialogs, its mode, its folder. Types only; their source: api.ts. */
import type { PanelTui, RenderTheme, ScreenComponent } from "./screen.ts";

export type NoticeLevel = "info" | "warning" | "error";

/** A dialog whose signal is aborted closes, as if the user had cancelled it. */
export interface DialogOptions {
  signal?: AbortSignal;
}

export interface PiContext {
  ui: {
    notify(message: string, type?: NoticeLevel): void;
    setStatus(key: string, text: string | undefined): void;
    select(title: string, options: string[], dialog?: DialogOptions): Promise<string | undefined>;
    confirm(title: string, message: string, dialog?: DialogOptions): Promise<boolean>;
    /** Over RPC the value is whatever the other program sends. */
    input(title: string, placeholder?: string, dialog?: DialogOptions): Promise<string | undefined>;
    editor(title: string, prefill?: string): Promise<string | undefined>;
    /**
     * Shows the component in place of the editor until `done` is called. A dialog that comes later covers it for its time.
     * Only in mode `tui`. `keybindings` are `Keybindings`: their published type leaves `matches` to a package within Pi.
     */
    custom<T>(
      factory: (
        tui: PanelTui,
        theme: RenderTheme,
        keybindings: object,
        done: (result: T) => void,
      ) => ScreenComponent,
    ): Promise<T>;
    /** Does nothing without a terminal. `factory` gets the completion so far and answers what takes its place. */
    addAutocompleteProvider(factory: (current: CompletionProvider) => CompletionProvider): void;
  };
  mode: "tui" | "rpc" | "json" | "print";
  /** True in the TUI and over RPC: dialogs and notices reach a person. */
  hasUI: boolean;
  cwd: string;
  isProjectTrusted(): boolean;
  sessionManager: {
    /** The entries of the transcript from its root to the current leaf. */
    getBranch(): readonly unknown[];
    /** Those of them that the model reads: without what the latest compaction has taken away. */
    buildContextEntries(): readonly unknown[];
  };
}

/** A message that an extension adds to the user's: the model reads `content`, the transcript keeps `details`. */
export interface AddedMessage {
  customType: string;
  content: string;
  /** Whether the person sees it. */
  display: boolean;
  details: unknown;
}

/** The context of a command. */
export interface PiCommandContext extends PiContext {
  /** False while the model works. */
  isIdle(): boolean;
}

/** `value` replaces the whole text behind the command. */
export interface Completion {
  value: string;
  label: string;
  description?: string;
}

/** Completion in the editor, at a line and a column of its text, from 0. `prefix`: the text that an item replaces. */
export interface CompletionProvider {
  triggerCharacters?: string[];
  getSuggestions(
    lines: string[],
    line: number,
    column: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<{ items: Completion[]; prefix: string } | null>;
  applyCompletion(
    lines: string[],
    line: number,
    column: number,
    item: Completion,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number };
  shouldTriggerFileCompletion?(lines: string[], line: number, column: number): boolean;
}
