/**
 * The contract of one live connection to a server: what a transport needs to open it, and what a server gets from it.
 * Types only. A transport makes a connection by `initialize` and `toConnection` (client.ts).
 */
import type { CallProgress } from "../../../src/shared/protocol/calls.ts";
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { Sharing, TransportKind } from "../../../src/shared/protocol/session.ts";
import type { CachedPrompt, CachedResources, CachedTool } from "../../shared/listed.ts";
import type { CloseTimes } from "../../shared/pace/pace.ts";
import type { Reader } from "../../shared/pace/turns.ts";
import type { ServerProcess } from "../../shared/programs/processes.ts";
import type { CachedSkill } from "../../shared/skills.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { ServerAsks } from "../asks/asks.ts";
import type { RequestAuth } from "../auth/auth.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { ResolvedHttp, Root } from "../config/values/values.ts";
import type { Redactor, Secrets } from "../secrets/redact.ts";
import type { CallToolResult, JSONRPCMessage } from "./wire/wire.ts";

/** A list is undefined if the server could not list it: then the list that was known before stays. */
export interface ListedResources {
  resources: CachedResources["resources"] | undefined;
  templates: CachedResources["templates"] | undefined;
}

/** `freshUntil`: until when the list counts by the server's own words, in milliseconds since the epoch. */
export interface ListedSkills {
  skills: CachedSkill[];
  freshUntil: number;
}

/** `version`: for example `2025-11-25`; empty if it is not known. */
export interface SpokenProtocol {
  era: "legacy" | "modern";
  version: string;
}

/** What an earlier session learned of a server of the stateless era, and what its lists said. */
export interface RememberedServer {
  protocol: StoredProtocol;
  tools: CachedTool[];
  instructions: string | undefined;
  /** Whether the first request may go out without asking the server first. */
  isTrusted: boolean;
}

export interface ConnectOptions {
  definition: ServerDefinition;
  cwd: string;
  /** Absolute path of `mcp-npx-cache.json`. */
  npxCacheFile: string;
  /** `--mcp-config`, which a sandbox hides. */
  configPath?: string | undefined;
  signal: AbortSignal;
  /** Settles when no call waits for another server. Absent: nobody else waits. */
  standAside?: () => Promise<void> | undefined;
  maxMessageBytes: number;
  /** `caFile` of the settings; empty or absent: none. */
  caFile?: string;
  /** Over HTTP: pauses before further attempts, in milliseconds. Absent: 300 and 1,000. */
  retryMs?: readonly number[];
  /**
   * Over stdio how long a server that is remembered as one of the new era has to say so, and how long one has that has refused
   * a handshake for a second one, in milliseconds. Absent: 5,000.
   */
  discoverMs?: number;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  onNote: (note: string) => void;
  /** What the start waits for, in words and each second anew: npm that fetches a package; undefined: nothing any more. */
  onWait?: ((text: string | undefined) => void) | undefined;
  /** `params` of a logging notification, as the server sent them. */
  onLogMessage: (params: unknown) => void;
  /** Takes the values of the resolved definition that no text may show. */
  onSecrets: (secrets: Secrets) => void;
  /** Takes a secret that only a request brings. */
  onSecret?: ((secret: string) => void) | undefined;
  /** Takes the secrets out of a text. Must run before the text is cut: half a secret would not be found. */
  redact: Redactor;
  /** The connection ended, by either side. */
  onClosed: () => void;
  /** Over HTTP: what the requests ask about the server's sign-in. Absent: they go out as configured. */
  auth?: ((target: ResolvedHttp) => RequestAuth | undefined) | undefined;
  /** Takes the server's questions to the user. Absent: nobody can answer, and the server is told so. */
  asks?: ServerAsks | undefined;
  /** What the server is told when it asks for folders. Absent: the server is told that it cannot ask. */
  roots?: readonly Root[] | undefined;
  /** The server no longer accepts the credentials of an open connection. */
  onAuthLost?: (error: ThreadsError) => void;
  /** The server says that its tools, resources or prompts changed, or they may have changed while it was not heard. */
  onListChanged: () => void;
  /** Absent: nothing is known, or the server is of the old era. */
  remembered?: RememberedServer | undefined;
  /** Under whom all that the server sends is read. */
  reader?: Reader | undefined;
  /** The server is one that sessions share. Absent: it runs for this session alone. */
  hub?: HubUse | undefined;
  /** Starts what answers in the place of the program. Absent: the program is started. */
  start?: (() => ServerProcess) | undefined;
  /** Takes each message in its direction. Absent: the server is not traced. */
  trace?: ((direction: "in" | "out", message: JSONRPCMessage) => void) | undefined;
}

export interface HubUse {
  agentDir: string;
  /** How long the server stays after the last session. */
  idleMs: number;
  /** A person waits for this connection. */
  isWanted: boolean;
  /** There is no hub, for this reason: the server runs for this session alone. */
  onUnusable: (why: string) => void;
  /** Another session came or left. */
  onChange: () => void;
}

export interface Connection {
  transport: TransportKind;
  pid: number | undefined;
  /** Undefined: the server runs for this session alone. */
  sharing?: () => Sharing | undefined;
  readonly protocol: SpokenProtocol;
  readonly instructions: string | undefined;
  /** What a later session may remember. Undefined: a server of the old era, which is asked anew each time. */
  memory(): StoredProtocol | undefined;
  /** Whether the server has not answered yet: what is known of it was remembered. */
  isFromMemory(): boolean;
  /** Whether the list of tools is older than the server said that it counts. */
  isStale(): boolean;
  /** Rejects with `ThreadsError`. */
  listTools(signal: AbortSignal): Promise<CachedTool[]>;
  /** Never rejects. */
  listResources(signal: AbortSignal): Promise<ListedResources>;
  /** Whether the server serves skills (SEP-2640, "Capability Negotiation"); `directories`: also lists of its folders. */
  readonly skills: { directories: boolean } | undefined;
  /** Never rejects; answers undefined if they could not be listed, or the server serves none. */
  listSkills(signal: AbortSignal): Promise<ListedSkills | undefined>;
  /** As lists.ts: the newest entry of one skill. */
  getSkill(uri: string, signal: AbortSignal): Promise<CachedSkill | "none" | undefined>;
  /** As lists.ts: addresses in a folder. */
  readDirectory(uri: string, signal: AbortSignal): Promise<string[]>;
  /** Never rejects; answers undefined if they could not be listed. */
  listPrompts(signal: AbortSignal): Promise<CachedPrompt[] | undefined>;
  callTool(call: CallRequest): Promise<CallToolResult>;
  readResource(call: ReadRequest): Promise<CallToolResult>;
  /** The messages as the contents of one result. Rejects with `ThreadsError`. */
  getPrompt(request: PromptRequest): Promise<CallToolResult>;
  /** Rejects with what the server answers, or after `LIMITS.completionMs`. */
  complete(request: CompleteRequest): Promise<string[]>;
  /** Settles when the server answers; rejects when it does not within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** How many bytes the server has sent so far. Absent: each request has a connection of its own. */
  heard?: (() => number) | undefined;
  /** One sentence on how the connection ended. */
  whyClosed(): string;
  /** Why the transport ended the connection, if the transport did so itself. */
  failure(): ThreadsError | undefined;
  close(times: CloseTimes): Promise<void>;
}

export interface CallRequest {
  tool: string;
  args: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
  onProgress: (progress: CallProgress) => void;
}

export interface PromptRequest {
  prompt: string;
  args: Record<string, string>;
  signal: AbortSignal;
}

/** `context`: the arguments that have values already. */
export interface CompleteRequest {
  prompt: string;
  argument: string;
  value: string;
  context: Record<string, string>;
  signal: AbortSignal;
}

/** `tool`: the tool that reads the resource. */
export type ReadRequest = Omit<CallRequest, "args"> & { uri: string };

/** The parts of a connection beside the SDK's client. */
export interface ConnectionParts {
  onNote: (note: string) => void;
  definition: ServerDefinition;
  redact: Redactor;
  transport: TransportKind;
  pid: number | undefined;
  sharing?: () => Sharing | undefined;
  /** As of a `Connection`. */
  heard?: () => number;
  close: (times: CloseTimes) => Promise<void>;
  /** One sentence for a call that was open when the connection ended. */
  whyClosed: () => string;
  /** Why the transport ended the connection, if the transport did so itself. */
  failure?: () => ThreadsError | undefined;
  asks?: ServerAsks | undefined;
}
