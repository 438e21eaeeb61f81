/**
 * The limits that both sides know or that users notice: what a server, a file or a thread may cost before it is cut off.
 * Limits of one folder stand in that folder; docs/limits.md lists all that bound foreign input, and
 * test/boundary/limits.test.ts compares the two. Units are in the names. A boundary test pins the values.
 */
export const LIMITS = {
  /** Longest name of a tool that providers accept (OpenAI and Anthropic: 64 of `[A-Za-z0-9_-]`). */
  toolNameChars: 64,
  /** Tools that one ToolSearch loads, by default and at most. */
  searchResults: 5,
  searchResultsMost: 20,
  /** Further tools that ToolSearch names without loading them. */
  searchNamesMore: 10,
  /** Tokens for servers and their tools in the description of ToolSearch. */
  catalogTokens: 1_000,
  /** The text that tells the model of changed servers: tokens, names of tools that it remembers, texts about one server. */
  newsTokens: 200,
  newsTools: 100,
  newsAServer: 5,
  /** A regular expression of the proxy tool: its length, and the time that it may take for all tools. */
  patternChars: 500,
  patternMs: 200,
  /** ToolSearch waits this long for servers whose tools are not known yet. */
  searchWaitMs: 5_000,
  /** A prompt waits this long, once a session, for servers whose direct tools have never been listed. */
  directWaitMs: 10_000,
  /** The first prompt without a snapshot waits this long for the names of the configured servers. */
  firstPlanWaitMs: 300,
  /** The first plan starts its servers this long after it is made, if the first request has not left by then. */
  firstRequestMs: 250,

  /** The longest time of Node's timers, 31 bits: a longer one would fire at once. About 24 days, so never in practice. */
  longestTimerMs: 2 ** 31 - 1,
  /** From spawn or first request to the complete tool list. */
  startupTimeoutMs: 30_000,
  /** One tool call. Progress renews the time, but never beyond the cap. */
  requestTimeoutMs: 60_000,
  requestCapMs: 60 * 60 * 1_000,
  /** Progress reaches Pi at most this often. */
  progressIntervalMs: 100,
  /** Main gives up on a reply this long after the worker's own limit. */
  rpcGraceMs: 5_000,
  /** Requests that only read the worker's state. */
  rpcShortMs: 5_000,
  /** Calls do not repeat a failed connect for this many times what it took, between the two limits. */
  retryTimes: 10,
  retrySoonestMs: 1_000,
  retryAfterFailureMs: 60_000,
  /** Where no call waits, the pause doubles with each failure, up to this. */
  retryUnaskedLongestMs: 10 * 60 * 1_000,
  /** Background connects at a time. Connects that a call waits for do not count. */
  connectsAtATime: 10,
  /** A lazy server is closed after this time without use. */
  idleTimeoutMs: 10 * 60 * 1_000,
  /** A keep-alive server is pinged at this interval, and has this long to answer. */
  healthCheckMs: 30_000,
  healthAnswerMs: 10_000,
  /** `list_changed` notifications are gathered for the delay, then cost at most one list in each interval. */
  refreshDelayMs: 100,
  refreshIntervalMs: 1_000,
  /** The interval doubles up to this while notifications go on: each list may cost main a new catalog. */
  refreshLongestMs: 60_000,
  /** A connection that has lived this long counts as working: a later drop is the first one again. */
  steadyMs: 60_000,
  /** Pause before a keep-alive server is connected again. It doubles with each failure or early drop, up to the longest. */
  reconnectMs: 1_000,
  reconnectLongestMs: 60_000,
  /** A server that is replaced has this long to finish its open calls. */
  drainMs: 30_000,

  /**
   * The question whether a project's server may run: ten screens of text. Nobody checks more, so an entry whose question
   * would be longer is refused.
   */
  consentChars: 8_000,
  /** The arguments in the question whether a tool may run, and questions that wait for an answer. */
  approvalChars: 20_000,
  approvalsOpen: 100,
  /** Size and number of envFiles that are read for a question: a question cannot show more, and a clone may name many. */
  envFileShownBytes: 256 * 1024,
  envFilesLookedAt: 20,
  /**
   * Files of a project to whose content a yes is bound: bytes of one, how many are read whole, and the words of all its
   * servers that may be files.
   */
  scriptBytes: 1024 * 1024,
  scriptsRead: 50,
  scriptWords: 5_000,

  /** The trial of a server that is to be added: a package may have to be downloaded first. The names that it tells. */
  tryMs: 60_000,
  triedToolNames: 10,
  /** Servers of other programs that are shown for a choice, and the characters of all that they would run. */
  foundServers: 1_000,
  foundChars: 500_000,
  /** Servers that are copied at once. */
  copiedServers: 200,

  /** The version that npm installed for an npx command counts as the newest for this long. */
  npxFreshMs: 24 * 60 * 60 * 1_000,
  /** One run of npm for an npx command, and how long it may say nothing: it says each answer of its registry. */
  npxRunMs: 10 * 60 * 1_000,
  npxSilentMs: 2 * 60 * 1_000,
  /** What a start waits for, in words: the names of packages come from the configuration. */
  waitsChars: 200,

  /** Pages of one `tools/list`. */
  listPages: 200,
  /** Tools of one server. */
  toolsPerServer: 10_000,
  /** Resources and resource templates of one server that become tools. */
  resourcesPerServer: 200,
  /** Skills of one server; the files of one and their bytes, as SEP-2640 fixes them ("Limits"); and its name. */
  skillsPerServer: 1_000,
  skillFiles: 512,
  skillBytes: 16 * 1024 * 1024,
  skillNameChars: 64,
  /** Skills that were allowed for good: the oldest yes goes first. */
  skillsAllowed: 1_000,
  /** A server's tools wait this long for its resources. Later resources come as a change. */
  resourcesWaitMs: 2_000,
  /** All pages of one list of a server (tools, resources, templates, prompts) together: characters of JSON. */
  listBytes: 32 * 1024 * 1024,
  /** One JSON-RPC message. */
  messageBytes: 64 * 1024 * 1024,
  /** A notification or a request of a server. Real ones have a few KB. */
  unaskedBytes: 16 * 1024 * 1024,
  unaskedDepth: 1_000,
  /** Keys and values of one message. Each takes up to 100 bytes of a thread's heap, so all take a fifth of it. */
  messageValues: 2_000_000,
  /** Messages that come as one array (MCP 2025-03-26). */
  batchMessages: 100,
  /** Processor time in which the thread for long messages reads one, and again in which it makes a result of one. */
  heavyWorkMs: 2_000,
  /** That thread ends after this time without a long message. */
  heavyIdleMs: 5_000,
  /** Messages of more than 1 MiB that arrive at a time, from all servers: at most 256 MiB outside of the heap. */
  longMessagesAtATime: 4,
  /** Requests of one server that wait for our answers, and bytes of answers that the server has not read. */
  serverRequestsOpen: 1_000,
  unsentReplyBytes: 8 * 1024 * 1024,
  /** Requests of one server within a window of time. Real servers send a ping now and then. */
  serverRequestsInWindow: 10_000,
  serverRequestsWindowMs: 10_000,
  /**
   * Lines of one connection within a window of time that hold no message, and their bytes. Beyond the first number they are
   * dropped without being parsed or told, beyond the others the connection or the stream is closed.
   */
  noiseLinesRead: 1_000,
  noiseLines: 100_000,
  noiseBytes: 64 * 1024 * 1024,
  noiseWindowMs: 10_000,
  /** The end of a server's stderr that is kept. */
  stderrTailBytes: 8 * 1024,
  /** Prompts of all servers that become commands. */
  promptCommands: 100,
  /** Name of an argument of a prompt, and the description of a prompt or an argument. */
  promptArgumentChars: 64,
  promptDescriptionChars: 300,
  /** One `prompts/get`, after the server is connected. */
  promptTimeoutMs: 30_000,
  /** Suggestions for an argument: their wait, their number as MCP demands, and the length of one. */
  completionMs: 1_000,
  completions: 100,
  completionChars: 200,
  /** Resources that one message hands over, the length of a mention of one, suggestions for it, and a title in a list. */
  resourcesInMessage: 10,
  mentionChars: 2_000,
  suggestedResources: 20,
  resourceTitleChars: 200,
  /** A server's instructions that the model gets once, and the servers whose instructions come with one answer. */
  instructionsChars: 2_048,
  instructionsServers: 5,
  /** Text of one result that reaches the model: the same limits as those of Pi's own tools. */
  resultBytes: 50 * 1024,
  resultLines: 2_000,
  /**
   * The result that a codemode script gets, as JSON. Each value counts 64 bytes more and each different key 256, as they
   * cost main. All of it takes main 10 ms on a slow machine, and is enough for a screenshot, or for 60,000 values.
   */
  scriptResultBytes: 4 * 1024 * 1024,
  /** Base64 characters of one image that reaches the model, the same limit as Pi's: Anthropic takes 5 MB. */
  imageChars: 4.5 * 1024 * 1024,
  /** Width and height of one image. Anthropic refuses larger images. */
  imagePixels: 8_000,
  /** Images of one result that reach the model, and their characters together. */
  imagesPerResult: 20,
  imagesChars: 20 * 1024 * 1024,
  /** Files in which images, audio and blobs of one result are saved. */
  filesPerResult: 100,
  /** The server's own words in an error. */
  errorTextChars: 4_000,
  /** JSON of a JSON-RPC error's data that is kept. */
  errorDataBytes: 4 * 1024,

  /** Longest `Retry-After` that a connect over HTTP, or a request without effect, waits for. */
  retryAfterMs: 5_000,
  /** The request that explains a failed connect. */
  probeMs: 3_000,
  /** A server over HTTP has this long to answer the end of its session (DELETE). */
  sessionEndMs: 250,

  /** Closing a server: time from the end of stdin to SIGTERM to its process group, then from there to SIGKILL. */
  closeTermMs: 500,
  closeKillMs: 2_000,
  /** The hub of shared servers ends this long after its last server and its last session, and looks so often for its folder. */
  hubEndMs: 30_000,
  hubLookMs: 5_000,
  /** What a connection to the hub may send, and for how long, before it has proved itself; how many may be at that point. */
  hubUnprovenBytes: 4 * 1024,
  hubUnprovenMs: 2_000,
  hubUnproven: 32,
  /** A new hub has this long to be ready, and an answer of one as well. */
  hubStartMs: 10_000,
  /** One message of a session to its shared server. */
  hubRequestBytes: 128 * 1024 * 1024,
  /** A session that has not read so many bytes is dropped, and one whose server has not; nobody waits longer than this for one that does not read. */
  hubUnreadBytes: 64 * 1024 * 1024,
  hubStallMs: 250,
  /** For so long a session that has too much unread may take nothing before it is dropped. */
  hubDropMs: 3_000,
  /** A shared server that ends sooner than this after its start, twice in a row, counts as broken: its next start waits, each time twice as long. */
  hubEarlyMs: 5_000,
  hubPauseMs: 500,
  hubLongestPauseMs: 30_000,
  shutdownTermMs: 250,
  shutdownKillMs: 800,
  /** Main pings the connection worker at this interval. No answer for as long means that the worker hangs. */
  heartbeatMs: 5_000,
  /** Delays before a new worker after a crash. The last delay repeats. */
  respawnMs: [100, 1_000, 5_000],
  /** After this many crashes within a minute no new worker is started. */
  respawnsAMinute: 5,
  /** Old-space limit of the connection worker, and of the cache worker. */
  workerHeapMebibytes: 1_024,
  /** Main gives the worker this long to close everything, then kills the processes that are left. */
  shutdownMs: 1_000,
  /** The end of a session waits this much longer for a sign-in that is being renewed: a lost rotated token is a lost sign-in. */
  renewalEndMs: 5_000,

  /** Catalog changes are gathered for this long before the index is built again. */
  catalogDebounceMs: 100,
  /**
   * Making a snapshot: a hundred times as long as 2,000 tools take. After that the servers are tried alone, to find the
   * one that takes so long.
   */
  publishMs: 15_000,
  publishAloneMs: 10_000,
  /** Making a snapshot of servers that can all be done alone: they are many, or the machine is busy. */
  publishSlowMs: 60_000,
  /**
   * The end of a session waits this long for the snapshot of the next start. The rest of `shutdownMs` is for the entries of
   * the cache, which wait behind that snapshot.
   */
  publishFinishMs: 600,
  /** A server whose tools could not be published is not tried again for this long, unless it is reconnected. */
  leftOutMs: 24 * 60 * 60 * 1_000,
  /** Notices about servers' tools that the user sees in a session: about one server, and about all. */
  noticesAServer: 3,
  noticesASession: 20,
  /**
   * The snapshot. Main reads it in one go, 10 ms on a slow machine. 10,000 tools of the usual size take 9.5 MiB. Beyond
   * the limit the servers that list most lose their longest schemas first, then their tools. Of a larger catalog each
   * tool may have the usual size: 50,000 take 30 ms.
   */
  snapshotBytes: 12 * 1024 * 1024,
  snapshotBytesATool: 1_024,
  /** Names and descriptions of all tools in a snapshot, which main decodes: 2.5 times those of 10,000 usual tools. */
  snapshotTextBytes: 4 * 1024 * 1024,
  snapshotTextBytesATool: 400,
  /** Tools in a snapshot. */
  snapshotTools: 60_000,
  /** With more tools the factory registers none but direct ones, and Pi knows the others when they are reached. */
  toolsAtStart: 1_000,
  /** Of a larger catalog, a script that may reach every tool gets as many, and one that names servers as many more. */
  lateTools: 2_000,
  /**
   * Tools of servers that are declared at a time, so that they and those of Pi and other extensions are fewer than the 128
   * that OpenAI takes; those that stay when tools are let go; and the direct ones, beside which a search must have room.
   */
  declaredTools: 100,
  declaredToolsKept: 50,
  directTools: 80,
  /**
   * Pi takes no tool and no command back. Tools of one server that are gone, after which its new direct ones are left to
   * searches; and commands of one server, those that are gone among them, after which Pi proposes no new ones.
   */
  goneTools: 400,
  toldCommands: 400,
  /** Description of one tool, or of one parameter: twice the longest of 1,971 real tools. */
  descriptionChars: 8_000,
  /** The metadata cache file. A larger file is neither read nor written. */
  cacheBytes: 128 * 1024 * 1024,
  /** An entry of the metadata cache is valid for this long, and not if its time is further in the future than the skew. */
  cacheEntryMs: 7 * 24 * 60 * 60 * 1_000,
  clockSkewMs: 24 * 60 * 60 * 1_000,
  /** Cache entries and snapshots that nobody used for this long are removed. */
  unusedMs: 30 * 24 * 60 * 60 * 1_000,
  /** A use, or an unchanged listing, is written to a file at most this often. */
  usedEveryMs: 24 * 60 * 60 * 1_000,
  /** Temp files of killed writers are removed after this long. */
  leftoverMs: 60 * 60 * 1_000,
  /** Broken cache files that are kept aside. */
  corruptCopies: 3,
  /** The lock of the cache file: longest wait, interval of the owner's beats, and silence after which an owner is dead. */
  lockWaitMs: 10_000,
  lockBeatMs: 1_000,
  lockSilentMs: 4_000,
  /**
   * Configuration files. A project's file comes with a clone and is read before anybody was asked, so its limits are
   * tight: room for 500 servers with 2 KiB and 100 values each. The user's own files, such as `~/.claude.json`, grow with
   * whatever their programs keep in them.
   */
  projectFileBytes: 1024 * 1024,
  /** Files that a project decides are waited for so long: their file system may be another machine. */
  projectReadMs: 2_000,
  /** What a project's settings leave the user's own servers at least: of one message, and of a result for the model. */
  projectMessageBytes: 1024 * 1024,
  projectGuardBytes: 4_000,
  projectGuardLines: 50,
  projectFileValues: 50_000,
  serversPerProjectFile: 500,
  configFileBytes: 32 * 1024 * 1024,
  configFileValues: 500_000,
  serversPerFile: 2_000,
  /** Reading TOML takes about ten times as long as JSON. */
  tomlFileBytes: 2 * 1024 * 1024,
  /** Levels of objects and lists in one file: more would exhaust the stack of the code that walks them. */
  configDepth: 100,
  /** Keys or items of one object or list in an entry or in the settings. */
  configItems: 10_000,
  /** Names and patterns of tools in one list, and the characters of one. Each is compared with every tool. */
  toolRules: 1_000,
  toolRuleChars: 256,
  /** Words that `searchKeywords` of a server gives one tool or pattern, the characters of one, and of all for one tool. */
  searchKeywords: 50,
  searchKeywordChars: 100,
  searchKeywordsChars: 2_000,
  serverNameChars: 128,
  /** Servers of all files, programs and extensions together. */
  servers: 1_000,
  /** Mistakes of one file that are reported. The others are counted. */
  problemsPerFile: 20,
  /** Lines and characters that one server's notifications may write into the log in a window. The rest is counted. */
  serverLogLines: 100,
  serverLogChars: 64 * 1024,
  serverLogWindowMs: 10_000,
  /** The log file is rotated before it would be larger. */
  logBytes: 5 * 1024 * 1024,
} as const;
