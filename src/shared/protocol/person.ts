/**
 * What the worker answers a person who looks at servers and sets them up: by `/mcp`, its panel, the doctor and the command line.
 * Every text here is cleaned and bounded by the worker, and holds no secret. Types only.
 */
import type { JsonValue, WireError } from "./errors.ts";
import type { ConfigProblem, ConfigSeverity, ServerState, TransportKind } from "./session.ts";

/** An entry of `mcpServers`, as it stands in a file. */
export type ServerEntry = { [key: string]: JsonValue };

/** A server that a person wants to have. */
export interface ProposedServer {
  name: string;
  entry: ServerEntry;
  /** For the project's `.pi/mcp.json`; otherwise for the user's own mcp.json. */
  project: boolean;
}

/** What is wrong with an entry. */
export interface EntryMistake {
  severity: ConfigSeverity;
  /** Path of the key below the entry, for example `env.TOKEN`; empty for the entry itself. */
  key: string;
  message: string;
  remedy: string;
}

/** A file that has a server of a name. */
export interface DefinedIn {
  file: string;
  /** Whose file it is. `import`: another program's; `package`: an installed package's or plugin's; `extension`: `file` is the path of the extension. */
  by: "user" | "project" | "import" | "package" | "extension";
}

export interface ServerPreview {
  /**
   * All that would run or be sent, in one line of at most `LIMITS.consentChars`; values that may be secret are masked.
   * Absent: the entry has an error, or the line would be longer.
   */
  line?: string;
  transport?: TransportKind;
  /** The file that would be written. */
  file: string;
  /** Errors come first. With an error the server can be neither tried nor added. */
  mistakes: EntryMistake[];
  /** Where a server of that name is configured already: the one that counts. */
  exists?: DefinedIn;
  /** Its program comes from a registry of packages and has no sandbox, which this system could give it. */
  lacksRoom?: true;
}

/** How the trial of a server ended. It never rejects because of the server. */
export type TriedServer =
  | {
      outcome: "connected";
      toolCount: number;
      /** The first names of its tools, at most `LIMITS.triedToolNames`. */
      tools: string[];
      transport: TransportKind;
      /** Revision of MCP, for example `2026-07-28`; empty if it is not known. */
      protocol: string;
      tookMs: number;
    }
  /** The server answers and wants a sign-in, which is possible once it is added. */
  | { outcome: "needs-sign-in"; tookMs: number }
  | { outcome: "failed"; error: WireError; tookMs: number };

/** Everything that the system needs to start a program. */
export interface Launch {
  /** An absolute path. */
  program: string;
  args: readonly string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
}

export interface AddedServer {
  file: string;
  /** Why the server does not run although it is written, for example because a later file replaces it. */
  but?: string;
}

export interface RemovedServer {
  file: string;
  /** Other files of ours, from which what they changed of the server was removed too. */
  also?: string[];
  /** The server of that name that counts now. */
  still?: DefinedIn;
  /** Number of the values, typed for it, whose files were removed too. Absent: none. */
  values?: number;
  /** Files of such values that stay, since a project's file named them. Absent: none. */
  kept?: string[];
}

/** A server in a file of another program. */
export interface FoundServer {
  name: string;
  /** As in `ServerPreview`; of a project's file nothing is masked. */
  line?: string;
  /** Why the server cannot be copied; it has no `line` or no `id` then. */
  unusable?: string;
  /** Names what was found and shown: `takeImports` copies nothing else. */
  id?: string;
  /** `new`: no server of that name is configured; `same`: that very server is; `other`: another server is. */
  standing: "new" | "same" | "other";
  /** The other program has it disabled, and so is the copy. */
  disabled?: true;
  /** As in `ServerPreview`. */
  lacksRoom?: true;
}

export interface FoundFile {
  file: string;
  /** The file belongs to the project, and others may have written it. */
  ofProject: boolean;
  /** A file of an installed plugin, which others have written too. */
  ofPackage?: true;
  servers: FoundServer[];
  /** Servers beyond the limits, which are not in the list. */
  more: number;
}

export interface FoundHost {
  /** As `imports` of mcp.json names the program. */
  host: string;
  /** For people, for example `Claude Code`. */
  title: string;
  /** Whether `imports` of a file names the program already. */
  imported: boolean;
  /** Files that exist. */
  files: FoundFile[];
}

export interface FoundImports {
  /** Programs of which at least one file exists. */
  hosts: FoundHost[];
  /** Mistakes of these files. */
  problems: ConfigProblem[];
  /** The file that `takeImports` would write. */
  file: string;
}

export type TakeImports =
  /** Names the programs in `imports` of the user's mcp.json: their files are read at each start and followed. */
  | { how: "imports"; hosts: string[] }
  /** Copies entries into the user's mcp.json, in our own keys. `ids`: of `FoundServer`. */
  | {
      how: "copy";
      ids: string[];
      replace?: boolean /** Those that lack a room get one. */;
      sandbox?: boolean;
    };

export interface TakenImports {
  file: string;
  /** Names of the programs or servers that the file has now. */
  taken: string[];
  /** What was not taken, each with the reason. */
  left: { name: string; reason: string }[];
  /** What the person must know of those that were copied, a sentence each. */
  notes?: string[];
}

/** What becomes of a tool: declared to the model, found by ToolSearch, or withheld. */
export type ToolExposure = "direct" | "search" | "hidden";

/** Which calls ask the person, as one word. */
type ApproveWord = "never" | "destructive" | "always";

/** A rule of the configuration and where it stands. */
export interface RulePlace {
  /** For example `excludeTools "delete_*"`. */
  rule: string;
  file: string;
  /** From 1. Absent: the file is of another program or of an extension. */
  line?: number;
}

/** What decides about a tool in place of a rule: the server keeps it for its own pages, or wishes it declared. */
export const SERVERS_WORD = { pages: -2, wish: -3 } as const;

/** The tools that a server offers, hidden ones too, as columns of equal length: there may be thousands. */
export interface ToolExposures {
  /** The server's own names. */
  names: string[];
  exposures: ToolExposure[];
  /** For each tool the position in `places`; -1: no rule, so ToolSearch finds the tool; else one of `SERVERS_WORD`. */
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
  /** Paths as they are written, and whether it has a network. Absent: it has no sandbox. */
  sandbox?: { write: readonly string[]; read: readonly string[]; hide: readonly string[]; network: boolean };
  lifecycle: "lazy" | "eager" | "keep-alive";
  /** `rules`: by tool or pattern. `settings`: what the settings say. */
  approve: ApproveWord | "rules" | "settings";
  toolPrefix: "server" | "short" | "none" | "mcp";
  /** Whether `toolPrefix` is the server's own. */
  ownPrefix: boolean;
  /** What the settings say of what a server can leave to them. */
  presets: { approve: ApproveWord | "rules"; toolPrefix: ServerDetails["toolPrefix"] };
  /** As written, for example `timeout 30 s`. */
  timeouts: string[];
  /** Milliseconds since the epoch. Absent: not connected. */
  connectedAt?: number;
  /** Whether sessions share it. Absent: they cannot, because it is remote or a project's. */
  shared?: boolean;
  /** Resident bytes of the process that sessions share. Absent: none runs, or the system does not tell. */
  memory?: number;
  tools: ToolExposures;
}

/** What the person has decided about a server of a project, or about a skill for good. */
export interface ProjectDecision {
  /** Names it for `takeBack`. */
  id: string;
  server: string;
  /** The project's file; of a skill its address. */
  file: string;
  /** Name of the skill that is always loaded. */
  skill?: string;
  decision: "allowed" | "refused";
  /** Milliseconds since the epoch. */
  decidedAt: number;
  /** It was made in the folder in which Pi runs, or counts in every one. */
  here: boolean;
}

/** The keys of a server that the panel changes, with their values. Undefined: the key goes, and the settings decide. */
export type ServerKey =
  | { key: "lifecycle"; value: ServerDetails["lifecycle"] }
  | { key: "approve"; value: ApproveWord | undefined }
  | { key: "toolPrefix"; value: ServerDetails["toolPrefix"] | undefined }
  | { key: "shared"; value: boolean };

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
  /** The url leads to something that is not an MCP server. */
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
  /** Servers that sessions share, or that they could share. */
  | "sharing"
  /** What servers inherit of the person's environment. */
  | "environment"
  /** The room in which a local server runs. */
  | "sandbox"
  /** Where the tokens of sign-ins are kept. */
  | "sign-ins"
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

interface DoctorFacts {
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
  /** Of a server that refuses what it was sent: the `reason` of its error. */
  reason?: string;
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

/** A stored sign-in, without anything secret. `id`: of this sign-in. `host`: of the server's url; empty if it has none. */
export interface SignInPlace {
  id: string;
  server: string;
  host: string;
  /** `system`: in the system's credential store. */
  place: "file" | "system";
}

/** `there`: it was there before. `keeps`: the system's store did not remove its copy yet. */
export type SignInMoved = { how: "none" } | { how: "there" } | { how: "moved"; keeps: boolean };

/** The hub of shared servers. Process ids, and milliseconds since the epoch. */
export interface HubReport {
  pid: number;
  since: number;
  servers: SharedServer[];
}

/** A process that the hub runs, as it is shown to a person. */
export interface SharedServer {
  labels: string[];
  pid: number;
  /** Milliseconds since the epoch. */
  since: number;
  /** Process ids of the sessions that use it. */
  sessions: number[];
  /** Resident bytes of its process group; undefined where the system does not tell. */
  memory: number | undefined;
  /** Why it is apart from others of the same program: `cwd`, `AWS_PROFILE`, ... Names, never values. */
  differs: string[];
  isRetired: boolean;
}
