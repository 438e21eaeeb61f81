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

/** Parameters of `getPrompt`. Its answer is a msgpackr-encoded `CallResult`. */
export interface GetPromptParams {
  server: string;
  /** The prompt's name as the server gave it. */
  prompt: string;
  args: Record<string, string>;
}

/** Parameters of `completePrompt`. */
export interface CompletePromptParams {
  server: string;
  prompt: string;
  argument: string;
  /** What is typed so far. */
  value: string;
  /** The arguments that are typed already. */
  context: Record<string, string>;
}

/** Parameters of `readResource`. Its answer is a msgpackr-encoded `CallResult`. */
export interface ReadResourceParams {
  server: string;
  uri: string;
  /** True for a program that reads what the server sent, as `CallToolParams.wantsStructured`. */
  wantsStructured?: boolean;
}

/** A resource, or a template of resources, as a list shows it. Every text is one cleaned line. */
export interface ShownResource {
  /** The URI as the server gave it, or the template. */
  uri: string;
  title: string;
}

/** The resources of one server; `resources` is undefined until they are known. */
export interface ServerResources {
  server: string;
  resources: ShownResource[] | undefined;
  templates: ShownResource[];
}

/** What can take the place of a mention that is being typed: `mention` is `<server>:<uri>`. */
export interface SuggestedResource {
  mention: string;
  title: string;
}
