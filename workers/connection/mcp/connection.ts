/**
 * The contract of one live connection to a server: what a transport needs to open one, and what a server gets from it.
 * Types only. A transport makes one by `initialize` and `toConnection` (client.ts).
 */
import type { CallProgress } from "../../../src/shared/protocol/calls.ts";
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { TransportKind } from "../../../src/shared/protocol/status.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Redactor, Secrets } from "../secrets/secrets.ts";
import type { CallToolResult } from "./wire/wire.ts";

export interface CloseTimes {
  termMs: number;
  killMs: number;
}

/** Undefined: it could not be listed, so what was known of it stays. */
export interface ListedResources {
  resources: CachedResources["resources"] | undefined;
  templates: CachedResources["templates"] | undefined;
}

export interface ConnectOptions {
  definition: ServerDefinition;
  cwd: string;
  /** `mcp-npx-cache.json`. */
  npxCacheFile: string;
  signal: AbortSignal;
  maxMessageBytes: number;
  /** Over HTTP: pauses before further attempts, in milliseconds. Absent: 300 and 1,000. */
  retryMs?: readonly number[];
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  onNote: (note: string) => void;
  /** `params` of a logging notification, as the server sent them. */
  onLogMessage: (params: unknown) => void;
  /** Values of the resolved definition that no text may show. */
  onSecrets: (secrets: Secrets) => void;
  /** Takes them out of a text. Before the text is cut: of a secret cut in two neither half would be found. */
  redact: Redactor;
  /** The connection ended, whoever ended it. */
  onClosed: () => void;
  /** The server says that its tools, resources or prompts are no longer what they were. */
  onListChanged: () => void;
  /** So many bytes of the server's are about to be looked at. */
  onBytes?: ((bytes: number) => void) | undefined;
}

export interface Connection {
  transport: TransportKind;
  pid: number | undefined;
  instructions: string | undefined;
  /** Rejects with `ThreadsError`. */
  listTools(signal: AbortSignal): Promise<CachedTool[]>;
  /** Never rejects. */
  listResources(signal: AbortSignal): Promise<ListedResources>;
  /** Never rejects; undefined where they could not be listed. */
  listPrompts(signal: AbortSignal): Promise<CachedPrompt[] | undefined>;
  callTool(call: CallRequest): Promise<CallToolResult>;
  readResource(call: ReadRequest): Promise<CallToolResult>;
  /** Settles when the server answers; rejects when it does not within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** One sentence on how the connection ended. */
  whyClosed(): string;
  /** Why the transport ended it, where it did so itself. */
  failure(): ThreadsError | undefined;
  close(times: CloseTimes): Promise<void>;
}

export interface CallRequest {
  tool: string;
  args: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
  onProgress: (progress: CallProgress) => void;
}

/** `tool`: the one that reads it. */
export type ReadRequest = Omit<CallRequest, "args"> & { uri: string };

/** What a connection is made of beside the SDK's client. */
export interface ConnectionParts {
  onNote: (note: string) => void;
  definition: ServerDefinition;
  redact: Redactor;
  transport: TransportKind;
  pid: number | undefined;
  close: (times: CloseTimes) => Promise<void>;
  /** One sentence for a call that was open when the connection ended. */
  whyClosed: () => string;
  /** Why the transport ended the connection, where it did so itself. */
  failure?: () => ThreadsError | undefined;
}
