/**
 * The yes that a call may need. Owns: which calls of a session wait for the user, the questions to main, and the tools
 * that may run until the session ends. Must not: call a tool, or write a file; session/approvals.ts writes the rule of an
 * "always". Called by: servers/call.ts, before each call and wherever it comes from. What the words and rules of
 * `approve` mean: config/entry/approve.ts. A call that needs no yes costs two comparisons.
 */
import type { ApprovalAnswer } from "../../../src/shared/protocol/approval.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { asksNothing, canBeAllowed, type JudgedTool, verdictOn } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import { shownArguments, shownName } from "./arguments.ts";
import { createGrants, type Subject, sameSubject } from "./granted.ts";
import { cancelled, changedMeanwhile, denied, nobodyToAsk, refused, tooManyQuestions } from "./refusals.ts";

/** A call before it is sent. */
export interface AskedCall extends Subject {
  args: Record<string, unknown>;
  signal: AbortSignal;
}

/** The yes for one call. */
export interface Yes {
  /** Throws `not_approved` if the call is no longer what the yes was about: time has passed since the question. */
  check(now: Subject): void;
}

export interface Approvals {
  /**
   * Undefined: the call may be sent. Otherwise the call waits for the yes. Throws `not_approved`; the promise rejects with
   * `not_approved` or `cancelled`.
   */
  of(call: AskedCall): Promise<Yes> | undefined;
  /** Takes the user's answer. Answers what it was about; undefined if nobody waits for it any more. */
  answer(id: string, answer: ApprovalAnswer): (Subject & { canAlways: boolean }) | undefined;
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

interface Waiting extends Subject {
  canAlways: boolean;
  settle: (allowed: boolean) => void;
}

const judgedOf = (
  { definition, tool }: Subject,
  { toolPrefix }: Pick<Settings, "toolPrefix">,
): JudgedTool => ({
  server: definition.name,
  tool: tool.name,
  prefix: definition.toolPrefix ?? toolPrefix,
  annotations: tool.annotations,
});

export function createApprovals(options: ApprovalOptions): Approvals {
  const { canAsk, definitionOf, settings, emit, log } = options;
  const waiting = new Map<string, Waiting>();
  const grants = createGrants();

  const verdict = (subject: Subject) =>
    asksNothing(subject.definition, settings().approve)
      ? "allow"
      : verdictOn(judgedOf(subject, settings()), subject.definition, settings().approve);

  const yesTo = (before: Subject): Yes => ({
    check: (now) => {
      if (verdict(now) === "deny") throw denied(now.definition, now.tool.name);
      const isReplaced = definitionOf(now.definition.name) !== now.definition;
      if (isReplaced || !sameSubject(before, now)) throw changedMeanwhile(now.definition, now.tool.name);
    },
  });

  const ask = (call: AskedCall): Promise<Yes> => {
    const { definition, tool, args, signal } = call;
    const subject: Subject = { definition, tool };
    const canAlways = canBeAllowed(judgedOf(call, settings()), definition, settings().approve);
    // An id of another worker, which has crashed, must fit no question of this one.
    const id = crypto.randomUUID();
    const { promise, resolve, reject } = Promise.withResolvers<Yes>();
    const leave = (): void => {
      waiting.delete(id);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      leave();
      emit({ type: "approval", id });
      reject(cancelled(definition, tool.name));
    };
    const settle = (allowed: boolean): void => {
      leave();
      if (allowed) resolve(yesTo(subject));
      else reject(refused(definition, tool.name));
    };
    const question = {
      server: shownName(definition.name),
      tool: shownName(tool.name),
      args: shownArguments(args),
      canAlways,
    };
    signal.addEventListener("abort", onAbort, { once: true });
    waiting.set(id, { ...subject, canAlways, settle });
    emit({ type: "approval", id, question });
    return promise;
  };

  /** Lets the other calls go on that wait for the same yes, and takes their questions away. */
  const settleSame = (granted: Subject): void => {
    for (const [id, other] of [...waiting]) {
      if (!sameSubject(granted, other)) continue;
      other.settle(true);
      emit({ type: "approval", id });
    }
  };

  return {
    of: (call) => {
      const { definition, tool, signal } = call;
      const found = verdict(call);
      if (found === "allow") return undefined;
      if (found === "deny") throw denied(definition, tool.name);
      if (grants.has(call)) return undefined;
      if (!canAsk) throw nobodyToAsk(definition, tool.name);
      if (signal.aborted) throw cancelled(definition, tool.name);
      if (waiting.size >= LIMITS.approvalsOpen) throw tooManyQuestions(definition, tool.name);
      return ask(call);
    },
    answer: (id, answer) => {
      const asked = waiting.get(id);
      if (!asked) return undefined;
      const { definition, tool, canAlways } = asked;
      log.info(`the user's answer to ${definition.name}/${tool.name}: ${answer}`);
      const lasts = answer === "session" || answer === "always";
      if (lasts) grants.add({ definition, tool });
      asked.settle(lasts || answer === "once");
      if (lasts) settleSame(asked);
      return { definition, tool, canAlways };
    },
  };
}
