/**
 * Every limit in one place: what a server, a file or a thread may cost before it is cut off.
 * Units are in the names. Change one on purpose: a boundary test pins them.
 */
export const LIMITS = {
  /** Longest name a provider accepts for a tool (OpenAI and Anthropic: 64 of `[A-Za-z0-9_-]`). */
  toolNameChars: 64,
  /** Results of one ToolSearch. */
  searchResults: 5,
  /** ToolSearch waits this long for servers whose tools are not known yet. */
  searchWaitMs: 5_000,
  /** The first prompt without a snapshot waits this long for the names of the configured servers. */
  firstPlanWaitMs: 300,

  /** From spawn or first request to the complete tool list. */
  startupTimeoutMs: 30_000,
  /** One tool call, renewed by progress. */
  requestTimeoutMs: 60_000,
  /** What main adds to the worker's own limits before it gives up on a reply. */
  rpcGraceMs: 5_000,
  /** Requests that only read the worker's state. */
  rpcShortMs: 5_000,
  /** A failed connect is not repeated by calls for this long. */
  retryAfterFailureMs: 60_000,

  /** Pages of one `tools/list`. */
  listPages: 200,
  /** Tools of one server. */
  toolsPerServer: 10_000,
  /** One JSON-RPC message. */
  messageBytes: 64 * 1024 * 1024,
  /** Kept of a server's stderr. */
  stderrTailBytes: 8 * 1024,
  /** Text of one result that reaches the model, as Pi's own tools. */
  resultBytes: 50 * 1024,
  resultLines: 2_000,
  /** Base64 characters of one image that reaches the model. */
  imageChars: 6 * 1024 * 1024,

  /** Longest `Retry-After` that a connect over HTTP waits for. */
  retryAfterMs: 5_000,
  /** The request that explains a failed connect. */
  probeMs: 3_000,
  /** A server over HTTP has this long to take the end of its session (DELETE). */
  sessionEndMs: 250,

  /** Closing a server: after the end of stdin, until SIGTERM to its group; then until SIGKILL. */
  closeTermMs: 500,
  closeKillMs: 2_000,
  shutdownTermMs: 250,
  shutdownKillMs: 800,
  /** Main gives the worker this long to close everything before it kills what is left. */
  shutdownMs: 1_000,

  /** Catalog changes are gathered for this long before the index is rebuilt. */
  catalogDebounceMs: 50,
  /** Snapshot file. */
  snapshotBytes: 64 * 1024 * 1024,
  /** Log file, then it is rotated. */
  logBytes: 5 * 1024 * 1024,
} as const;
