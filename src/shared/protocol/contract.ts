/**
 * What main and the connection worker say to each other, in one order over one port: main's requests, the worker's events,
 * and the questions that the worker asks the person. Requests and questions are calls over comlink; an event that is sent
 * before an answer arrives before it. Each request takes one object and answers a `Reply`; main aborts a request by its
 * `requestId`. To add a request: a line here, its handler in workers/connection/session/requests.ts, and its name in
 * `CONNECTING` of src/runtime/runtime.ts if it may connect a server. Types only.
 *
 * Each request fails with `cancelled`, `deadline`, `runtime_restarted`, `runtime_stopped` or `internal` (errors.ts), those of
 * a session with what kept the session from starting, and with the codes that its comment names. NAME there stands for
 * `unknown_server`, `server_removed` and `server_not_trusted`; CONNECT for NAME, `server_disabled`, `spawn_failed`,
 * `connect_failed`, `connect_timeout`, `needs_auth` and `server_died`.
 */
import type {
  ApprovalAnswer,
  ApprovalQuestion,
  ApprovalVerdict,
  Ask,
  AskAnswer,
  CallProgress,
  CallToolParams,
  CompletePromptParams,
  DeclaredTool,
  GetPromptParams,
  Matches,
  PatternTask,
  PromptAnswer,
  ProviderAnswer,
  ReadResourceParams,
  ServerPrompt,
  ServerResources,
  ServerSkills,
  SkillQuestion,
  StatsReport,
  SuggestedResource,
  ToolForm,
} from "./calls.ts";
import type { Reply, WireError } from "./errors.ts";
import type * as person from "./person.ts";
import type {
  AcceptedBefore,
  CatalogSettings,
  RegisteredServer,
  RemovedTools,
  ServerStatus,
  SessionFacts,
  SignInAgreed,
  SignInResult,
  SignInStep,
  StatusReport,
} from "./session.ts";

type Nothing = Record<string, never>;
type Written = { file: string };

/** Method -> what it takes and what it answers. */
export interface ConnectionMethods extends PanelRequests, SetupRequests {
  // Asked by the session: its start, its first request to the model, and what happens around it.

  /** Loads the configuration and starts what it names. Answers when the plan is made, not when servers are up. */
  startSession: { params: SessionFacts; value: undefined };
  /**
   * Answers when each server, or each named one, has told its tools or failed to connect; at the latest after
   * `timeoutMs`, with the names of those that have not. The events of the snapshot with these tools come before.
   */
  settleTools: { params: { timeoutMs: number; servers?: string[] }; value: string[] };
  /** Tells of the session's first request to the model. In between, the first plan starts no server, unless main asks. */
  firstRequest: { params: { state: "prepared" | "sent" }; value: undefined };
  /** Tells that other extensions registered or withdrew servers. */
  setRegistered: { params: { servers: RegisteredServer[] }; value: undefined };
  /** Tells that a turn of the model ended, a good moment to reconnect dropped eager servers. */
  turnEnded: { params: Nothing; value: undefined };

  // Asked for the model: calls, and why a call or a search found nothing.

  /**
   * Connects if needed. Answers a msgpackr-encoded `CallResult`. Throws CONNECT, `unknown_tool`, `tool_excluded`,
   * `tool_app_only`, `not_approved`, `skill_refused`, `call_timeout`, `call_rejected`, `message_too_large`.
   */
  callTool: { params: CallToolParams; value: Uint8Array<ArrayBuffer> };
  /** Answers why a tool of that name is unavailable, if the configuration is the reason. */
  explainMissing: { params: { name: string }; value: WireError | undefined };
  /**
   * Answers the positions of the tools of which a text matches a regular expression, ignoring case, or what is wrong
   * with the pattern.
   */
  matchTools: { params: PatternTask; value: Matches };

  // Asked by the person, in a dialog or by `/mcp`.

  status: { params: Nothing; value: StatusReport };
  /** Answers the captured statistics of calls. */
  stats: { params: Nothing; value: StatsReport };
  /**
   * Answers the input schema of a tool as its server listed it, as indented JSON; undefined if it listed none that could
   * be kept. `tool`: the server's name of it. Throws NAME.
   */
  declaredSchema: { params: { server: string; tool: string }; value: string | undefined };
  /** Answers what the server itself lists of a tool; undefined if it lists none of that name. Throws NAME. */
  declaredTool: { params: { server: string; tool: string }; value: DeclaredTool | undefined };
  /** Answers what a person fills in to try a tool. `tool`: the server's name of it. Throws NAME, `unknown_tool`. */
  toolForm: { params: { server: string; tool: string }; value: ToolForm };
  /**
   * Connects one server, or all that should be connected. Answers when each has connected or failed, which its status
   * says, behind the events with their tools. Throws NAME, and `server_disabled` for the named one.
   */
  reconnect: { params: { server: string | undefined }; value: undefined };
  /** Takes the answer to a `ConsentQuestion` and remembers it; throws `bad_config` if the answer holds only now. */
  answerConsent: { params: { hash: string; allow: boolean }; value: undefined };
  /** Asks again about the project's servers that were refused. */
  askAgain: { params: Nothing; value: undefined };
  /** Answers what was decided about servers of projects, the newest first; at most 500. */
  decisions: { params: Nothing; value: person.ProjectDecision[] };
  /**
   * Takes a decision back: nobody has answered then, so a server that it allowed here stops, and the question is open again.
   * Throws `bad_config` if that cannot be remembered.
   */
  takeBack: { params: { id: string }; value: undefined };
  /** Switches the statistics of calls on, in the user's own file. Throws `bad_config`. */
  captureStats: { params: Nothing; value: Written };
  /** Applies the edit that a `held` event named, or leaves it until the next one. */
  applyHeld: { params: { id: string; apply: boolean }; value: undefined };
  /**
   * Switches a server on or off in the file that defines it, keeping the file's comments. Answers the file, and in
   * `but` why a server that is now on still does not run. `session`: for this session only, and no file is written.
   * Throws NAME, `bad_config`.
   */
  setEnabled: {
    params: { server: string; enabled: boolean; project: boolean; session?: true };
    value: person.AddedServer;
  };
  /**
   * Answers the configuration file that `/mcp edit` opens, with its text; the text is empty if there is no file. Throws
   * `bad_config` if the file cannot be read, or the project is not trusted.
   */
  readConfig: { params: { project: boolean }; value: { file: string; text: string } };
  /**
   * Writes that file. The new text is applied like any edit. A text of which nothing could be used is not written: `problem`
   * says why. Nor is it written if the file is no longer `before`: `now` is its text. Throws `bad_config` if it cannot be written.
   */
  writeConfig: {
    params: { project: boolean; before: string; text: string };
    value: Written & { problem?: string; now?: string };
  };
  /**
   * Begins the sign-in to a server, or answers the one that is under way. Answers within seconds. Throws CONNECT, and
   * `bad_config` if the server takes no sign-in.
   */
  signIn: { params: { server: string; agreed?: SignInAgreed }; value: SignInStep };
  /** Takes what the user pasted: an address or a code. Answers what is wrong with it, and then waits on. */
  pasteSignIn: { params: { id: string; text: string }; value: { problem?: string } };
  cancelSignIn: { params: { id: string }; value: undefined };
  /** Revokes the tokens where that is possible, and forgets them. Answers one sentence for the user. Throws as `signIn`. */
  signOut: { params: { server: string }; value: { text: string } };
  /** Answers where each stored sign-in is, also of servers that no file names; and where new ones go. Connects none. */
  signIns: { params: Nothing; value: { signIns: person.SignInPlace[]; tokenStore: "file" | "system" } };
  /** Moves one of them. Throws `bad_config` and `connect_failed`; then it is where it was. */
  moveSignIn: { params: { id: string; to: "file" | "system" }; value: person.SignInMoved };
  /**
   * Looks for what is wrong. With `server`, connects that server as a call would, and tells how long each step took;
   * without, starts and asks no server, and only looks up and opens connections to the addresses of the user's own files.
   * Answers within 15 s. Throws `unknown_server`.
   */
  diagnose: { params: { server?: string }; value: person.DoctorReport };

  /**
   * Answers what the hub of shared servers runs, for all sessions; undefined if no hub runs. With `stop`, ends the named
   * server for all of them, or all and the hub, and answers how many it ended. Throws `bad_config` if the hub cannot be used,
   * `unknown_server` if it runs none of that name.
   */
  hub: { params: { stop?: { server?: string } }; value: { report?: person.HubReport; stopped?: number } };

  // Asked for the person who types a prompt's command, or hands a resource to the model.

  /**
   * Connects if needed. Answers a msgpackr-encoded `CallResult`: the prompt's messages as one user message. Throws CONNECT,
   * `call_timeout`, `call_rejected`, `message_too_large`.
   */
  getPrompt: { params: GetPromptParams; value: Uint8Array<ArrayBuffer> };
  /** Answers values that the server suggests for an argument; none if the server is not connected. */
  completePrompt: { params: CompletePromptParams; value: string[] };
  /** Answers the known resources of one server, or of all. Connects to none. */
  listResources: { params: { server: string | undefined }; value: ServerResources[] };
  /** Answers the known skills of one server, or of all. Connects to none. */
  listSkills: { params: { server: string | undefined }; value: ServerSkills[] };
  /** As `getPrompt`: the resource as part of a user message. */
  readResource: { params: ReadResourceParams; value: Uint8Array<ArrayBuffer> };
  /** Answers known resources that fit a mention without its `@`, the best first. */
  suggestResources: { params: { typed: string }; value: SuggestedResource[] };

  // Asked by main's runtime, for the worker itself.

  /** Answers if the worker's event loop turns. */
  ping: { params: Nothing; value: undefined };
  /** Writes one line of main's into the log file. */
  log: { params: { level: LogLevel; message: string }; value: undefined };
  /** Closes every server and flushes the log. */
  shutdown: { params: Nothing; value: undefined };
}

/** Asked by the panel of `/mcp`. All that change something throw `unknown_server`, `bad_config`. */
export interface PanelRequests {
  /** Throws NAME. */
  serverDetails: { params: { server: string }; value: person.ServerDetails };
  /**
   * Sets one key of a server in the file where that has an effect, or in the project's file. Comments stay, and the change
   * is applied at once. Fails if another file decides, and names it.
   */
  setServer: { params: { server: string; project: boolean } & person.ServerKey; value: Written };
  /** Writes where the server's key is, in the place of the one that it has, and applies it at once. */
  setKey: { params: { server: string } & person.KeySource; value: Written };
  /**
   * Decides what becomes of tools of a server; of all its tools without `tools`. Fails if a rule of another file or a
   * pattern forbids it, and names the rule with file and line. `tools`: the server's own names. `ruled`: a rule decides now
   * about one of them; without one it is the default again.
   */
  setExposure: {
    params: { server: string; tools: string[] | undefined; to: person.ToolExposure; project: boolean };
    value: Written & { ruled: boolean };
  };
  /**
   * Answers the last lines of the log, those that name the server if one is given. With `seen`, the size that an earlier answer told, it answers
   * when the log has changed, or after a while.
   */
  serverLog: { params: { server: string | undefined; seen: number | undefined }; value: person.LogLines };
}

/** Asked by the person who sets servers up. All that write keep comments and formatting, and throw `bad_config` if they cannot. */
export interface SetupRequests {
  /** Starts nothing and reads no secret. Throws `bad_config` if the project is not trusted. */
  previewServer: { params: person.ProposedServer; value: person.ServerPreview };
  /**
   * Connects to the server apart from the session's servers, lists its tools and ends it. Answers within
   * `LIMITS.tryMs`. Aborting the request ends the server first. One trial runs at a time. Throws `bad_config` if
   * the entry has an error, or another trial runs.
   */
  tryServer: { params: person.ProposedServer; value: person.TriedServer };
  /**
   * How the command of an entry with a sandbox would be started as a server, for a person who starts it by hand. Its room has been tried.
   * Throws `bad_config`, and `spawn_failed` if there can be no room.
   */
  launchByHand: { params: person.ProposedServer; value: person.Launch };
  /** Throws `bad_config` also if the entry has an error, or the name exists and `replace` is not set. */
  addServer: { params: person.ProposedServer & { replace?: boolean }; value: person.AddedServer };
  /**
   * Takes the server out of `file`, if it is one of ours that names the server, else out of the user's own file before one
   * of the project. Throws `unknown_server`, and `bad_config` also if another program or an extension defines it.
   */
  removeServer: { params: { server: string; file?: string }; value: person.RemovedServer };
  /**
   * Keeps a value that the person has typed in a file of its own that only the user can read. Answers the file, and what an
   * entry holds in its place. Throws `bad_config`.
   */
  keepValue: {
    params: { server: string; name: string; value: string };
    value: { file: string; written: string };
  };
  /** Removes kept values again, since nothing was added that uses them. `files`: as `keepValue` answered. */
  dropValues: { params: { files: string[] }; value: undefined };
  /** Reads the files of the programs whose configuration is known. */
  findImports: { params: Nothing; value: person.FoundImports };
  takeImports: { params: person.TakeImports; value: person.TakenImports };
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export type ConnectionMethod = keyof ConnectionMethods;

/** What the worker exposes. `cancel` is one-way in meaning: it never fails and answers nothing of interest. */
export interface ConnectionApi {
  request(requestId: number, method: ConnectionMethod, params: unknown): Promise<Reply<unknown>>;
  cancel(requestId: number): void;
}

/** One-way messages. */
export type WorkerEvent =
  /** Sent when a server's process has started, before its first byte. Main kills it if the worker dies. */
  | { type: "spawned"; pid: number; server: string }
  /** Sent when that process has ended. */
  | { type: "exited"; pid: number; server: string }
  /** Sent once per server, before the shared record (port.ts) names the server by this slot. */
  | { type: "talker"; slot: number; server: string }
  /** Sent when the configured servers are known: at the start, before anything connects, and after each change. */
  | ({ type: "planned"; settings: CatalogSettings; accepted: AcceptedBefore | undefined } & StatusReport)
  /**
   * Sent when the new servers have settled: what a change of the configuration did, in one line. Also sent as a warning
   * of a fault that the user can mend, and as an error if an answer of the user could not be carried out.
   */
  | { type: "notice"; text: string; level: "info" | "warning" | "error" }
  /**
   * Sent when an edit waits for the user's word (`hotReload: "ask"`), and without `id` and `text` when that edit was undone. `id`
   * names all that it would do, also after a crash.
   */
  | { type: "held"; id: string; text: string }
  /** Sent at each change of a server's status. */
  | { type: "server"; status: ServerStatus }
  /** Sent each second while the trial of a server waits, for npm, and once when it does no longer (without `waits`). */
  | { type: "trying"; server: string; waits?: string }
  /** Sent when a sign-in has ended, after the server has connected with it, and behind the answer that names the `id`. */
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

/**
 * `server`: a server asks something (MCP: elicitation), one question at a time. `prompt`: a server asks Pi's model (MCP:
 * sampling), in the same queue. `call`: a call needs the person's yes. `skill`: the model wants to load a skill. `callId`: of the
 * call that waits for the yes.
 */
export type PersonsQuestion =
  | { about: "server"; server: string; ask: Ask }
  | { about: "prompt"; server: string; prompt: ServerPrompt }
  | ({ about: "call"; callId: string } & ApprovalQuestion)
  | ({ about: "skill"; callId: string } & SkillQuestion);

/** `provider`: a request needs the token of a provider of Pi, which Pi gives without the person. */
export type Question = PersonsQuestion | { about: "provider"; provider: string };

export type AnswerTo<Q extends Question> = {
  server: AskAnswer;
  prompt: PromptAnswer;
  call: ApprovalVerdict;
  skill: ApprovalAnswer;
  provider: ProviderAnswer;
}[Q["about"]];

/** What main exposes. `ask` answers undefined if nobody answers. `withdraw`: nobody waits for the answer to that question any more. */
export interface MainApi {
  ask(id: number, question: Question): Promise<unknown>;
  withdraw(id: number): void;
  /** Answers the folder in which the workers' files of this version are now, since an update may delete or replace them. */
  workerFolder(): Promise<string>;
}
