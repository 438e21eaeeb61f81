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
  /** A regular expression of the proxy tool: its length, and how long it may take over all tools. */
  patternChars: 500,
  patternMs: 200,
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
  /** That interval doubles up to this while they go on: each list may cost main a new catalog. */
  refreshLongestMs: 60_000,
  /** A connection that has lived for so long has worked: a drop after it is the first again. */
  steadyMs: 60_000,
  /** Pause before a keep-alive server is connected again: doubled with each failure or early drop, up to the longest. */
  reconnectMs: 1_000,
  reconnectLongestMs: 60_000,
  /** A server that is replaced finishes its open calls within this. */
  drainMs: 30_000,

  /**
   * A question whether a project's server may run: ten screens of text. Nobody checks more, so an entry that takes
   * more to tell is refused.
   */
  consentChars: 8_000,
  /** envFiles that are read to ask about them; a larger one could not be told, and a clone may name any number. */
  envFileShownBytes: 256 * 1024,
  envFilesLookedAt: 20,

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
  /** Kept of one list of a server (tools, resources, templates, prompts), all pages together: JSON, in characters. */
  listBytes: 32 * 1024 * 1024,
  /** One JSON-RPC message. */
  messageBytes: 64 * 1024 * 1024,
  /** A notification or a request of a server: real ones hold some KB. */
  unaskedBytes: 16 * 1024 * 1024,
  unaskedDepth: 1_000,
  /** Keys and values of one message. Each takes up to 100 bytes of the worker's heap, so these take a fifth of it. */
  messageValues: 2_000_000,
  /** Messages of more than 1 MiB that come in at a time, of all servers: at most 256 MiB outside of the heap. */
  longMessagesAtATime: 4,
  /** Requests of one server that wait for our answers, and the bytes of answers that it has not taken. */
  serverRequestsOpen: 1_000,
  unsentReplyBytes: 8 * 1024 * 1024,
  /** Requests of one server within a window of time: real ones send a ping now and then. */
  serverRequestsInWindow: 10_000,
  serverRequestsWindowMs: 10_000,
  /** Kept of a server's stderr. */
  stderrTailBytes: 8 * 1024,
  /** Text of one result that reaches the model, as Pi's own tools. */
  resultBytes: 50 * 1024,
  resultLines: 2_000,
  /**
   * Result that a codemode script gets, as JSON; each value counts 64 bytes more, each different key 256, as they cost
   * main: 10 ms on a slow machine. It is enough for a screenshot, or for 60,000 values.
   */
  scriptResultBytes: 4 * 1024 * 1024,
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
  /**
   * Snapshot: main reads it in one go, 10 ms on a slow machine. 10,000 tools of the usual size take 9.5 MiB. Where
   * more is listed, the servers that list most lose their longest schemas first, then their tools.
   */
  snapshotBytes: 12 * 1024 * 1024,
  /** Names and descriptions of all tools in it, which main decodes: 2.5 times what 10,000 usual tools have. */
  snapshotTextBytes: 4 * 1024 * 1024,
  /** Tools in it: main makes an object of each. */
  snapshotTools: 20_000,
  /** Description of one tool, or of one parameter: twice the longest of 1,971 real tools. */
  descriptionChars: 8_000,
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
  /**
   * Configuration files. A project's file comes with a clone and is read before anybody was asked, so it is bounded
   * closely: room for 500 servers with 2 KiB and 100 values each. Of the user's own files, `~/.claude.json` and the
   * like grow with whatever their programs keep in them.
   */
  projectFileBytes: 1024 * 1024,
  projectFileValues: 50_000,
  serversPerProjectFile: 500,
  configFileBytes: 32 * 1024 * 1024,
  configFileValues: 500_000,
  serversPerFile: 2_000,
  /** Reading TOML takes some ten times as long as JSON. */
  tomlFileBytes: 2 * 1024 * 1024,
  /** Levels of objects and lists in one file: more would exhaust the stack of what goes through them. */
  configDepth: 100,
  /** Keys or items of one object or list in an entry or in the settings. */
  configItems: 10_000,
  /** Names and patterns of tools in one list, and the characters of one: each is compared with every tool. */
  toolRules: 1_000,
  toolRuleChars: 256,
  serverNameChars: 128,
  /** Servers of all files, programs and extensions together. */
  servers: 1_000,
  /** Mistakes of one file that are told; the others are counted. */
  problemsPerFile: 20,
  /** What one server may write into the log in a window, by its notifications; the rest is counted. */
  serverLogLines: 100,
  serverLogChars: 64 * 1024,
  serverLogWindowMs: 10_000,
  /** Log file, then it is rotated. */
  logBytes: 5 * 1024 * 1024,
} as const;
