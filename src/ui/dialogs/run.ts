/** The questions of a session: each is asked once, in its turn, and not at all if it is void before its turn. */
import type { PiContext } from "../../pi/api.ts";
import type { ConsentQuestion } from "../../shared/protocol/status.ts";
import { printable } from "../../shared/text/width.ts";
import { createApprovals } from "./approvals.ts";
import { askConsent } from "./ask-consent.ts";
import type { Answers, Dialogs, Questions } from "./contract.ts";

export function createQuestions(ctx: PiContext, answers: Answers, inTurn: Dialogs["inTurn"]): Questions {
  const asked = new Set<string>();
  /** Questions whose turn has not come. */
  const waiting = new Set<string>();
  /** Held edits whose question has no answer. */
  const open = new Set<string>();
  const enqueue = (ask: () => Promise<void>): void => {
    inTurn(async () => (answers.over() ? undefined : ask())).catch(answers.failed);
  };
  const ask = async ({ hash, question }: ConsentQuestion): Promise<void> => {
    if (!waiting.delete(hash)) return;
    const choice = await askConsent(ctx, question, { others: waiting.size, over: answers.over });
    if (answers.over() || choice === undefined) return;
    if (choice === "none") waiting.clear();
    else await answers.consent(hash, choice === "allow");
  };
  return {
    ...createApprovals(ctx, answers, inTurn),
    consents: (questions) => {
      const wanted = new Set(questions.map(({ hash }) => hash));
      // A question that an edit has made void is not asked. If it comes back, it counts as new.
      for (const hash of [...waiting].filter((one) => !wanted.has(one))) {
        waiting.delete(hash);
        asked.delete(hash);
      }
      for (const question of questions) {
        if (asked.has(question.hash)) continue;
        asked.add(question.hash);
        waiting.add(question.hash);
        enqueue(() => ask(question));
      }
    },
    held: (id, text) => {
      if (open.has(id)) return;
      open.add(id);
      enqueue(async () => {
        const apply = await ctx.ui.confirm("Apply the edit of the MCP configuration?", printable(text));
        open.delete(id);
        if (!answers.over()) await answers.held(id, apply);
      });
    },
    forget: () => asked.clear(),
  };
}
