/**
 * The yes that a call may need. Owns: which calls of a session wait for the user, the questions to main, and the tools
 * that may run until the session ends. Must not: call a tool, or write a file. What the words and rules of
 * `approve` mean: config/entry/approve.ts. A call that needs no yes costs two comparisons.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import type { AskUser } from "../asks/asks.ts";
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
  allowAlways: (subject: Subject) => void;
  log: Log;
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
  const { canAsk, definitionOf, settings, askUser, allowAlways, log } = options;
  let waiting = 0;
  /** Settles when the question before has an answer. One is asked at a time: its answer may count for the others. */
  let turn: Promise<unknown> = Promise.resolve();
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

  const decide = async ({ definition, tool, args, signal }: AskedCall): Promise<Yes> => {
    const subject: Subject = { definition, tool };
    if (signal.aborted) throw cancelled(definition, tool.name);
    // An answer to a question before this one.
    if (grants.has(subject)) return yesTo(subject);
    const canAlways = canBeAllowed(judgedOf(subject, settings()), definition, settings().approve);
    const [server, shownTool] = [shownName(definition.name), shownName(tool.name)];
    const question = {
      about: "call",
      server,
      tool: shownTool,
      args: shownArguments(args),
      canAlways,
    } as const;
    const answered = await askUser(question, signal);
    if (signal.aborted) throw cancelled(definition, tool.name);
    const answer = answered ?? "no";
    log.info(`the user's answer to ${definition.name}/${tool.name}: ${answer}`);
    const lasts = answer === "session" || answer === "always";
    if (!lasts && answer !== "once") throw refused(definition, tool.name);
    if (lasts) grants.add(subject);
    if (answer === "always" && canAlways) allowAlways(subject);
    return yesTo(subject);
  };

  const ask = async (call: AskedCall): Promise<Yes> => {
    const { definition, tool, signal } = call;
    const decided = waiting++ === 0 ? decide(call) : turn.then(() => decide(call));
    turn = decided.catch(() => undefined);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(cancelled(definition, tool.name));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([decided, aborted]);
    } finally {
      waiting--;
      signal.removeEventListener("abort", onAbort);
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
      if (waiting >= LIMITS.approvalsOpen) throw tooManyQuestions(definition, tool.name);
      return ask(call);
    },
  };
}
