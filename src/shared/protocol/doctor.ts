/** What the doctor answers: findings with what to do, and facts that may be pasted into an issue. Types only. */
import type { ServerState, TransportKind } from "./status.ts";

/** From well to worst. `ok`: this was looked at and is well. `note`: worth knowing, nothing to do. */
export type Severity = "ok" | "note" | "warning" | "error";

/** What a finding is about. The same word stays the same between versions, so that scripts can rely on it. */
export type FindingId =
  /** A configuration file: its syntax, a value, a file that cannot be read. */
  | "config"
  /** A project's server that waits for consent, or may not run. */
  | "consent"
  | "variable"
  | "command"
  | "folder"
  | "node"
  | "npx"
  | "dns"
  | "port"
  | "tls"
  | "proxy"
  | "sign-in"
  | "refused"
  /** The url leads to something that is no MCP server. */
  | "address"
  /** The revision of MCP, and the transport. */
  | "protocol"
  | "time-out"
  /** A server that cannot be connected for another reason. */
  | "connect"
  /** A server's process or connection that ended. */
  | "ended"
  /** A worker thread that ended, and servers that are not started because of it. */
  | "crash"
  | "tool-names"
  | "schemas"
  | "left-out"
  | "tokens"
  | "other-client"
  | "log"
  | "disk"
  | "file-modes"
  /** A check that failed or took too long. */
  | "unfinished";

/** Each text is one line without control characters, secrets, queries of urls, or the path of the home folder. */
export interface Finding {
  id: FindingId;
  severity: Severity;
  server?: string;
  /** One sentence. */
  title: string;
  /** More about it, in one line. */
  detail?: string;
  /** What to do, in one sentence. Absent: nothing. */
  remedy?: string;
  file?: string;
  /** Counts from 1. */
  line?: number;
}

/** One step of an attempt to reach a server. */
export interface DoctorStage {
  name: string;
  ms: number;
  ok: boolean;
}

export interface DoctorFacts {
  /** Of this package. */
  version: string;
  /** For example `Node 24.1.0`. */
  runtime: string;
  /** For example `linux x64 6.8.0`. */
  platform: string;
  /** Names of the variables that set a proxy, never their values. */
  proxies: string[];
  servers: number;
  connected: number;
  /** Of the project, waiting for consent or refused. */
  waiting: number;
  tools: number;
}

export interface DoctorServer {
  name: string;
  transport: TransportKind;
  state: ServerState;
  lifecycle: string;
  tools: number;
  /** Revision of MCP that is spoken. */
  protocol?: string;
  /** How long its last start took. */
  startMs?: number;
  /** Tokens of its tools that are declared from the first request on, estimated. */
  directTokens?: number;
}

export interface DoctorReport {
  /** The worst first. */
  findings: Finding[];
  /** Findings and servers beyond the limits. */
  leftOut: number;
  facts: DoctorFacts;
  servers: DoctorServer[];
  /** Of the server that was asked for; else empty. */
  stages: DoctorStage[];
  tookMs: number;
}

/** Asked by the person, by `/mcp doctor` or on the command line. */
export interface DoctorRequests {
  /**
   * Looks for what is wrong. With `server`, connects that server as a call would, and tells how long each step took;
   * without, starts and asks no server, and only looks up and opens connections to the addresses of the user's own files.
   * Answers within 15 s. Rejects with `unknown_server` or `cancelled`.
   */
  diagnose: { params: { server?: string }; value: DoctorReport };
}
