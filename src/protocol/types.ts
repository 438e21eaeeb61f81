/**
 * What main and the connection worker tell each other, as plain data: servers, tools, calls, events.
 * Types only.
 */
import type { ErrorData, WireError } from "./errors.ts";
import type { CatalogSettings } from "./snapshot.ts";

/** What the worker must know of a Pi session to serve it. */
export interface SessionFacts {
  /** Counts the sessions of one process; results of an older generation are dropped. */
  generation: number;
  cwd: string;
  agentDir: string;
  /** `ctx.isProjectTrusted()`: whether `.pi/mcp.json` counts. */
  projectTrusted: boolean;
  /** Checksum of the snapshot that main already shows; equal content is not sent again. */
  snapshotChecksum: number | undefined;
}

export type ServerState =
  | "idle"
  | "connecting"
  | "connected"
  | "needs-auth"
  | "failed"
  | "closing"
  | "disabled";

export type TransportKind = "stdio" | "http" | "sse";

/** One server as `/mcp` shows it. */
export interface ServerStatus {
  name: string;
  state: ServerState;
  lifecycle: "lazy" | "eager" | "keep-alive";
  /** Known before the first connect from the configuration, then what was really used. */
  transport: TransportKind;
  /** Where the server is defined. */
  source: string;
  toolCount: number;
  /** Whether its tools are known, from a live list or from the cache. */
  toolsKnown: boolean;
  error?: WireError;
  pid?: number;
}

/** A mistake in a configuration file: a value, never an exception. Lines and columns count from 1. */
export interface ConfigProblem {
  file: string;
  line?: number;
  column?: number;
  /** Path of the key, for example `mcpServers.github.args`. */
  key?: string;
  message: string;
  remedy: string;
}

export interface StatusReport {
  servers: ServerStatus[];
  problems: ConfigProblem[];
  /** Files that were read or looked for, in order of precedence, lowest first. */
  files: string[];
}

/** Hints of the server about a tool; from an untrusted party (MCP 2025-11-25, server/tools, annotations). */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export interface CallToolParams {
  generation: number;
  callId: string;
  server: string;
  /** The tool's name as the server gave it. */
  tool: string;
  args: Record<string, unknown>;
}

/** What the model will read of a result; already bounded. Pi's own content blocks. */
export type ResultContent =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string };

/** Crosses as msgpackr bytes. */
export interface CallResult {
  content: ResultContent[];
  isError: boolean;
  /** Milliseconds from the request to the server until its answer. */
  durationMs: number;
}

/** One-way messages from the connection worker to main. */
export type WorkerEvent =
  | { type: "spawned"; pid: number; server: string }
  | { type: "exited"; pid: number; server: string }
  /** The configured servers are known. Sent once per session, before anything connects. */
  | {
      type: "planned";
      generation: number;
      servers: ServerStatus[];
      problems: ConfigProblem[];
      settings: CatalogSettings;
    }
  | { type: "server"; generation: number; status: ServerStatus }
  /** A whole snapshot in the file's own format, since the catalog differs from what main has. */
  | { type: "catalog"; generation: number; snapshot: Uint8Array<ArrayBuffer> }
  | { type: "progress"; callId: string; message: string };

export type { ErrorData };
