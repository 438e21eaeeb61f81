/**
 * The dialogs of a session. Owns: their queue, so that one shows at a time, and the questions whether a project's server
 * may run, whether a tool may run, and whether a held edit is applied. Must not: do what an answer says; `Answers` does.
 * Called by: session. Dialogs appear only in modes that have them. The questions are in run.ts, which is loaded with the
 * first one.
 */
import type { PiContext } from "../../pi/api.ts";
import type { Answers, Dialogs, Questions } from "./contract.ts";

export type { Dialogs } from "./contract.ts";

export function createDialogs(ctx: PiContext, answers: Answers): Dialogs {
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn: Dialogs["inTurn"] = (task) => {
    const turn = queue.then(task);
    // Whoever asked for the turn handles its failure.
    queue = turn.catch(() => undefined);
    return turn;
  };
  let questions: Promise<Questions> | undefined;
  const later = (task: (questions: Questions) => void): void => {
    if (!ctx.hasUI) return;
    questions ??= import("./run.ts").then(({ createQuestions }) => createQuestions(ctx, answers, inTurn));
    questions.then(task).catch(answers.failed);
  };
  return {
    consents: (open) => {
      if (questions || open.length > 0) later((all) => all.consents(open));
    },
    held: (id, text) => later((all) => all.held(id, text)),
    approval: (event) => later((all) => all.approval(event)),
    interrupt: () => {
      if (questions) later((all) => all.interrupt());
    },
    forget: () => later((all) => all.forget()),
    inTurn,
  };
}
