/**
 * The part of Pi's extension API (1.5.2) that this extension uses, as types of our own: an extension that imports a
 * module of Pi is loaded through Pi's slow transform. test/boundary/host-types.test.ts compiles these types against
 * the types that Pi publishes: the object on which the extension registers, with its events and commands, what a
 * handler gets of the session, a tool and its result, and what draws itself.
 */

import type { JsonValue } from "../shared/protocol/errors.ts";

export interface PiCommand {
  description?: string;
  getArgumentCompletions?: (prefix: string) => Completion[] | null | Promise<Completion[] | null>;
  handler: (args: string, ctx: PiCommandContext) => Promise<void>;
}

/** What the user typed, or a program or an extension sent, before Pi expands it. */
export interface InputEvent {
  text: string;
  images?: ImageContent[];
  source: "interactive" | "rpc" | "extension";
}

/** `handled`: Pi does nothing more. */
export type InputResult =
  | { action: "continue" | "handled" }
  | { action: "transform"; text: string; images?: ImageContent[] };

export interface McpRegistration {
  name: string;
  config: object;
  extensionPath: string;
}

/** A message as it enters the transcript; only the fields of tool results that this extension reads. */
export interface FinishedMessage {
  role: string;
  toolName?: string;
  toolCallId?: string;
  isError?: boolean;
  content?: unknown;
}

export interface CommandInfo {
  name: string;
  sourceInfo: { path: string };
}

export interface Pi {
  on(event: "session_start", handler: (event: { reason: string }, ctx: PiContext) => void): () => void;
  on(
    event: "session_shutdown",
    handler: (event: { reason: string }, ctx: PiContext) => Promise<void>,
  ): () => void;
  on(
    event: "before_agent_start",
    handler: (event: { type: string }, ctx: PiContext) => Promise<{ message: AddedMessage } | undefined>,
  ): () => void;
  on(event: "before_provider_request", handler: () => void): () => void;
  on(
    event: "session_compact",
    handler: (event: { type: string }, ctx: PiContext) => Promise<void>,
  ): () => void;
  on(event: "session_tree", handler: (event: { type: string }, ctx: PiContext) => void): () => void;
  on(
    event: "mcp_servers_change",
    handler: (event: { servers: McpRegistration[] }, ctx: PiContext) => void,
  ): () => void;
  on(
    event: "tool_call",
    handler: (
      event: { toolName: string; input: Record<string, unknown> },
      ctx: PiContext,
    ) => Promise<BlockedCall | undefined> | undefined,
  ): () => void;
  on(
    event: "input",
    handler: (event: InputEvent, ctx: PiContext) => Promise<InputResult> | undefined,
  ): () => void;
  on(event: "turn_end", handler: (event: { type: string }, ctx: PiContext) => Promise<void>): () => void;
  /** The message that a handler returns replaces the original. */
  on<M extends FinishedMessage>(
    event: "message_end",
    handler: (event: { message: M }) => Promise<{ message: M } | undefined> | undefined,
  ): () => void;
  registerTool(tool: PiTool): void;
  /** Chooses the renderers of a tool, also of one that is not registered. `next` answers what the others choose. */
  registerToolRenderer(
    resolver: <Theirs>(
      toolName: string,
      next: () => Theirs | undefined,
    ) => Theirs | ToolRenderers | undefined,
  ): void;
  registerFlag(name: string, options: { description?: string; type: "string"; default?: string }): void;
  getFlag(name: string): boolean | string | undefined;
  /** The servers that extensions have registered for this session. */
  getMcpServers(): McpRegistration[];
  registerCommand(name: string, command: PiCommand): void;
  /** Not awaited by Pi. `deliverAs` is needed while the model works. */
  sendUserMessage(
    content: (TextContent | ImageContent)[],
    options?: { deliverAs?: "steer" | "followUp" },
  ): void;
  /** Adds an entry to the transcript that the model does not read. */
  appendEntry(customType: string, data?: unknown): void;
  getActiveTools(): string[];
  getAllTools(): RegisteredTool[];
  setActiveTools(names: string[]): void;
  getCommands(): CommandInfo[];
  events: {
    emit(channel: string, data: unknown): void;
    on(channel: string, handler: (data: unknown) => void): () => void;
  };
}

/** A model of Pi, of which this extension reads these fields. */
export interface PiModel {
  id: string;
  api: string;
  provider: string;
  maxTokens: number;
  reasoning: boolean;
}

interface ModelUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: Omit<ModelUsage, "totalTokens" | "cost"> & { total: number };
}

/** What a model has answered. */
export interface ModelMessage {
  content: ({ type: "text"; text: string } | { type: "thinking" | "toolCall" })[];
  model: string;
  usage: ModelUsage;
  stopReason: string;
  errorMessage?: string;
}

/** A message of a prompt; one of the model is as Pi keeps it. */
export type PromptMessage = { content: TextContent[]; timestamp: number } & (
  | { role: "user" }
  | { role: "assistant"; api: string; provider: string; model: string; usage: ModelUsage; stopReason: "stop" }
);

/** A call that does not run. The model reads the reason. */
export interface BlockedCall {
  block: true;
  reason: string;
}

/** The value of a renderer. Pi ends with an error if a line is wider than `width` cells. */
export interface Component {
  render(width: number): string[];
  invalidate(): void;
}

type ThemeColor =
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
type KeyAction =
  | "tui.select.up"
  | "tui.select.down"
  | "tui.select.pageUp"
  | "tui.select.pageDown"
  | "tui.select.confirm"
  | "tui.select.cancel"
  | "tui.editor.cursorLeft"
  | "tui.editor.cursorRight"
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

export type TextContent = { type: "text"; text: string };
export type ImageContent = { type: "image"; data: string; mimeType: string };

/** The result of a tool. `isError` marks a failure that keeps its `details`; Pi drops the details of a throw. */
export interface ToolResult {
  content: (TextContent | ImageContent)[];
  details: unknown;
  isError?: boolean;
  /** The value that a codemode script gets, if the tool declares an `outputSchema`. */
  structuredContent?: JsonValue;
}

export type ToolUpdate = (partial: ToolResult) => void;

export interface RenderContext {
  expanded: boolean;
  isError: boolean;
  /** Duration of the whole call; undefined while the call runs. */
  durationMs: number | undefined;
  /** The user's keys and the description, styled; for example `ctrl+o to expand`. */
  keyHint(keybinding: "app.tools.expand", description: string): string;
}

/** The part of a result that a renderer receives. */
export type DrawnResult = Pick<ToolResult, "content" | "details">;

export interface ToolRenderers {
  renderCall?: (args: unknown, theme: RenderTheme, context: RenderContext) => Component;
  renderResult?: (
    result: DrawnResult,
    options: { expanded: boolean; isPartial: boolean },
    theme: RenderTheme,
    context: RenderContext,
  ) => Component;
}

export type ToolExposure = "direct" | "model-only" | "codemode" | "deferred" | "hidden";

interface ToolHints {
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** The outcome of `executeTool`, which does not reject when the called tool fails. */
export interface NestedOutcome {
  result: Pick<ToolResult, "content" | "details">;
  isError: boolean;
  /** Absent if the tool did not run: it is unknown, its arguments are refused, or an extension blocked the call. */
  durationMs?: number;
}

/** The context of a running tool. */
export interface PiToolContext extends PiContext {
  /** The tools that `executeTool` can call. */
  readonly tools: readonly { name: string }[];
  /** Runs another tool through the same validation and the same extensions as a call of the model. */
  executeTool(
    name: string,
    args: unknown,
    options?: { signal?: AbortSignal; onUpdate?: ToolUpdate },
  ): Promise<NestedOutcome>;
}

export interface PiTool extends ToolRenderers {
  name: string;
  label: string;
  description: string;
  promptSnippet?: string;
  /** A JSON Schema of type object. */
  parameters: Record<string, unknown>;
  /** A JSON Schema of `structuredContent`. */
  outputSchema?: Record<string, unknown>;
  exposure?: ToolExposure;
  namespace?: { name: string; aliases?: readonly string[]; description?: string; instructions?: string };
  annotations?: ToolHints;
  /** The tools that a call may reach. Extensions that allow or refuse tools read it. */
  reachesTools?: (input: Record<string, unknown>) => "all" | readonly string[];
  /** What the model wrote -> what Pi fits to `parameters`. What it throws is the result of the call. */
  prepareArguments?: (args: unknown) => Record<string, unknown>;
  execute(
    toolCallId: string,
    params: Record<string, unknown>,
    signal: AbortSignal | undefined,
    onUpdate: ToolUpdate | undefined,
    ctx: PiToolContext,
  ): Promise<ToolResult>;
}

interface RegisteredTool {
  name: string;
  annotations?: ToolHints | undefined;
  /** `path`: `builtin:<name>` for a tool of Pi itself. */
  sourceInfo?: { path: string };
  /** The tools that a call may reach: all, or those whose names or namespaces are among these words. */
  reachesTools?: ((input: Record<string, unknown>) => "all" | readonly string[]) | undefined;
}

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
    /** Over RPC the value is whatever the other program sends. */
    input(title: string, placeholder?: string, dialog?: DialogOptions): Promise<string | undefined>;
    editor(title: string, prefill?: string): Promise<string | undefined>;
    /** The handler sees each key before anything else does, and may keep it from the others. Only in mode `tui`. */
    onTerminalInput(handler: (data: string) => { consume: true } | undefined): () => void;
    /** The text in Pi's own editor. Empty without a terminal. */
    getEditorText(): string;
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
  /** Of the run of the model that goes on now; aborted when the run is. */
  readonly signal?: AbortSignal | undefined;
  /** The model that is chosen now. */
  readonly model: PiModel | undefined;
  /** Pi's providers of models. */
  modelRegistry: {
    /** Asks a model, with the user's sign-in. The message says how it went; it does not reject. */
    streamSimple(
      model: PiModel,
      context: { systemPrompt?: string; messages: PromptMessage[] },
      options: { maxTokens: number; temperature?: number; cacheRetention: "none"; signal: AbortSignal },
    ): { result(): Promise<ModelMessage> };
    getProvider(provider: string): object | undefined;
    /** Renews what is about to expire. Rejects if that fails. Undefined: the user has not signed in to the provider. */
    getProviderAuth(provider: string): Promise<{ auth: { apiKey?: string } } | undefined>;
  };
  sessionManager: {
    /** The entries of the transcript from its root to the current leaf. */
    getBranch(): readonly unknown[];
    /** Those of all branches, the oldest first. */
    getEntries(): readonly unknown[];
    /** Those of the branch that the model reads: without what the latest compaction has taken away. */
    buildContextEntries(): readonly unknown[];
    getSessionId(): string;
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
