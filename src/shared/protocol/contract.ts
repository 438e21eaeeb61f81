/**
 * What main and the connection worker say to each other, in one order over one port: main's requests, the worker's events,
 * and the questions that the worker asks the person. Requests and questions are calls over comlink; an event that is sent
 * before an answer arrives before it. Each request takes one object and answers a `Reply`; main aborts a request by its
 * `requestId`. A request fails with the errors that its comment names, else with `cancelled`, `deadline` or the end of the
 * worker (errors.ts). To add a request: a line here, its handler in workers/connection/session/requests.ts. Types only.
 */
import type { Ask, AskAnswer } from "./ask.ts";
import type {
  CallProgress,
  CallToolParams,
  CompletePromptParams,
  GetPromptParams,
  ReadResourceParams,
  ServerResources,
  StatsReport,
  SuggestedResource,
} from "./calls.ts";
import type { CatalogSettings, RemovedTools } from "./catalog.ts";
import type { DoctorRequests } from "./doctor.ts";
import type { Reply, WireError } from "./errors.ts";
import type { PanelRequests } from "./panel.ts";
import type { AcceptedBefore, RegisteredServer, SessionFacts } from "./session.ts";
import type { SetupRequests } from "./setup.ts";
import type { SignInAgreed, SignInResult, SignInStep } from "./sign-in.ts";
import type { ServerStatus, StatusReport } from "./status.ts";

/** Asked by the session: its start, its first request to the model, and what happens around it. */
interface SessionRequests {
  /** Loads the configuration and starts what it names. Answers when the plan is made, not when servers are up. */
  startSession: { params: SessionFacts; value: undefined };
  /**
   * Answers when each server, or each named one, has told its tools or failed to connect; at the latest after
   * `timeoutMs`, with the names of those that have not. The events of the snapshot with these tools come before.
   */
  settleTools: { params: { timeoutMs: number; servers?: string[] }; value: string[] };
  /**
   * Tells that the session's first request to the model is being prepared, or has left. In between, the first plan
   * starts no server, unless main asks for something.
   */
  firstRequest: { params: { state: "prepared" | "sent" }; value: undefined };
  /** Tells that other extensions registered or withdrew servers. */
  setRegistered: { params: { servers: RegisteredServer[] }; value: undefined };
  /** Tells that a turn of the model ended, a good moment to reconnect dropped eager servers. */
  turnEnded: { params: Record<string, never>; value: undefined };
}

/** Asked for the model: calls, and why a call or a search found nothing. */
interface CallRequests {
  /** Answers a msgpackr-encoded `CallResult`. */
  callTool: { params: CallToolParams; value: Uint8Array<ArrayBuffer> };
  /** Answers why a tool of that name is unavailable, if the configuration is the reason. */
  explainMissing: { params: { name: string }; value: WireError | undefined };
  /**
   * Answers the positions of the tools of which a text matches a regular expression, ignoring case, or what is wrong
   * with the pattern. `columns`: each column holds one text a tool, separated by U+0000.
   */
  matchTools: {
    params: { pattern: string; columns: string[] };
    value: { rows: number[] } | { problem: string };
  };
}

/** Asked by the person, in a dialog or by `/mcp`. */
export interface UserRequests extends DoctorRequests, PanelRequests {
  status: { params: Record<string, never>; value: StatusReport };
  /** Answers the captured statistics of calls. */
  stats: { params: Record<string, never>; value: StatsReport };
  /**
   * Answers the input schema of a tool as its server listed it, as indented JSON; undefined if it listed none that could
   * be kept. `tool`: the server's name of it.
   */
  declaredSchema: { params: { server: string; tool: string }; value: string | undefined };
  /** Connects one server, or all that should be connected. Answers when each has connected or failed, behind the events with their tools. */
  reconnect: { params: { server: string | undefined }; value: undefined };
  /** Takes the answer to a `ConsentQuestion` and remembers it. */
  answerConsent: { params: { hash: string; allow: boolean }; value: undefined };
  /** Asks again about the project's servers that were refused. */
  askAgain: { params: Record<string, never>; value: undefined };
  /** Applies the edit that a `held` event named, or leaves it until the next one. */
  applyHeld: { params: { id: string; apply: boolean }; value: undefined };
  /**
   * Switches a server on or off in the file that defines it, keeping the file's comments. Answers the file, and in
   * `but` why a server that is now on still does not run.
   */
  setEnabled: {
    params: { server: string; enabled: boolean; project: boolean };
    value: { file: string; but?: string };
  };
  /** Answers the configuration file that `/mcp edit` opens, with its text; the text is empty if there is no file. */
  readConfig: { params: { project: boolean }; value: { file: string; text: string } };
  /** Writes that file if it is unchanged since `before`. The new text is then applied like any edit. */
  writeConfig: { params: { project: boolean; before: string; text: string }; value: { file: string } };
  /** Begins the sign-in to a server, or answers the one that is under way. Answers within seconds. */
  signIn: { params: { server: string; agreed?: SignInAgreed }; value: SignInStep };
  /** Takes what the user pasted: an address or a code. Answers what is wrong with it, and then waits on. */
  pasteSignIn: { params: { id: string; text: string }; value: { problem?: string } };
  cancelSignIn: { params: { id: string }; value: undefined };
  /** Revokes the tokens where that is possible, and forgets them. Answers one sentence for the user. */
  signOut: { params: { server: string }; value: { text: string } };
}

/** Asked for the person who types a prompt's command. */
export interface PromptRequests {
  /** Connects if needed. Answers a msgpackr-encoded `CallResult`: the prompt's messages as one user message. */
  getPrompt: { params: GetPromptParams; value: Uint8Array<ArrayBuffer> };
  /** Answers values that the server suggests for an argument; none if the server is not connected. Does not fail. */
  completePrompt: { params: CompletePromptParams; value: string[] };
}

/** Asked for the person who hands a resource to the model. */
export interface ResourceRequests {
  /** Answers the known resources of one server, or of all. Connects to none. */
  listResources: { params: { server: string | undefined }; value: ServerResources[] };
  /** Connects if needed. Answers a msgpackr-encoded `CallResult`: the resource as part of a user message. */
  readResource: { params: ReadResourceParams; value: Uint8Array<ArrayBuffer> };
  /** Answers known resources that fit a mention without its `@`, the best first. Does not fail. */
  suggestResources: { params: { typed: string }; value: SuggestedResource[] };
}

/** Asked by main's runtime, for the worker itself. */
interface UpkeepRequests {
  /** Answers if the worker's event loop turns. */
  ping: { params: Record<string, never>; value: undefined };
  /** Writes one line of main's into the log file. */
  log: { params: { level: LogLevel; message: string }; value: undefined };
  /** Closes every server and flushes the log. */
  shutdown: { params: Record<string, never>; value: undefined };
}

/** Method -> what it takes and what it answers. */
export interface ConnectionMethods
  extends SessionRequests,
    CallRequests,
    UserRequests,
    SetupRequests,
    PromptRequests,
    ResourceRequests,
    UpkeepRequests {}

export type LogLevel = "debug" | "info" | "warn" | "error";

export type ConnectionMethod = keyof ConnectionMethods;

/** What the worker exposes. `cancel` is one-way in meaning: it never fails and answers nothing of interest. */
export interface ConnectionApi {
  request(requestId: number, method: ConnectionMethod, params: unknown): Promise<Reply<unknown>>;
  cancel(requestId: number): void;
}

/**
 * One-way messages. An event that is sent before an answer arrives before it.
 */
export type WorkerEvent =
  /** Sent when a server's process has started, before its first byte. Main kills it if the worker dies. */
  | { type: "spawned"; pid: number; server: string }
  /** Sent when that process has ended. */
  | { type: "exited"; pid: number; server: string }
  /** Sent once per server, before the shared record (talk.ts) names the server by this slot. */
  | { type: "talker"; slot: number; server: string }
  /** Sent when the configured servers are known: at the start, before anything connects, and after each change. */
  | ({
      type: "planned";
      settings: CatalogSettings;
      accepted: AcceptedBefore;
    } & StatusReport)
  /**
   * Sent when the new servers have settled: what a change of the configuration did, in one line. Also sent as a warning
   * of a fault that the user can mend, and as an error if an answer of the user could not be carried out.
   */
  | { type: "notice"; text: string; level: "info" | "warning" | "error" }
  /**
   * Sent when an edit waits for the user's word (`hotReload: "ask"`). `id` names all that the edit would do, and is the
   * same after a crash of the worker.
   */
  | { type: "held"; id: string; text: string }
  /** Sent at each change of a server's status. */
  | { type: "server"; status: ServerStatus }
  /** Sent each second while the trial of a server waits, for npm, and once when it does no longer (without `waits`). */
  | { type: "trying"; server: string; waits?: string }
  /** Sent when a sign-in has ended, after the server has connected with it. */
  | { type: "sign-in"; id: string; server: string; result: SignInResult }
  /** Sent when no browser could be started for the page of a server's question that the user wants to open. */
  | { type: "unopened"; server: string; url: string }
  /** Sent when the number of sign-ins that are being renewed changes. The end of the session waits for them. */
  | { type: "renewing"; open: number }
  /**
   * Sent when the catalog differs from the one main has: a whole snapshot in the file's own format. `prompts`: it has
   * prompts, and others than the last one had, so that main decodes no snapshot in vain.
   */
  | { type: "catalog"; snapshot: Uint8Array<ArrayBuffer>; prompts?: true }
  /** Sent as soon as servers or tools are gone, because the snapshot without them takes time to make. */
  | ({ type: "removed" } & RemovedTools)
  /** Sent while a call runs, at most as often as `LIMITS` allows. */
  | ({ type: "progress"; callId: string } & CallProgress);

export type Question =
  /** A server asks something (MCP: elicitation). One question of a server is open at a time. */
  | { about: "server"; server: string; ask: Ask }
  /** A call needs the person's yes. */
  | ({ about: "call" } & ApprovalQuestion);

interface Answers {
  server: AskAnswer;
  call: ApprovalAnswer;
}

export type AnswerTo<Q extends Question> = Answers[Q["about"]];

/** What main exposes. `ask` answers undefined if nobody answers. `withdraw`: nobody waits for the answer to that question any more. */
export interface MainApi {
  ask(id: number, question: Question): Promise<unknown>;
  withdraw(id: number): void;
}

/** A call that waits. Its texts come from the model and the server; the worker has bounded and escaped them. */
export interface ApprovalQuestion {
  server: string;
  tool: string;
  /** The arguments, one on each line as `name: JSON`, at most `LIMITS.approvalChars`. Empty: there are none. */
  args: string;
  /** Whether the user's file can hold a rule that lets the tool run. */
  canAlways: boolean;
}

/**
 * `session`: calls of this tool run until the session ends, or until the server changes what it says of the tool.
 * `always`: the same, and a rule in the user's file lets them run later, too.
 */
export type ApprovalAnswer = "once" | "session" | "always" | "no";
