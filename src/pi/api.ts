/**
 * The part of Pi's extension API (1.5.2) that is used, as types of our own: the extension must not import
 * a host module, or Pi would load it through its slow transform. A test compiles these against the types
 * that Pi publishes.
 */

import type { JsonValue } from "../shared/protocol/errors.ts";

export type TextContent = { type: "text"; text: string };
export type ImageContent = { type: "image"; data: string; mimeType: string };

/** What a tool answers. `isError` marks a failure that keeps its `details`. */
export interface ToolResult {
  content: (TextContent | ImageContent)[];
  details: unknown;
  isError?: boolean;
  /** What a codemode script gets, where the tool declares an `outputSchema`. */
  structuredContent?: JsonValue;
}

export type ToolUpdate = (partial: ToolResult) => void;

/** What a renderer returns. No line may be wider than `width` cells, or Pi ends with an error. */
export interface Component {
  render(width: number): string[];
  invalidate(): void;
}

export type ThemeColor = "toolTitle" | "toolOutput" | "muted" | "error";

export interface RenderTheme {
  fg(color: ThemeColor, text: string): string;
  bold(text: string): string;
}

export interface RenderContext {
  expanded: boolean;
  isError: boolean;
  /** Of the final result; undefined while it runs. */
  durationMs: number | undefined;
  /** The configured keys and the description, styled; for example `ctrl+o to expand`. */
  keyHint(keybinding: "app.tools.expand", description: string): string;
}

/** A result as a renderer gets it. */
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

export interface ToolHints {
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** What a call made by another tool came to. Never rejects for the tool's own failures. */
export interface NestedOutcome {
  result: Pick<ToolResult, "content" | "details">;
  isError: boolean;
  /** Absent where the tool did not run: it is unknown, its arguments are refused, or an extension blocked it. */
  durationMs?: number;
}

/** What a running tool is given. */
export interface PiToolContext extends PiContext {
  /** Tools that `executeTool` can call. */
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
  /** Which tools a call may reach, for extensions that decide over them. */
  reachesTools?: (input: Record<string, unknown>) => "all" | readonly string[];
  execute(
    toolCallId: string,
    params: Record<string, unknown>,
    signal: AbortSignal | undefined,
    onUpdate: ToolUpdate | undefined,
    ctx: PiToolContext,
  ): Promise<ToolResult>;
}

export type NoticeLevel = "info" | "warning" | "error";

export interface PiContext {
  ui: {
    notify(message: string, type?: NoticeLevel): void;
    setStatus(key: string, text: string | undefined): void;
    select(title: string, options: string[]): Promise<string | undefined>;
    confirm(title: string, message: string): Promise<boolean>;
    editor(title: string, prefill?: string): Promise<string | undefined>;
  };
  mode: "tui" | "rpc" | "json" | "print";
  /** Dialogs and notices reach somebody: TUI and RPC. */
  hasUI: boolean;
  cwd: string;
  isProjectTrusted(): boolean;
  sessionManager: {
    /** Entries from the root to the current leaf. */
    getBranch(): readonly unknown[];
  };
}

export interface PiCommand {
  description?: string;
  getArgumentCompletions?: (prefix: string) => { value: string; label: string }[] | null;
  handler: (args: string, ctx: PiContext) => Promise<void>;
}

export interface McpRegistration {
  name: string;
  config: object;
  extensionPath: string;
}

/** A message as it enters the transcript: of it, what is read of tool results. */
export interface FinishedMessage {
  role: string;
  toolName?: string;
  isError?: boolean;
  content?: unknown;
}

export interface CommandInfo {
  name: string;
  sourceInfo: { path: string };
}

export interface RegisteredTool {
  name: string;
  /** Tools that a call may reach: all, or those whose names or namespaces are in these words. */
  reachesTools?: ((input: Record<string, unknown>) => "all" | readonly string[]) | undefined;
}

export interface Pi {
  on(event: "session_start", handler: (event: { reason: string }, ctx: PiContext) => void): () => void;
  on(
    event: "session_shutdown",
    handler: (event: { reason: string }, ctx: PiContext) => Promise<void>,
  ): () => void;
  on(
    event: "before_agent_start",
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
    ) => Promise<void> | undefined,
  ): () => void;
  on(event: "turn_end", handler: (event: { type: string }, ctx: PiContext) => void): () => void;
  /** What a handler returns takes the message's place. */
  on<M extends FinishedMessage>(
    event: "message_end",
    handler: (event: { message: M }) => Promise<{ message: M } | undefined> | undefined,
  ): () => void;
  registerTool(tool: PiTool): void;
  /** Chooses how calls are drawn, also of tools that are not registered. `next`: what others would use. */
  registerToolRenderer(
    resolver: <Theirs>(
      toolName: string,
      next: () => Theirs | undefined,
    ) => Theirs | ToolRenderers | undefined,
  ): void;
  registerFlag(name: string, options: { description?: string; type: "string"; default?: string }): void;
  getFlag(name: string): boolean | string | undefined;
  /** Servers that extensions registered for this session. */
  getMcpServers(): McpRegistration[];
  registerCommand(name: string, command: PiCommand): void;
  getActiveTools(): string[];
  getAllTools(): RegisteredTool[];
  setActiveTools(names: string[]): void;
  getCommands(): CommandInfo[];
  events: {
    emit(channel: string, data: unknown): void;
    on(channel: string, handler: (data: unknown) => void): () => void;
  };
}
