/** What the connection worker tells main about servers, configuration files and open questions. Types only. */
import type { WireError } from "./errors.ts";
import type { SignInStatus } from "./sign-in.ts";

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
  /** From the configuration until the first connect, then the transport that was really used. */
  transport: TransportKind;
  /** Where the server is defined. */
  source: string;
  /** The user's own words. */
  description?: string;
  toolCount: number;
  /** Resources and resource templates, which are offered as tools beside the server's own. */
  resourceCount: number;
  /** Whether the tools are known, from a live list or from the cache. */
  toolsKnown: boolean;
  /** Whether some of the tools may be declared from the first request on. */
  direct: boolean;
  /** Revision of MCP that is spoken, for example `2026-07-28`. Absent: the server is not connected. */
  protocol?: string;
  error?: WireError;
  /** What its start waits for, each second anew, for example `npm fetches semver, 12 s, 3 files`. Absent: nothing unusual. */
  waits?: string;
  pid?: number;
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
}

export interface StatusReport {
  servers: ServerStatus[];
  problems: ConfigProblem[];
  /** Files that were read or looked for, in order of precedence, lowest first. */
  files: string[];
  questions: ConsentQuestion[];
  /**
   * The project's servers that may not run, each with the reason. `byPerson`: a person refused it, and can be asked again.
   * `inPlace`: the user's own server of this name counts.
   */
  refused: { name: string; reason: string; byPerson?: true; inPlace?: true }[];
}
