/**
 * The questions of a session: each is asked in its turn among all dialogs, and leaves the screen once nobody waits for
 * the answer.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import type { AskAnswer, AskReply } from "../../shared/protocol/ask.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import { isRuntimeEnd } from "../dialog.ts";
import { createWithdrawable } from "../withdrawable.ts";
import { askForm } from "./form.ts";
import type { AskEvent, AskHost, Asks } from "./host.ts";
import { askUrl } from "./url.ts";
import { openedText, withdrawnText } from "./words.ts";

type Asked = Extract<AskEvent, { type: "ask" }>;

export function createAskDialogs(ctx: PiContext, host: AskHost): Asks {
  const { show, withdraw, interrupt } = createWithdrawable(host);

  const converse = async ({ askId, server, ask }: Asked, signal: AbortSignal): Promise<void> => {
    const send = (answer: AskAnswer): Promise<AskReply> => host.ask("answerAsk", { askId, answer });
    const how = { ctx, server, signal, send };
    const reply = ask.kind === "form" ? await askForm(ask, how) : await askUrl(ask, how);
    if (host.over()) return;
    // Without an answer the question was withdrawn while its dialog was open.
    if (reply === undefined || "over" in reply) notify(ctx, withdrawnText(server), "info");
    else if (reply.taken && reply.browser === "none" && ask.kind === "url") {
      ctx.ui.notify(openedText(server, ask.url, ctx.mode), "warning");
    }
  };

  return {
    on: (event) => {
      if (event.type === "ask-over") return withdraw(event.askId);
      show(event.askId, (signal) => converse(event, signal)).catch((error: unknown) => {
        if (!isRuntimeEnd(error)) host.failed(`MCP: ${messageOf(error)}`);
      });
    },
    interrupt,
  };
}
