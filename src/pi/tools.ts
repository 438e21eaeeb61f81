/** A tool as Pi registers, runs and draws it, and its result. Types only; their source: api.ts. */
import type { JsonValue } from "../shared/protocol/errors.ts";
import type { PiContext } from "./context.ts";
import type { Component, RenderTheme } from "./screen.ts";

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

export interface ToolHints {
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
  execute(
    toolCallId: string,
    params: Record<string, unknown>,
    signal: AbortSignal | undefined,
    onUpdate: ToolUpdate | undefined,
    ctx: PiToolContext,
  ): Promise<ToolResult>;
}

export interface RegisteredTool {
  name: string;
  /** The tools that a call may reach: all, or those whose names or namespaces are among these words. */
  reachesTools?: ((input: Record<string, unknown>) => "all" | readonly string[]) | undefined;
}
