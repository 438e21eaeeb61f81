/**
 * The user's answer to the question whether a tool may run: "always" becomes a rule in the user's file. Called by:
 * session.ts.
 */
import type { Approvals } from "../approval/approval.ts";
import type { SessionRequests } from "./handler.ts";
import type { UserEdits } from "./user-edits.ts";

/** Rejects with `bad_config` if the rule cannot be written. */
export const createAnswerApproval =
  (
    approvals: Pick<Approvals, "answer">,
    edits: Promise<Pick<UserEdits, "allowTool">>,
  ): SessionRequests["answerApproval"] =>
  async ({ id, answer }) => {
    const asked = approvals.answer(id, answer);
    if (answer === "always" && asked?.canAlways) {
      await (await edits).allowTool(asked.definition.name, asked.tool.name);
    }
    return undefined;
  };
