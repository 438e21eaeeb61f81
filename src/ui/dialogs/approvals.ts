/** The questions whether a tool may run: one at a time, each until its answer or until nobody waits for it any more. */
import type { PiContext } from "../../pi/api.ts";
import { askApproval } from "./ask-approval.ts";
import type { Answers, Approvals, Dialogs } from "./contract.ts";

export function createApprovals(
  ctx: PiContext,
  answers: Pick<Answers, "approval" | "over" | "failed">,
  inTurn: Dialogs["inTurn"],
): Approvals {
  /** By the id of the question. */
  const open = new Map<string, AbortController>();
  const close = (id: string): void => {
    open.get(id)?.abort();
    open.delete(id);
  };
  return {
    approval: ({ id, question }) => {
      if (!question) return close(id);
      const closed = new AbortController();
      const { signal } = closed;
      open.set(id, closed);
      const ask = async (): Promise<void> => {
        if (signal.aborted || answers.over()) return;
        const answer = await askApproval(ctx, question, signal);
        if (signal.aborted || answers.over()) return;
        open.delete(id);
        await answers.approval(id, answer);
      };
      inTurn(ask).catch(answers.failed);
    },
    interrupt: () => {
      for (const id of [...open.keys()]) close(id);
    },
  };
}
