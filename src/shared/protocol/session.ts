/** What main tells the connection worker about a Pi session. Types only. */

/** Limits that a session may be given in the place of those of the same names in `LIMITS`, in milliseconds. */
export interface SessionLimits {
  refreshIntervalMs: number;
  refreshLongestMs: number;
  reconnectMs: number;
  closeTermMs: number;
  closeKillMs: number;
  publishMs: number;
  publishAloneMs: number;
}

/** Parameters of `startSession`. */
export interface SessionFacts {
  cwd: string;
  agentDir: string;
  /** `ctx.isProjectTrusted()`: whether `.pi/mcp.json` counts. */
  projectTrusted: boolean;
  /** `--mcp-config`: a file in place of `<agentDir>/mcp.json`. */
  configPath: string | undefined;
  /** Servers that other extensions registered: `pi.getMcpServers()`. */
  registered: RegisteredServer[];
  /** Whether a person can be asked for consent: true in the TUI and over RPC. */
  canAsk: boolean;
  /** Whether a person who has no server at all is told once how to begin. */
  hints?: boolean;
  /**
   * Stamp of `.pi/mcp.json` when the session began. The person who trusted the project has seen that content, and
   * nothing that was written between then and the worker's first read. Absent: main did not look at the file.
   */
  projectFile?: string;
  /** When the session began, in milliseconds since the epoch. The worker asks about project envFiles that are newer. */
  startedAtMs?: number;
  /** What the worker before this one had let run, if that worker crashed. */
  accepted?: AcceptedBefore;
  /**
   * Servers that the worker must not connect by itself, because they were at work when an earlier worker of this
   * session died. `why` is a sentence without its full stop.
   */
  heldBack?: { server: string; why: string }[];
  /**
   * No server is connected before a request needs it, whatever its lifecycle is: the command line asks for one thing.
   * Absent: as the configuration says.
   */
  onDemand?: boolean;
  /** Checksum of the snapshot that main already shows. The worker does not send equal content again. */
  snapshotChecksum: number | undefined;
  /** Pi gives none. Tests give short ones, so that they see what follows without waiting as long as a user would. */
  limits?: Partial<SessionLimits>;
}

/** What a session has let run so far. The worker that follows a crash neither asks for it nor applies it again. */
export interface AcceptedBefore {
  /** Hashes of the project's servers. */
  servers: string[];
  /**
   * Each file and its text as the worker applied it; undefined for a file that did not exist. Absent if edits are
   * applied unasked: then the files on disk count. The texts stay in memory, because they may hold secrets.
   */
  texts?: [file: string, text: string | undefined][];
}

/** A server that another extension of this Pi registered, with a definition of Pi's own shape. */
export interface RegisteredServer {
  name: string;
  config: unknown;
  extensionPath: string;
}
