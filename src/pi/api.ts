/**
 * The part of Pi's extension API (1.5.2) that this extension uses, as types of our own: an extension that imports a
 * module of Pi is loaded through Pi's slow transform. test/boundary/host-types.test.ts compiles these types against
 * the types that Pi publishes. Here is the object on which the extension registers, with its events and commands;
 * context.ts has what a handler gets of the session, tools.ts a tool and its result, screen.ts what draws itself.
 * To use more of Pi: add it there.
 */

import type { AddedMessage, Completion, PiCommandContext, PiContext } from "./context.ts";
import type { ImageContent, PiTool, RegisteredTool, TextContent, ToolRenderers } from "./tools.ts";

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
  on(event: "session_compact", handler: (event: { type: string }, ctx: PiContext) => void): () => void;
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
  on(
    event: "input",
    handler: (event: InputEvent, ctx: PiContext) => Promise<InputResult> | undefined,
  ): () => void;
  on(event: "turn_end", handler: (event: { type: string }, ctx: PiContext) => void): () => void;
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
  getActiveTools(): string[];
  getAllTools(): RegisteredTool[];
  setActiveTools(names: string[]): void;
  getCommands(): CommandInfo[];
  events: {
    emit(channel: string, data: unknown): void;
    on(channel: string, handler: (data: unknown) => void): () => void;
  };
}
