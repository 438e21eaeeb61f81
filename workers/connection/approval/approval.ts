/**
 * The yes that a call may need. Owns: which calls of a session wait for the user, the questions to main, and the tools
 * that may run until the session ends. Must not: call a tool, or write a file; session/approvals.ts writes the rule of an
 * "always". What the words and rules of `approve` mean: config/entry/exposure.ts. A call that needs no yes costs two
 * comparisons.
 */
import type { ApprovalAnswer } from "../../../src/shared/protocol/approval.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { withoutHalfAtEnd } from "../../../src/shared/text/unprintable.ts";
import { sameJson } from "../../shared/json.ts";
import type { CachedTool } from "../../shared/listed.ts";
import type { Log } from "../../shared/log.ts";
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
  emit: (event: WorkerEvent) => void;
  log: Log;
}

interface Waiting extends ToolOfServer {
  canAlways: boolean;
  settle: (allowed: boolean) => void;
}

/** Another description, other hints or another program need another yes. */
const sameTool = (a: ToolOfServer, b: ToolOfServer): boolean =>
  a.definition.name === b.definition.name &&
  sameJson(a.definition.target, b.definition.target) &&
  (a.tool === b.tool || sameJson(a.tool, b.tool));

const keyOf = ({ definition, tool }: ToolOfServer): string => JSON.stringify([definition.name, tool.name]);

export class Approvals {
  readonly #options: ApprovalOptions;
  readonly #waiting = new Map<string, Waiting>();
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
    const granted = this.#granted.get(keyOf(call));
    if (granted && sameTool(granted, call)) return undefined;
    if (!this.#options.canAsk) {
      const why = `"${SETTING}" wants the user's yes, and nobody can be asked in this mode of Pi`;
      throw notApproved(call, why, usersRemedy(call));
    }
    if (call.signal.aborted) throw cancelled(call);
    if (this.#waiting.size >= LIMITS.approvalsOpen) {
      const why = `${LIMITS.approvalsOpen} other calls wait for the user's yes`;
      throw notApproved(call, why, "Call it again when they have been answered.");
    }
    return this.#ask(call);
  }

  /** Takes the user's answer. Answers what it was about; undefined if nobody waits for it any more. */
  answer(id: string, answer: ApprovalAnswer): (ToolOfServer & { canAlways: boolean }) | undefined {
    const asked = this.#waiting.get(id);
    if (!asked) return undefined;
    const { definition, tool, canAlways } = asked;
    this.#options.log.info(`the user's answer to ${definition.name}/${tool.name}: ${answer}`);
    const lasts = answer === "session" || answer === "always";
    if (lasts) this.#granted.set(keyOf(asked), { definition, tool });
    asked.settle(lasts || answer === "once");
    if (lasts) this.#settleSame(asked);
    return { definition, tool, canAlways };
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

  #ask(call: AskedCall): Promise<Yes> {
    const { emit, settings } = this.#options;
    const { definition, tool, args, signal } = call;
    const canAlways = canBeAllowed(this.#judged(call), definition, settings().approve);
    // An id of another worker, which has crashed, must fit no question of this one.
    const id = crypto.randomUUID();
    const { promise, resolve, reject } = Promise.withResolvers<Yes>();
    const leave = (): void => {
      this.#waiting.delete(id);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      leave();
      emit({ type: "approval", id });
      reject(cancelled(call));
    };
    const settle = (allowed: boolean): void => {
      leave();
      if (allowed) resolve({ check: (now) => this.#check(call, now) });
      else
        reject(notApproved(call, "the user said no", "Do not call it again unless the user asks for that."));
    };
    const question = {
      server: shownName(definition.name),
      tool: shownName(tool.name),
      args: shownArguments(args),
      canAlways,
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(id, { definition, tool, canAlways, settle });
    emit({ type: "approval", id, question });
    return promise;
  }

  #check(before: ToolOfServer, now: ToolOfServer): void {
    if (this.#verdictOn(now) === "deny") throw denied(now);
    const isReplaced = this.#options.definitionOf(now.definition.name) !== now.definition;
    if (!isReplaced && sameTool(before, now)) return;
    const why = "the server or the configuration changed while the user was asked";
    throw notApproved(now, why, "Call it again; the user is then asked about it as it is now.");
  }

  /** Lets the other calls go on that wait for the same yes, and takes their questions away. */
  #settleSame(granted: ToolOfServer): void {
    for (const [id, other] of [...this.#waiting]) {
      if (!sameTool(granted, other)) continue;
      other.settle(true);
      this.#options.emit({ type: "approval", id });
    }
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
