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
  /** `--mcp-config`: a file in place of `<agentDir>/mcp.json`. */
  configPath: string | undefined;
  /** Servers that other extensions registered: `pi.getMcpServers()`. */
  registered: RegisteredServer[];
  /** Whether somebody can be asked for consent: TUI and RPC. */
  canAsk: boolean;
  /**
   * Stamp of `.pi/mcp.json` when the session began: whoever trusted the project has seen that, and nothing
   * that was written before the worker came to read it. Absent: not looked at.
   */
  projectFile?: string;
  /** When the session began: an envFile of the project that is newer was written by others since. */
  startedAtMs?: number;
  /** Of the worker before, if that crashed. */
  accepted?: AcceptedBefore;
  /**
   * Servers that are not to be connected by themselves, and why in a sentence without its end: they were at work when
   * an earlier worker of this session died.
   */
  heldBack?: { server: string; why: string }[];
  /** Checksum of the snapshot that main already shows; equal content is not sent again. */
  snapshotChecksum: number | undefined;
}

/** What a session has let run so far: what a worker that follows a crash must not ask for, or apply, anew. */
export interface AcceptedBefore {
  /** Hashes of the project's servers. */
  servers: string[];
  /**
   * File and text as they were applied, undefined for a file that was not there. Absent where edits are applied
   * unasked: then the disk counts. In memory only: a text may hold secrets.
   */
  texts?: [file: string, text: string | undefined][];
}

/** A server that another extension of this Pi registered, with a definition of Pi's own shape. */
export interface RegisteredServer {
  name: string;
  config: unknown;
  extensionPath: string;
}

/** A server of a project that runs only if the user agrees. */
export interface ConsentQuestion {
  server: string;
  /** Of what would run; the answer is bound to it. */
  hash: string;
  /** All that would run and be sent, in one line of at most `LIMITS.consentChars`: nothing of it is cut out. */
  question: string;
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
  /** In the user's words. */
  description?: string;
  toolCount: number;
  /** Resources and templates that are offered as tools beside those. */
  resourceCount: number;
  /** Whether its tools are known, from a live list or from the cache. */
  toolsKnown: boolean;
  /** Some of its tools may be declared from the first request on. */
  direct: boolean;
  error?: WireError;
  pid?: number;
}

/** `error`: something was left out. `warning`: all was used, but probably not as meant. */
export type ConfigSeverity = "error" | "warning";

/** A mistake in a configuration file: a value, never an exception. Lines and columns count from 1. */
export interface ConfigProblem {
  severity: ConfigSeverity;
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
  questions: ConsentQuestion[];
  /** Servers of the project that may not run, with the reason. */
  refused: { name: string; reason: string }[];
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
  /** The caller reads the server's own result: a call from a codemode script. */
  wantsStructured?: boolean;
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
  /**
   * Of text and base64: what the server sent, and what is in `content`. `savedText`: text that `content` would
   * have without TOON and guard, and has not.
   */
  bytes?: { received: number; shown: number; savedText: number };
  /** File that holds all of the text, where `content` does not. */
  storedAt?: string;
  /** What the server meant for the person and not for the model, bounded. */
  forUser?: string;
  /** UTF-8 JSON of the whole `CallToolResult` as the server sent it, without `_meta`; only where the caller asked. */
  scriptResult?: Uint8Array;
  /** In its place: why the result is too much for a script, and where it is. */
  scriptProblem?: string;
}

export interface ToolStats {
  server: string;
  tool: string;
  calls: number;
  errors: number;
  receivedBytes: number;
  shownBytes: number;
  meanMs: number;
}

export interface StatsSummary {
  /** The tool that received most first; bounded. */
  tools: ToolStats[];
  /** How many others there are. */
  moreTools: number;
  /** Of all of them. */
  tokensSaved: number;
}

/** `captured: false`: the settings do not ask for statistics. */
export type StatsReport = { captured: false } | { captured: true; summary: StatsSummary };

/** How far a call is, as the server counts it. */
export interface CallProgress {
  message: string;
  progress?: number;
  total?: number;
}

/** One-way messages from the connection worker to main. */
/** What the catalog no longer holds, by names at the servers. */
export interface RemovedTools {
  servers: string[];
  /** Of servers that are still there. */
  tools: { server: string; tool: string }[];
}

export type WorkerEvent =
  | { type: "spawned"; pid: number; server: string }
  | { type: "exited"; pid: number; server: string }
  /** By this number the shared record (talk.ts) names the server. */
  | { type: "talker"; slot: number; server: string }
  /** The configured servers are known: at the start, before anything connects, and after each change. */
  | ({
      type: "planned";
      generation: number;
      settings: CatalogSettings;
      accepted: AcceptedBefore;
    } & StatusReport)
  /**
   * What a change of the configuration did, in one line, told when the new servers have settled; or a warning of
   * something that does not work and that the user can mend.
   */
  | { type: "notice"; generation: number; text: string; level: "info" | "warning" }
  /** An edit waits for the user's word (`hotReload: "ask"`); what it would do. `id`: of all that it would do. */
  | { type: "held"; generation: number; id: string; text: string }
  | { type: "server"; generation: number; status: ServerStatus }
  /** A whole snapshot in the file's own format, since the catalog differs from what main has. */
  | { type: "catalog"; generation: number; snapshot: Uint8Array<ArrayBuffer> }
  /** Sent before the snapshot without it, which takes its time to be made. */
  | ({ type: "removed"; generation: number } & RemovedTools)
  | ({ type: "progress"; callId: string } & CallProgress);

export type { ErrorData };
