/**
 * Every limit in one place: what a server, a file or a thread may cost before it is cut off.
 * Units are in the names. Change one on purpose: a boundary test pins them.
 */
export const LIMITS = {
  /** Longest name a provider accepts for a tool (OpenAI and Anthropic: 64 of `[A-Za-z0-9_-]`). */
  toolNameChars: 64,
  /** Tools that one ToolSearch loads, unless it asks for more, and the most it may ask for. */
  searchResults: 5,
  searchResultsMost: 20,
  /** Further tools that it names. */
  searchNamesMore: 10,
  /** Servers and their tools in the description of ToolSearch. */
  catalogTokens: 1_000,
  /** ToolSearch waits this long for servers whose tools are not known yet. */
  searchWaitMs: 5_000,
  /** The first prompt waits this long for servers whose direct tools were never told. */
  directWaitMs: 10_000,
  /** The first prompt without a snapshot waits this long for the names of the configured servers. */
  firstPlanWaitMs: 300,

  /** Node's timers hold 31 bits: a longer time would fire at once. About 24 days, which is as good as never. */
  longestTimerMs: 2 ** 31 - 1,
  /** From spawn or first request to the complete tool list. */
  startupTimeoutMs: 30_000,
  /** One tool call, renewed by progress, but never beyond the cap. */
  requestTimeoutMs: 60_000,
  requestCapMs: 60 * 60 * 1_000,
  /** Progress reaches Pi at most this often. */
  progressIntervalMs: 100,
  /** What main adds to the worker's own limits before it gives up on a reply. */
  rpcGraceMs: 5_000,
  /** Requests that only read the worker's state. */
  rpcShortMs: 5_000,
  /** A failed connect is not repeated by calls for this long. */
  retryAfterFailureMs: 60_000,
  /** Background connects at a time; what a call waits for is not counted. */
  connectsAtATime: 10,
  /** A lazy server that nothing has used for this long is closed. */
  idleTimeoutMs: 10 * 60 * 1_000,
  /** A keep-alive server is asked whether it lives, and has this long to answer. */
  healthCheckMs: 30_000,
  healthAnswerMs: 10_000,
  /** `list_changed` notifications are gathered, then cost at most one list an interval. */
  refreshDelayMs: 100,
  refreshIntervalMs: 1_000,
  /** A server that is replaced finishes its open calls within this. */
  drainMs: 30_000,

  /** What npm installed for an npx command counts as its newest for this long. */
  npxFreshMs: 24 * 60 * 60 * 1_000,
  /** One run of npm on behalf of an npx command. */
  npxRunMs: 60_000,

  /** Pages of one `tools/list`. */
  listPages: 200,
  /** Tools of one server. */
  toolsPerServer: 10_000,
  /** Resources and resource templates of one server that become tools. */
  resourcesPerServer: 200,
  /** A server's tools wait this long for its resources; later ones come as a change. */
  resourcesWaitMs: 2_000,
  /** One JSON-RPC message. */
  messageBytes: 64 * 1024 * 1024,
  /** Kept of a server's stderr. */
  stderrTailBytes: 8 * 1024,
  /** Text of one result that reaches the model, as Pi's own tools. */
  resultBytes: 50 * 1024,
  resultLines: 2_000,
  /** Base64 characters of one image that reaches the model, as Pi itself: Anthropic takes 5 MB. */
  imageChars: 4.5 * 1024 * 1024,
  /** Width and height of one; Anthropic refuses a larger one. */
  imagePixels: 8_000,
  /** Images of one result that reach the model, and their characters together. */
  imagesPerResult: 20,
  imagesChars: 20 * 1024 * 1024,
  /** Files that images, audio and blobs of one result are saved to. */
  filesPerResult: 100,
  /** The server's own words in an error. */
  errorTextChars: 4_000,
  /** JSON of a JSON-RPC error's data that is kept. */
  errorDataBytes: 4 * 1024,

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
  /** Main asks the connection worker this often whether it lives; no answer for as long means it hangs. */
  heartbeatMs: 5_000,
  /** Delays before a new worker after a crash; the last one repeats. */
  respawnMs: [100, 1_000, 5_000],
  /** Crashes within a minute after which no new worker is started. */
  respawnsAMinute: 5,
  /** Old-space limit of the connection worker, and of the cache worker. */
  workerHeapMebibytes: 1_024,
  /** Main gives the worker this long to close everything before it kills what is left. */
  shutdownMs: 1_000,

  /** Catalog changes are gathered for this long before the index is rebuilt. */
  catalogDebounceMs: 100,
  /** Making a snapshot: a hundred times what 2,000 tools take. Then the server that takes so long is looked for. */
  publishMs: 15_000,
  publishAloneMs: 10_000,
  /** Of all servers, each of which can be done alone: they are many, or the machine is busy. */
  publishSlowMs: 60_000,
  /** The end of a session waits this long for a snapshot that the next start would have. */
  publishFinishMs: 5_000,
  /** A server whose tools could not be published is not tried again for this long, unless it is reconnected. */
  leftOutMs: 24 * 60 * 60 * 1_000,
  /** Notices about the tools of a server that the user is shown in a session: of one server, and of all. */
  noticesAServer: 3,
  noticesASession: 20,
  /** Snapshot file. */
  snapshotBytes: 64 * 1024 * 1024,
  /** Metadata cache file: a larger one is neither read nor written. */
  cacheBytes: 128 * 1024 * 1024,
  /** An entry of the metadata cache is valid for this long; one from further in the future is not. */
  cacheEntryMs: 7 * 24 * 60 * 60 * 1_000,
  clockSkewMs: 24 * 60 * 60 * 1_000,
  /** Cache entries and snapshots that nobody used for this long are removed. */
  unusedMs: 30 * 24 * 60 * 60 * 1_000,
  /** That something was used, or listed again unchanged, is written down at most this often. */
  usedEveryMs: 24 * 60 * 60 * 1_000,
  /** Temp files of killed writers are removed after this long. */
  leftoverMs: 60 * 60 * 1_000,
  /** Broken cache files that are kept aside. */
  corruptCopies: 3,
  /** The lock of the cache file: waited for, shown to be held, taken from an owner that shows nothing. */
  lockWaitMs: 10_000,
  lockBeatMs: 1_000,
  lockSilentMs: 4_000,
  /** What one server may write into the log in a window, by its notifications; the rest is counted. */
  serverLogLines: 100,
  serverLogChars: 64 * 1024,
  serverLogWindowMs: 10_000,
  /** Log file, then it is rotated. */
  logBytes: 5 * 1024 * 1024,
} as const;
