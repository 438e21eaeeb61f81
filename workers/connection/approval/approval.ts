/**
 * The yes that a call may need. Owns: which calls of a session wait for the user, the questions to main, and the tools
 * that may run until the session ends. Must not: call a tool, or write a file. What the words and rules of `approve` mean: config/entry/exposure.ts. A call that needs no yes costs two
 * comparisons.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { withoutHalfAtEnd } from "../../../src/shared/text/unprintable.ts";
import { sameJson } from "../../shared/json.ts";
import type { CachedTool } from "../../shared/listed.ts";
import type { Log } from "../../shared/log.ts";
import type { AskUser } from "../asks/asks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { asksNothing, canBeAllowed, type JudgedTool, verdictOn } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import { escaped, shown } from "../config/entry/shown-text.ts";

/** What a yes is about: the tool as the server described it, on the server as it was defined. */
interface ToolOfServer {
  definition: ServerDefinition;
  tool: CachedTool;
}

/** A call before it is sent. */
export interface AskedCall extends ToolOfServer {
  args: Record<string, unknown>;
  signal: AbortSignal;
}

/** The yes for one call. */
export interface Yes {
  /** Throws `not_approved` if the call is no longer what the yes was about: time has passed since the question. */
  check(now: ToolOfServer): void;
}

export interface ApprovalOptions {
  /** Whether a person can be asked. */
  canAsk: boolean;
  /** The definition of the server of that name that holds now. A server that was replaced still finishes its calls. */
  definitionOf: (server: string) => ServerDefinition | undefined;
  /** The settings that hold now. */
  settings: () => Pick<Settings, "approve" | "toolPrefix">;
  askUser: AskUser;
  /** Writes the rule of an "always", whose call does not wait for that. */
  allowAlways: (subject: ToolOfServer) => void;
  log: Log;
}

/** Another description, other hints or another program need another yes. */
const sameTool = (a: ToolOfServer, b: ToolOfServer): boolean =>
  a.definition.name === b.definition.name &&
  sameJson(a.definition.target, b.definition.target) &&
  (a.tool === b.tool || sameJson(a.tool, b.tool));

const keyOf = ({ definition, tool }: ToolOfServer): string => JSON.stringify([definition.name, tool.name]);

export class Approvals {
  readonly #options: ApprovalOptions;
  #waiting = 0;
  /** Settles when the question before has an answer. One is asked at a time: its answer may count for the others. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The tools that may run until the session ends. Kept in memory only. */
  readonly #granted = new Map<string, ToolOfServer>();

  constructor(options: ApprovalOptions) {
    this.#options = options;
  }

  /**
   * Undefined: the call may be sent. Otherwise the call waits for the yes. Throws `not_approved`; the promise rejects with
   * `not_approved` or `cancelled`.
   */
  of(call: AskedCall): Promise<Yes> | undefined {
    const verdict = this.#verdictOn(call);
    if (verdict === "allow") return undefined;
    if (verdict === "deny") throw denied(call);
    if (this.#isGranted(call)) return undefined;
    if (!this.#options.canAsk) {
      const why = `"${SETTING}" needs the user's yes, and no one can be asked in this mode of Pi`;
      throw notApproved(call, why, usersRemedy(call));
    }
    if (call.signal.aborted) throw cancelled(call);
    if (this.#waiting >= LIMITS.approvalsOpen) {
      const why = `${LIMITS.approvalsOpen} other calls wait for the user's yes`;
      throw notApproved(call, why, "Call it again when they have been answered.");
    }
    return this.#ask(call);
  }

  #isGranted(one: ToolOfServer): boolean {
    const granted = this.#granted.get(keyOf(one));
    return granted !== undefined && sameTool(granted, one);
  }

  #judged({ definition, tool }: ToolOfServer): JudgedTool {
    return {
      server: definition.name,
      tool: tool.name,
      prefix: definition.toolPrefix ?? this.#options.settings().toolPrefix,
      annotations: tool.annotations,
    };
  }

  #verdictOn(one: ToolOfServer) {
    const { approve } = this.#options.settings();
    return asksNothing(one.definition, approve)
      ? "allow"
      : verdictOn(this.#judged(one), one.definition, approve);
  }

  async #ask(call: AskedCall): Promise<Yes> {
    const decided = this.#waiting++ === 0 ? this.#decide(call) : this.#turn.then(() => this.#decide(call));
    this.#turn = decided.catch(() => undefined);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(cancelled(call));
    call.signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([decided, aborted]);
    } finally {
      this.#waiting--;
      call.signal.removeEventListener("abort", onAbort);
    }
  }

  async #decide(call: AskedCall): Promise<Yes> {
    const { askUser, allowAlways, settings, log } = this.#options;
    const { definition, tool, args, signal } = call;
    const subject: ToolOfServer = { definition, tool };
    const yes: Yes = { check: (now) => this.#check(subject, now) };
    if (signal.aborted) throw cancelled(call);
    // By the answer to a question before this one.
    if (this.#isGranted(call)) return yes;
    const canAlways = canBeAllowed(this.#judged(call), definition, settings().approve);
    const [server, name] = [shownName(definition.name), shownName(tool.name)];
    const question = { about: "call", server, tool: name, args: shownArguments(args), canAlways } as const;
    const answered = await askUser(question, signal);
    if (signal.aborted) throw cancelled(call);
    const answer = answered ?? "no";
    log.info(`the user's answer to ${definition.name}/${tool.name}: ${answer}`);
    const lasts = answer === "session" || answer === "always";
    if (!lasts && answer !== "once") {
      throw notApproved(call, "the user said no", "Do not call it again unless the user asks for that.");
    }
    if (lasts) this.#granted.set(keyOf(call), subject);
    if (answer === "always" && canAlways) allowAlways(subject);
    return yes;
  }

  #check(before: ToolOfServer, now: ToolOfServer): void {
    if (this.#verdictOn(now) === "deny") throw denied(now);
    const isReplaced = this.#options.definitionOf(now.definition.name) !== now.definition;
    if (!isReplaced && sameTool(before, now)) return;
    const why = "the server or the configuration changed while the user was asked";
    throw notApproved(now, why, "Call it again; the user is then asked about it as it is now.");
  }
}

const SETTING = "approve";

/** `why`: without its full stop. */
const notApproved = (
  { definition: { name }, tool }: ToolOfServer,
  why: string,
  remedy: string,
): ThreadsError =>
  new ThreadsError("not_approved", `${name}/${tool.name} was not called: ${why}.`, {
    remedy,
    data: { server: name },
  });

/** Names the words and rules that decided. */
const usersRemedy = ({ definition: { name, file, overrides } }: ToolOfServer): string =>
  `Only the user can change that: ${SETTING} of ${name} in ${[file, ...overrides].join(" or ")}, or ${SETTING} of the settings.`;

const denied = (one: ToolOfServer): ThreadsError =>
  notApproved(one, `a rule of "${SETTING}" denies it`, usersRemedy(one));

const cancelled = ({ definition: { name }, tool }: ToolOfServer): ThreadsError =>
  new ThreadsError("cancelled", `${name}/${tool.name} was cancelled.`, { data: { server: name } });

const NAME_CHARS = 200;
/** An argument gets no less than this, also beside many others. */
const FEWEST_CHARS = 200;
/** The usual name of an argument, and what says that its value is cut. */
const BESIDE_CHARS = 250;
const LAST_LINE_CHARS = 100;

const count = (chars: number): string => chars.toLocaleString("en");

/** A name of a server, a tool or an argument. */
export const shownName = (name: string): string =>
  name.length <= NAME_CHARS ? shown(name) : `${shown(start(name, NAME_CHARS))}…`;

const start = (text: string, chars: number): string => withoutHalfAtEnd(text.slice(0, chars));

/** JSON in at most so many characters, and how long it is if that is not all of it. */
function shownValue(value: unknown, chars: number): string {
  const json = JSON.stringify(value) ?? "nothing";
  const text = escaped(start(json, chars));
  if (json.length <= chars && text.length <= chars) return text;
  return `${start(text, chars)}… (cut, ${count(json.length)} characters in all)`;
}

/**
 * The arguments of a call as the question shows them: one on each line, in which nothing can pass for another line or for
 * other letters. A long argument is cut, so that it cannot push another one out of the question. At most
 * `LIMITS.approvalChars` characters, the line that counts what is left out included.
 */
export function shownArguments(args: Record<string, unknown>): string {
  const entries = Object.entries(args);
  const room = LIMITS.approvalChars - LAST_LINE_CHARS;
  const each = Math.max(FEWEST_CHARS, Math.floor(room / Math.max(entries.length, 1)) - BESIDE_CHARS);
  const lines: string[] = [];
  let left = room;
  for (const [at, [name, value]] of entries.entries()) {
    const line = `${shownName(name)}: ${shownValue(value, each)}`;
    left -= line.length + 1;
    if (left < 0)
      return [...lines, `and ${count(entries.length - at)} more arguments, which are not shown`].join("\n");
    lines.push(line);
  }
  return lines.join("\n");
}
