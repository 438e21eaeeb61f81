/** Tool calls between main and the connection worker: what a call carries, its result, its statistics. Types only. */

/** Parameters of `callTool`. */
export interface CallToolParams {
  callId: string;
  server: string;
  /** The tool's name as the server gave it. */
  tool: string;
  args: Record<string, unknown>;
  /** True for a call from a codemode script, which reads the server's own result. */
  wantsStructured?: boolean;
}

/** What the model reads of a result, already bounded, as Pi's own content blocks. */
export type ResultContent =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string };

/** The result of `callTool`. It crosses the threads as msgpackr bytes. */
export interface CallResult {
  content: ResultContent[];
  isError: boolean;
  /** Milliseconds from the request to the server until the server's answer. */
  durationMs: number;
  /**
   * Bytes of text and base64: `received` from the server, `shown` in `content`. `savedText` counts the text that TOON
   * and the output guard removed.
   */
  bytes?: { received: number; shown: number; savedText: number };
  /** File that holds the whole text, if `content` does not. */
  storedAt?: string;
  /** What the server meant for the person and not for the model, bounded. */
  forUser?: string;
  /** UTF-8 JSON of the whole `CallToolResult` as the server sent it, without `_meta`; only if `wantsStructured`. */
  scriptResult?: Uint8Array;
  /** In place of `scriptResult`: why the result is too large for a script, and where the result is stored. */
  scriptProblem?: string;
  /** With `scriptProblem`: the file with that JSON, if it could be stored. */
  scriptStoredAt?: string;
}

/** How far a call is, as the server counts. */
export interface CallProgress {
  message: string;
  progress?: number;
  total?: number;
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
  /** The tool that received most comes first; bounded. */
  tools: ToolStats[];
  /** Number of tools that `tools` leaves out. */
  moreTools: number;
  /** Sum over all tools. */
  tokensSaved: number;
}

/** `captured: false`: the settings do not ask for statistics. */
export type StatsReport = { captured: false } | { captured: true; summary: StatsSummary };
