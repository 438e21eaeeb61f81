/** What the panel of `/mcp` asks of the connection worker about one server. Types only. */

/** What becomes of a tool: declared to the model, found by ToolSearch, or withheld. */
export type ToolExposure = "direct" | "search" | "hidden";

/** Which calls ask the person, as one word. */
export type ApproveWord = "never" | "destructive" | "always";

/** A rule of the configuration and where it stands. */
export interface RulePlace {
  /** For example `excludeTools "delete_*"`. */
  rule: string;
  file: string;
  /** From 1. Absent: the file is of another program or of an extension. */
  line?: number;
}

/** The tools that a server offers, hidden ones too, as columns of equal length: there may be thousands. */
export interface ToolExposures {
  /** The server's own names. */
  names: string[];
  exposures: ToolExposure[];
  /** For each tool the position in `places`; -1: no rule, so ToolSearch finds the tool. */
  rules: number[];
  places: RulePlace[];
}

export interface ServerDetails {
  /** What runs, as the question of consent says it, without secrets; bounded. */
  runs: string;
  file: string;
  /** Of the entry, from 1. */
  line?: number;
  /** Files that change some of its keys, lowest precedence first. */
  overrides: string[];
  /** Names of the variables that it gets. */
  env: string[];
  cwd?: string;
  lifecycle: "lazy" | "eager" | "keep-alive";
  /** `rules`: by tool or pattern. `settings`: what the settings say. */
  approve: ApproveWord | "rules" | "settings";
  toolPrefix: "server" | "short" | "none" | "mcp";
  /** Whether `toolPrefix` is the server's own. */
  ownPrefix: boolean;
  /** As written, for example `timeout 30 s`. */
  timeouts: string[];
  /** Milliseconds since the epoch. Absent: not connected. */
  connectedAt?: number;
  tools: ToolExposures;
}

/** The keys of a server that the panel changes, with their values. */
export type ServerKey =
  | { key: "lifecycle"; value: ServerDetails["lifecycle"] }
  | { key: "approve"; value: ApproveWord }
  | { key: "toolPrefix"; value: ServerDetails["toolPrefix"] };

/** Where a server's key is. The key itself is written nowhere. */
export interface KeySource {
  /** The header that it is sent in; absent: as `Authorization: Bearer`. */
  header?: string;
  /** The environment variable that holds it, or the command that prints it. */
  from: { variable: string } | { command: string };
}

export interface LogLines {
  /** Oldest first, each printable in one line. */
  lines: string[];
  /** Size of the file that was read, in bytes: the next request names it, and is answered when the file has changed. */
  size: number;
}

export interface PanelRequests {
  serverDetails: { params: { server: string }; value: ServerDetails };
  /**
   * Sets one key of a server in the file where that has an effect, or in the project's file. Comments stay, and the change
   * is applied at once. Fails if another file decides, and names it.
   */
  setServer: { params: { server: string; project: boolean } & ServerKey; value: { file: string } };
  /** Writes where the server's key is, in the place of the one that it has, and applies it at once. */
  setKey: { params: { server: string } & KeySource; value: { file: string } };
  /**
   * Decides what becomes of tools of a server; of all its tools without `tools`. Fails if a rule of another file or a
   * pattern forbids it, and names the rule with file and line. `tools`: the server's own names.
   */
  setExposure: {
    params: { server: string; tools: string[] | undefined; to: ToolExposure; project: boolean };
    value: { file: string };
  };
  /**
   * Answers the last lines of the log that name the server. With `seen`, the size that an earlier answer told, it answers
   * when the log has changed, or after a while.
   */
  serverLog: { params: { server: string; seen: number | undefined }; value: LogLines };
}
