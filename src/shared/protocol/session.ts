/**
 * A Pi session: what main tells the connection worker of it, and what the worker tells of servers, configuration files, open
 * questions, sign-ins and the catalog's settings. Main never sees a token. Types only.
 */

import type { WireError } from "./errors.ts";

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
  /** `--mcp-servers` or `MCP_SERVERS`: the session has these servers alone. Absent: all of them. */
  onlyServers?: readonly string[] | undefined;
  /** Servers that other extensions registered: `pi.getMcpServers()`. */
  registered: RegisteredServer[];
  /** Whether a person can be asked for consent: true in the TUI and over RPC. */
  canAsk: boolean;
  /** Questions of one server, and about calls, are asked side by side, since several clients answer. Absent: one at a time. */
  asksSideBySide?: boolean;
  /** Whether a person who has no server at all is told once how to begin. */
  hints?: boolean;
  /**
   * Stamp of `.pi/mcp.json` when the session began. The person who trusted the project has seen that content, and
   * nothing that was written between then and the worker's first read. Absent: main did not look at the file.
   */
  projectFile?: string;
  /** When the session began, in milliseconds since the epoch. The worker asks about project envFiles that are newer. */
  startedAtMs?: number;
  /** Servers that the person has switched off in this session, which may have been resumed or forked. Unchecked. */
  off?: readonly string[] | undefined;
  /** What the worker before this one had let run, if that worker crashed. */
  accepted?: AcceptedBefore;
  /** What a session that was at rest has shown, as `Rest.traces` has it: the worker tells the person what has changed since. */
  rested?: string;
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
  /** Servers that the person has switched in this session, each with whether it is on. Absent: none. */
  switched?: [server: string, on: boolean][];
  /** Permissions that the person has taken back, and that mcp-trust.json still has. Absent: none. */
  takenBack?: string[];
  /**
   * Each file and its text as the worker applied it; undefined for a file that did not exist, and why for one that could not
   * be read. Absent if edits are applied unasked: then the files on disk count. The texts stay in memory, because they may
   * hold secrets.
   */
  texts?: [file: string, text: string | { reason: string; remedy: string } | undefined][];
}

/** A server that another extension of this Pi registered, with a definition of Pi's own shape. */
export interface RegisteredServer {
  name: string;
  config: unknown;
  extensionPath: string;
}

/** Hints of a server about a tool; the server is untrusted (MCP 2025-11-25, server/tools, annotations). */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** Settings that main must know before a worker runs. */
export interface CatalogSettings {
  /** How ToolSearch ranks: as src/shared/search/README.md describes, or by the 10/5/4/3 weights. Decides the index. */
  search: "ranked" | "weighted";
  /** What the description of ToolSearch lists: servers with tools, servers, or nothing. */
  catalog: "tools" | "servers" | "off";
  /** Offer one tool `mcp` in place of ToolSearch. */
  proxyTool: boolean;
  /** Whether a call to a server that needs a sign-in begins the sign-in and waits for it. */
  autoAuth: boolean;
  /** Absolute paths of the files that were read or looked for. */
  files: readonly string[];
  /** A shared server that is not lazy is there: it may run already, so its first call waits for the worker alone. */
  shared?: true;
}

export const DEFAULT_CATALOG_SETTINGS: CatalogSettings = {
  search: "ranked",
  catalog: "tools",
  proxyTool: false,
  autoAuth: false,
  files: [],
};

/** Servers and tools that the catalog no longer holds, by the servers' own names. */
export interface RemovedTools {
  servers: string[];
  /** Single tools of servers that the catalog still holds. */
  tools: { server: string; tool: string }[];
}

export type ServerState =
  | "idle"
  | "connecting"
  | "connected"
  | "needs-auth"
  | "failed"
  | "closing"
  | "disabled";

/** How many sessions use one process of a server, and since when it runs, in milliseconds since the epoch. */
export interface Sharing {
  sessions: number;
  since: number;
}

export type TransportKind = "stdio" | "http" | "sse" | "socket";

/** One server as `/mcp` shows it. */
export interface ServerStatus {
  name: string;
  state: ServerState;
  lifecycle: "lazy" | "eager" | "keep-alive";
  /** From the configuration until the first connect, then the transport that was really used. */
  transport: TransportKind;
  /** Where the server is defined. */
  source: string;
  /** `source` is a file of another program or of a package, or an extension: no entry is removed there. */
  isForeign?: true;
  /** The user's own words. */
  description?: string;
  toolCount: number;
  /** Resources and resource templates, which are offered as tools beside the server's own. */
  resourceCount: number;
  /** Skills that can be loaded. Absent: none. */
  skillCount?: number;
  /** Whether the tools are known, from a live list or from the cache. */
  toolsKnown: boolean;
  /** Whether some of the tools may be declared from the first request on. */
  direct: boolean;
  /** Revision of MCP that is spoken, for example `2026-07-28`. Absent: the server is not connected. */
  protocol?: string;
  error?: WireError;
  /** What its start waits for, each second anew, for example `npm fetches, 12 s, 3 files: semver`. Absent: nothing unusual. */
  waits?: string;
  pid?: number;
  /** It is `disabled` because the person has switched it off for this session. */
  isOff?: true;
  /** A local server that runs in a sandbox, if it runs. */
  isSandboxed?: true;
  /** Absent: the server is not shared, or its process does not run for this session. */
  sharing?: Sharing;
  /** Absent: the server takes no sign-in, or none was needed yet. */
  signIn?: SignInStatus;
}

/** `error`: a part of the file is left out. `warning`: the whole file is used, but probably not as meant. */
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

/** A project's server that runs only if the user agrees. */
export interface ConsentQuestion {
  server: string;
  /** Hash of what would run. The answer is bound to this hash. */
  hash: string;
  /** Everything that would run and be sent, in one line of at most `LIMITS.consentChars`, never cut. */
  question: string;
  /** It would take the place of the user's own server of this name, which counts until then. */
  inPlace?: true;
  /** An installed package or plugin brings the server, and not the project. */
  ofPackage?: true;
}

export interface StatusReport {
  servers: ServerStatus[];
  problems: ConfigProblem[];
  /** Files that were read or looked for, in order of precedence, lowest first. */
  files: string[];
  questions: ConsentQuestion[];
  /**
   * The servers that may not run, each with the reason. `byPolicy`: the policy of this machine decides. `byPerson`: a person refused it, and can be asked again.
   * `inPlace`: the user's own server of this name counts.
   */
  refused: { name: string; reason: string; byPerson?: true; byPolicy?: true; inPlace?: true }[];
}

/** What the user has agreed to in this sign-in. Absent: the user was not asked yet. */
export interface SignInAgreed {
  /** The issuer that the user accepts although it differs from the address under which it was found. */
  issuer?: string;
  /** The endpoints that the user accepted although they are of different sites, as the question named them. */
  endpoints?: string;
  /** Whether Pi's own sign-in may be moved into this extension's store. */
  fromPi?: boolean;
  /** The user wants a code for another device, or none; in place of `deviceCode` in the server's entry. */
  device?: boolean;
}

/** A question to the user before the sign-in goes on. `text`: all that the user must know, in one line. */
export type SignInQuestion =
  | { about: "issuer"; issuer: string; text: string }
  | { about: "endpoints"; endpoints: string; text: string }
  | { about: "pi"; text: string };

/** How a sign-in goes on. */
export type SignInStep =
  /** Nobody had to do anything: the old sign-in was renewed, or Pi's was taken over. A `sign-in` event follows. */
  | { step: "renewed"; id: string }
  /** The same request with the answer in `agreed` goes on. */
  | { step: "ask"; question: SignInQuestion }
  /** The user opens `url`. The end is told by a `sign-in` event with this `id`. */
  | {
      step: "open";
      id: string;
      url: string;
      redirectUri: string;
      /** Host of the token endpoint, to which the code of this sign-in is sent. */
      codeGoesTo: string;
      /** `started`: a browser was told to open the address. `none`: there is none here, for example over SSH. */
      browser: "started" | "none";
      /** False: nothing listens at the redirect URI, so the user must paste the address. */
      listens: boolean;
      /** The sign-in ends by itself after this time. */
      endsInMs: number;
    }
  /** The user enters a code at another device (RFC 8628). The end is told by a `sign-in` event with this `id`. */
  | {
      step: "device";
      id: string;
      /** The page for the code. */
      url: string;
      /** Printable ASCII. */
      userCode: string;
      /** A page of the same origin that has the code already. Absent: there is none. */
      urlWithCode?: string;
      /** Host that gave the code. */
      codeFrom: string;
      endsInMs: number;
    };

/** The end of a sign-in. `tools`: absent if the server did not connect afterwards, which its status explains. */
export type SignInResult = { ok: true; tools?: number } | { ok: false; error: WireError };

/** A server's sign-in as `/mcp` shows it. */
export type SignInStatus =
  | { state: "needed" }
  | { state: "running" }
  /**
   * `expiresAt`: milliseconds since the epoch; absent: unknown. `byItself`: no user has signed in, and none can sign out.
   * `through`: host of the company's identity provider. `isBound`: the tokens work with a key of this machine only.
   * `isInSystem`: the system's credential store keeps them.
   */
  | {
      state: "signed-in";
      expiresAt?: number;
      renews: boolean;
      byItself?: true;
      through?: string;
      isBound?: true;
      isInSystem?: true;
    };
