/**
 * The questions of a session: each is asked in its turn among all dialogs, and leaves the screen once nobody waits for
 * the answer.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/notices.ts";
import type { AskAnswer, AskReply } from "../../shared/protocol/ask.ts";
import { messageOf, ThreadsError } from "../../shared/protocol/errors.ts";
import { askForm } from "./form.ts";
import type { AskEvent, AskHost, Asks } from "./host.ts";
import { askUrl } from "./url.ts";
import { openedText, withdrawnText } from "./words.ts";

type Asked = Extract<AskEvent, { type: "ask" }>;

const WORKER_ENDED = new Set(["runtime_restarted", "runtime_stopped"]);
const isWorkerEnd = (error: unknown): boolean =>
  error instanceof ThreadsError && WORKER_ENDED.has(error.code);

export function createAskDialogs(ctx: PiContext, host: AskHost): Asks {
  /** By the question's id: what closes its dialog. */
  const open = new Map<string, AbortController>();

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

  const ask = async (event: Asked): Promise<void> => {
    const closing = new AbortController();
    open.set(event.askId, closing);
    try {
      await host.inTurn(async () => {
        if (!closing.signal.aborted && !host.over()) await converse(event, closing.signal);
      });
    } catch (error) {
      // A worker that has ended is reported once, for the whole session.
      if (!isWorkerEnd(error)) host.failed(`MCP: ${messageOf(error)}`);
    } finally {
      if (open.get(event.askId) === closing) open.delete(event.askId);
    }
  };

  return {
    on: (event) => {
      if (event.type === "ask") void ask(event);
      else open.get(event.askId)?.abort();
    },
    interrupt: () => {
      for (const closing of open.values()) closing.abort();
    },
  };
}
