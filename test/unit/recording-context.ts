/** Owns: a Pi context in memory that records what the user sees. */
import type { NoticeLevel, PiCommandContext, ScreenComponent } from "../../src/pi/api.ts";

export interface ShownDialog {
  method: "select" | "input" | "editor";
  title: string;
  options?: readonly string[];
  message?: string;
  prefill?: string | undefined;
}

/** The user's answers; without one the dialog is closed. A dialog also ends when its signal aborts. */
export interface RecordingOptions {
  hasUI?: boolean;
  mode?: PiCommandContext["mode"];
  /** The dialog also ends, without an answer, when its signal aborts. */
  select?: (title: string, options: readonly string[]) => string | undefined | Promise<string | undefined>;
  input?: (title: string, signal: AbortSignal | undefined) => unknown;
  editor?: (title: string, prefill: string | undefined) => string | undefined;
  cwd?: string;
  trusted?: boolean;
  isIdle?: () => boolean;
  /** Entries of the branch, read at each call of `getBranch`. */
  branch?: readonly unknown[];
  editorText?: string;
  /** Absent: no model is chosen. */
  model?: PiCommandContext["model"];
  /** Absent: Pi knows no provider. */
  modelRegistry?: Partial<PiCommandContext["modelRegistry"]>;
}

export interface RecordingContext {
  ctx: PiCommandContext;
  /** One for each time that the terminal was told to make its completion anew. */
  refreshes: unknown[];
  notices: [message: string, level: NoticeLevel | undefined][];
  statuses: [key: string, text: string | undefined][];
  dialogs: ShownDialog[];
  /** Components that have the screen now, on a terminal of 80 columns and 24 rows without colours. */
  screens: ScreenComponent[];
  /** Presses a key. True: something keeps it from the dialog that is open. */
  isTaken(data: string): boolean;
}

const closedBy = (signal: AbortSignal | undefined): Promise<undefined> =>
  new Promise((resolve) => {
    signal?.addEventListener("abort", () => resolve(undefined));
  });

export function createRecordingContext(options: RecordingOptions = {}): RecordingContext {
  const notices: RecordingContext["notices"] = [];
  const statuses: RecordingContext["statuses"] = [];
  const dialogs: ShownDialog[] = [];
  const refreshes: unknown[] = [];
  const screens: ScreenComponent[] = [];
  const inputs = new Set<(data: string) => { consume: true } | undefined>();
  const ctx: PiCommandContext = {
    ui: {
      notify: (message, level) => notices.push([message, level]),
      setStatus: (key, text) => statuses.push([key, text]),
      select: async (title, choices, { signal } = {}) => {
        dialogs.push({ method: "select", title, options: choices });
        return Promise.race([options.select?.(title, choices), closedBy(signal)]);
      },
      input: async (title, placeholder, { signal } = {}) => {
        dialogs.push({ method: "input", title, message: placeholder ?? "" });
        return Promise.race([options.input?.(title, signal) as string | undefined, closedBy(signal)]);
      },
      onTerminalInput: (handler) => {
        inputs.add(handler);
        return () => void inputs.delete(handler);
      },
      getEditorText: () => options.editorText ?? "",
      editor: async (title, prefill) => {
        dialogs.push({ method: "editor", title, prefill });
        return options.editor?.(title, prefill);
      },
      custom: (factory) =>
        new Promise((resolve) => {
          const tui = { requestRender: () => undefined, terminal: { rows: 24, columns: 80 } };
          const theme = { fg: (_colour: string, text: string) => text, bold: (text: string) => text };
          const bound = {
            "\u001b": "tui.select.cancel",
            "\r": "tui.select.confirm",
            "\u001b[B": "tui.select.down",
            "\u001b[A": "tui.select.up",
            "\u001b[F": "tui.editor.cursorLineEnd",
          };
          const matches = (data: string, action: string) =>
            Object.entries(bound).some(([key, id]) => key === data && id === action);
          const screen = factory(tui, theme, { matches }, (result) => {
            screens.splice(screens.indexOf(screen), 1);
            resolve(result);
          });
          screens.push(screen);
        }),
      addAutocompleteProvider: (factory) => void refreshes.push(factory),
    },
    isIdle: () => options.isIdle?.() ?? true,
    mode: options.mode ?? (options.hasUI === false ? "print" : "rpc"),
    hasUI: options.hasUI ?? true,
    cwd: options.cwd ?? "/project",
    isProjectTrusted: () => options.trusted ?? true,
    model: options.model,
    modelRegistry: {
      getProvider: () => undefined,
      getProviderAuth: async () => undefined,
      streamSimple: () => {
        throw new Error("no model");
      },
      ...options.modelRegistry,
    },
    sessionManager: {
      getBranch: () => options.branch ?? [],
      getEntries: () => options.branch ?? [],
      buildContextEntries: () => options.branch ?? [],
      getSessionId: () => "session",
    },
  };
  const isTaken = (data: string): boolean => [...inputs].some((input) => input(data)?.consume === true);
  return { ctx, notices, statuses, dialogs, refreshes, screens, isTaken };
}
