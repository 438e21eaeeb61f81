/**
 * The dialogs of a session. Owns: their queue, so that one shows at a time, and the questions of the worker: whether a
 * project's server may run, whether a tool may run or a skill may be loaded, whether a held edit is applied, and what a server
 * asks. Must not: do what an answer says. Dialogs appear only in modes that have them; the code of each is loaded with the
 * first one.
 */

import type { PiContext } from "../../pi/api.ts";
import { skillKeyOf } from "../../shared/protocol/calls.ts";
import type { PersonsQuestion } from "../../shared/protocol/contract.ts";
import type { ConsentQuestion } from "../../shared/protocol/session.ts";
import type { DialogsHost, LastingQuestions } from "./questions.ts";

/** A question that is one dialog after the other. A model answers a prompt, and its dialogs take their turns alone. */
export type InTurn = Exclude<PersonsQuestion, { about: "prompt" }>;

export type Dialogs = ReturnType<typeof createDialogs>;

export function createDialogs(ctx: PiContext, host: DialogsHost) {
  let queue: Promise<unknown> = Promise.resolve();
  /** Runs the task once every dialog before it has ended. Dialogs after it wait until the task has ended. */
  const inTurn = <T>(task: () => Promise<T>): Promise<T> => {
    const turn = queue.then(task);
    // Whoever asked for the turn handles its failure.
    queue = turn.catch(() => undefined);
    return turn;
  };
  let lasting: Promise<LastingQuestions> | undefined;
  const later = (task: (all: LastingQuestions) => void): void => {
    if (!ctx.hasUI) return;
    lasting ??= import("./questions.ts").then((late) => late.createLastingQuestions(ctx, host, inTurn));
    lasting.then(task).catch(host.failed);
  };
  const show = async (question: InTurn, signal: AbortSignal): Promise<unknown> => {
    if (question.about === "server") {
      const { askForServer } = await import("../asks/form.ts");
      return askForServer(ctx, question, { signal, over: host.over, tick: host.tick });
    }
    if (question.about === "skill") return host.skill(ctx, question, signal);
    const { askAboutCall } = await import("./questions.ts");
    return askAboutCall(ctx, question, signal);
  };
  /** Skills that the person lets into this session: a worker that follows a crash asks again. */
  const skills = new Map<string, unknown>();
  const ask = async (question: InTurn, signal: AbortSignal): Promise<unknown> => {
    const isVoid = (): boolean => signal.aborted || host.over();
    // Without content there is nothing by which the same skill is known again.
    const skill = question.about === "skill" && question.content !== "" ? skillKeyOf(question) : undefined;
    const before = skill === undefined ? undefined : skills.get(skill);
    if (before !== undefined) return before;
    const answer = isVoid() ? undefined : await show(question, signal);
    if (isVoid()) return undefined;
    // The file has what holds for good, and may have it no longer.
    if (skill !== undefined && (answer === "session" || answer === "always")) skills.set(skill, "session");
    return answer;
  };
  return {
    inTurn,
    /** Asks the questions that have not been asked yet. `questions`: all that are open now. */
    consents: (open: readonly ConsentQuestion[]): void => {
      if (lasting || open.length > 0) later((all) => all.consents(open));
    },
    /** Asks whether an edit is applied, unless the same question is open. */
    held: (id: string, text: string): void => later((all) => all.held(id, text)),
    /** For `/mcp trust`: every question may be asked again. */
    forget: (): void => later((all) => all.forget()),
    /** The person has taken a yes to a skill back: the worker asks about each anew. */
    forgetSkills: (): void => skills.clear(),
    /** Answers undefined if nobody does. Does not reject. The signal takes the dialog away. */
    ask: async (question: InTurn, signal: AbortSignal): Promise<unknown> =>
      ctx.hasUI ? inTurn(() => ask(question, signal)).catch(host.failed) : undefined,
    /** No browser could be started for the page that the user wants to open. */
    unopened: ({ server, url }: { server: string; url: string }): void => {
      import("../asks/words.ts")
        .then(({ openedText }) => ctx.ui.notify(openedText(server, url, ctx.mode), "warning"))
        .catch(host.failed);
    },
  };
}
