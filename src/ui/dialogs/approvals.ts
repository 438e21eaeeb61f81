/** The questions whether a tool may run: one at a time, each until its answer or until nobody waits for it any more. */
import type { PiContext } from "../../pi/api.ts";
import { createWithdrawable } from "../withdrawable.ts";
import { askApproval } from "./ask-approval.ts";
import type { Answers, Approvals, Dialogs } from "./contract.ts";

export function createApprovals(
  ctx: PiContext,
  answers: Pick<Answers, "approval" | "over" | "failed">,
  inTurn: Dialogs["inTurn"],
): Approvals {
  const { show, withdraw, interrupt } = createWithdrawable({ inTurn, over: answers.over });
  return {
    approval: ({ id, question }) => {
      if (!question) return withdraw(id);
      show(id, async (signal) => {
        const answer = await askApproval(ctx, question, signal);
        if (!signal.aborted && !answers.over()) await answers.approval(id, answer);
      }).catch(answers.failed);
    },
    interrupt,
  };
}
