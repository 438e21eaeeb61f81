/**
 * Calls of tools, prompts and resources between main and the connection worker: what a call carries, its result and its
 * encoding, and what the person is asked meanwhile, by the server (MCP: elicitation) or about the call. The worker has read,
 * bounded and cleaned all texts.
 */

import { Packr, Unpackr } from "msgpackr";
import type { JsonValue } from "./errors.ts";

/** Parameters of `callTool`. */
export interface CallToolParams {
  callId: string;
  server: string;
  /** The tool's name as the server gave it. */
  tool: string;
  args: Record<string, unknown>;
  /** True for a call from a codemode script, which reads the server's own result. */
  wantsStructured?: boolean;
  /**
   * True for a person's own call, who needs no question whether a skill may be loaded. With `wantsStructured`, `content` holds the
   * whole file of a skill and no word of ours.
   */
  byPerson?: boolean;
}

/** A skill of a server of which a result holds a file. */
export interface LoadedSkill {
  server: string;
  /** Of its SKILL.md. */
  uri: string;
  name: string;
  /** A hash of all its files. Empty: nobody can say what it holds. */
  content: string;
}

/** Another content is another skill. */
export const skillKeyOf = ({ server, uri, content }: LoadedSkill): string =>
  JSON.stringify([server, uri, content]);

/** What the model reads of a result, already bounded, as Pi's own content blocks. */
export type ResultContent =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string };

/** The result of `callTool`. It crosses the threads as msgpackr bytes. */
export interface CallResult {
  content: ResultContent[];
  isError: boolean;
  /** Milliseconds from the request to the server until the server's answer. */
  durationMs: number;
  /**
   * Bytes of text and base64: `received` from the server, `shown` in `content`. `savedText` counts the text that TOON
   * and the output guard removed.
   */
  bytes?: { received: number; shown: number; savedText: number };
  /** File that holds the whole text, if `content` does not. */
  storedAt?: string;
  /** The result holds a file of this skill. */
  skill?: LoadedSkill;
  /** What the server meant for the person and not for the model, bounded. */
  forUser?: string;
  /** UTF-8 JSON of the whole `CallToolResult` as the server sent it, without `_meta`; only if `wantsStructured`. */
  scriptResult?: Uint8Array;
  /** In place of `scriptResult`: why the result is too large for a script, and where the result is stored. */
  scriptProblem?: string;
  /** With `scriptProblem`: the file with that JSON, if it could be stored. */
  scriptStoredAt?: string;
}

/** How far a call is, as the server counts. */
export interface CallProgress {
  message: string;
  progress?: number;
  total?: number;
}

export interface ToolStats {
  server: string;
  tool: string;
  calls: number;
  errors: number;
  receivedBytes: number;
  shownBytes: number;
  meanMs: number;
}

export interface StatsSummary {
  /** The tool that received most comes first; bounded. */
  tools: ToolStats[];
  /** Number of tools that `tools` leaves out. */
  moreTools: number;
  /** Sum over all tools. */
  tokensSaved: number;
}

/** `captured: false`: the settings do not ask for statistics. */
export type StatsReport = { captured: false } | { captured: true; summary: StatsSummary };

/** Parameters of `getPrompt`. Its answer is a msgpackr-encoded `CallResult`. */
export interface GetPromptParams {
  server: string;
  /** The prompt's name as the server gave it. */
  prompt: string;
  args: Record<string, string>;
  /** True for a program that reads what the server sent, as `CallToolParams.wantsStructured`. */
  wantsStructured?: boolean;
}

/** Parameters of `completePrompt`. */
export interface CompletePromptParams {
  server: string;
  prompt: string;
  argument: string;
  /** What is typed so far. */
  value: string;
  /** The arguments that are typed already. */
  context: Record<string, string>;
}

/** Parameters of `readResource`. Its answer is a msgpackr-encoded `CallResult`. */
export interface ReadResourceParams {
  server: string;
  uri: string;
  /** True for a program that reads what the server sent, as `CallToolParams.wantsStructured`. */
  wantsStructured?: boolean;
}

/** A resource, or a template of resources, as a list shows it. Every text is one cleaned line. */
export interface ShownResource {
  /** The URI as the server gave it, or the template. */
  uri: string;
  title: string;
}

/** The resources of one server; `resources` is undefined until they are known. */
export interface ServerResources {
  server: string;
  resources: ShownResource[] | undefined;
  templates: ShownResource[];
}

/** A skill as a list shows it. Every text is one cleaned line. */
export interface ShownSkill {
  /** Of its SKILL.md, as the server gave it. */
  uri: string;
  name: string;
  description: string;
  /** For example `3 files, 1.2 KB`. */
  size: string;
  /** The server's tool that loads it. Absent: it cannot be loaded. */
  tool?: string;
  /** Why it cannot be loaded. */
  problem?: string;
}

/** The skills of one server; undefined if it serves none, or they are not known yet. `policy`: the key `skills`. */
export interface ServerSkills {
  server: string;
  policy: false | "ask" | "allow";
  skills: ShownSkill[] | undefined;
}

/** What can take the place of a mention that is being typed: `mention` is `<server>:<uri>`. */
export interface SuggestedResource {
  mention: string;
  title: string;
}

export interface Choice {
  title: string;
}

/** `json`: of a tool's argument that no other kind of field fits. */
export type TextFormat = "email" | "uri" | "date" | "date-time" | "json";

/** What one field takes. `default`: the value that holds until the user gives another one. */
export type FieldKind =
  | { kind: "text"; format?: TextFormat; minLength?: number; maxLength?: number; default?: string }
  | { kind: "number"; integer: boolean; minimum?: number; maximum?: number; default?: number }
  | { kind: "boolean"; default?: boolean }
  /** `default`: a position in `choices`. */
  | { kind: "choice"; choices: Choice[]; default?: number }
  | { kind: "choices"; choices: Choice[]; minItems?: number; maxItems?: number; default?: number[] };

export type Field = FieldKind & { title: string; description?: string; required: boolean };

/**
 * The value of a field: the typed text (also of a number), a boolean, the position of a choice, or the positions of
 * several. Undefined: the field is left out.
 */
export type FieldValue = string | boolean | number | number[] | undefined;

/** What a server lists of a tool, without the repairs that hosts need. Any value within the limits of a schema. */
export interface DeclaredTool {
  title?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
}

/** One argument of a tool that a person tries. */
export interface ToolField {
  /** The name of the argument. */
  name: string;
  field: Field;
  /** The server's values of the choices, by position. */
  values: JsonValue[];
}

/** What a person fills in to try a tool. `left`: arguments that no field stands for. */
export interface ToolForm {
  fields: ToolField[];
  left: number;
}

/**
 * What the server itself calls a field and its choices, as it wrote them, for a program that shows the form. `enumNames`: the
 * choices have titles of an older form.
 */
export interface FieldKey {
  name: string;
  values: readonly string[];
  enumNames?: true;
}

/** `keys`: by the position of the fields. No person is shown one. */
export type AskForm = { kind: "form"; message: string; fields: Field[]; keys?: FieldKey[] };

/** `host`: as it is looked up, so a name with foreign letters is in Punycode. */
export type AskUrl = {
  kind: "url";
  message: string;
  url: string;
  host: string;
  /** The host's name is written in Punycode: its real letters may look like those of another name. */
  punycode: boolean;
  /** The address is not encrypted. */
  plain: boolean;
  /** The user has agreed to this page before, and the server still waits for it. */
  again?: true;
};

export type Ask = AskForm | AskUrl;

/** The user's answer. `values`: by the position of the fields. `open`: a browser is to open the address. */
/** `unseen`: nobody could be shown the question, so that it is no no of a person. */
export type AskAnswer =
  | { action: "decline" | "cancel"; unseen?: true }
  | { action: "accept"; values: FieldValue[] }
  | { action: "accept"; open: boolean };

/** A prompt for Pi's model (MCP: sampling). The model reads these texts alone, as the person is shown them. */
export interface ServerPrompt {
  system?: string;
  messages: { role: "user" | "assistant"; text: string }[];
  maxTokens: number;
  temperature?: number;
}

/** What an answer of the model has cost, also one that the server does not get. */
interface ModelUse {
  model: string;
  tokens: { read: number; written: number };
}

/** `cancel`: nobody decided. `failed`: the person agreed, and the model gave no answer. */
export type PromptAnswer =
  | { action: "decline" | "cancel" | "failed"; use?: ModelUse }
  | { action: "accept"; text: string; isCut: boolean; use: ModelUse };

const OPTIONS = { useRecords: false, mapsAsObjects: true, moreTypes: false };

// Two objects, so that a bundle can leave one out: main only decodes, and the encoder is a quarter of its bundle.
const packr = /* @__PURE__ */ new Packr(OPTIONS);
const unpackr = /* @__PURE__ */ new Unpackr(OPTIONS);

/** Encodes into a new buffer, so that the buffer can be transferred. */
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  // `pack` returns a view into a pooled buffer; transferring that would take the pool along.
  return new Uint8Array(packr.pack(value));
}

/**
 * Decodes bytes of `encode`. Throws on most broken bytes; other broken bytes decode to some other value, so the caller
 * checks the shape of bytes from a file.
 */
export function decode(bytes: Uint8Array): unknown {
  return unpackr.unpack(bytes);
}

export interface PatternTask {
  pattern: string;
  /** Columns of equal length, each with its texts separated by U+0000. */
  columns: string[];
}

/** Rows of which a text matches, in order; or what is wrong with the pattern, in words for the model that wrote it. */
export type Matches = { rows: number[] } | { problem: string };

/** A skill that the model wants to load. Its texts come from the server; the worker has bounded and escaped them. */
export interface SkillQuestion extends LoadedSkill {
  description: string;
  /** Its files, one on each line with its size, and how many are left out. */
  files: string;
  /** Whether the answer can be kept until the skill changes. */
  canAlways: boolean;
}

/** A call that waits. Its texts come from the model and the server; the worker has bounded and escaped them. */
export interface ApprovalQuestion {
  server: string;
  tool: string;
  /** The arguments, one on each line as `name: JSON`, at most `LIMITS.approvalChars`. Empty: there are none. */
  args: string;
  /** Whether the user's file can hold a rule that lets the tool run. */
  canAlways: boolean;
  /** The server, or a rule of the user about this argument, wants a yes for each call: no answer may last. */
  onceOnly?: true;
  /** The same for programs: the names and the arguments as they are. */
  call: Pick<CallToolParams, "server" | "tool" | "args">;
}

/**
 * `session`: calls of this tool run until the session ends, or until the server changes what it says of the tool. `server`:
 * calls of all its tools do, also of those that it offers later.
 * `always`: the same, and a rule in the user's file lets them run later, too.
 */
export type ApprovalAnswer = "once" | "session" | "server" | "always" | "no";

/** The answer of the person, or of other extensions of Pi in the person's place. `nobody`: no person can answer now. */
export type ApprovalVerdict = ApprovalAnswer | "extension-allows" | "extension-denies" | "nobody";

/**
 * Why there is no token of a provider. `unknown`: Pi has no provider of that name. `signed-out`: the user has not signed in to
 * it. `failed`: Pi could not renew it. `needs-pi`: there is no Pi to ask.
 */
export type ProviderProblem = "unknown" | "signed-out" | "failed" | "needs-pi";

/** The token of a provider as it is now: a secret, which nobody keeps. */
export type ProviderAnswer = { token: string } | { problem: ProviderProblem };
