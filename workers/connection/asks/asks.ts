/**
 * Questions of servers to the user (MCP: elicitation). Owns: how a question is read and bounded, which questions of a
 * server are open, wait or are declined unseen, and the answer that a server gets. Must not: know the protocol's client,
 * lifecycles or dialogs; main shows the dialogs. Called by: mcp (questions, calls), session (answers, turns).
 * To add a kind of field: src/shared/protocol/ask.ts, fields.ts, src/shared/asks/check.ts, src/ui/asks/form.ts.
 */
import type { AskAnswer, AskReply } from "../../../src/shared/protocol/ask.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import type { AskingServer, ServerAsks } from "./contract.ts";
import { type OpenAsk, QuestionsOfServer } from "./server-asks.ts";

export type { AskPauses, ElicitAnswer, RequiredOutcome, ServerAsks } from "./contract.ts";

export interface SessionAsks {
  /** The questions of a server, also over several connections: a server that nags may connect again. */
  of(server: AskingServer): ServerAsks;
  /** Takes the user's answer. Does not reject. */
  answer(askId: string, answer: AskAnswer): Promise<AskReply>;
  /** A turn of the model has ended: servers that were declined may ask again. */
  turnEnded(): void;
}

export interface SessionAsksOptions {
  /** Begins every id. Another worker of the session must have another one: it may get an answer that this one awaited. */
  worker: string;
  emit: (event: WorkerEvent) => void;
  /** Opens an address in the user's browser. Does not reject. */
  openPage: (url: string, onNote: (note: string) => void) => Promise<"started" | "none">;
}

export function createSessionAsks({ worker, emit, openPage }: SessionAsksOptions): SessionAsks {
  const servers = new Map<string, QuestionsOfServer>();
  const open = new Map<string, OpenAsk>();
  let lastId = 0;

  const show = (one: OpenAsk): string => {
    const askId = `${worker}${++lastId}`;
    open.set(askId, one);
    emit({ type: "ask", askId, server: one.server, ask: one.ask });
    return askId;
  };
  const hide = (askId: string): void => {
    if (open.delete(askId)) emit({ type: "ask-over", askId });
  };

  return {
    of: ({ name, redact, onNote }) => {
      const known = servers.get(name) ?? new QuestionsOfServer({ show, hide });
      servers.set(name, known);
      return known.connected({ name, redact, onNote });
    },
    answer: async (askId, answer) => {
      const one = open.get(askId);
      if (!one) return { taken: false, over: true };
      // Main, which answers, is not told that the question is over.
      open.delete(askId);
      const reply = one.take(answer);
      if (!reply.taken) open.set(askId, one);
      const { ask, onNote } = one;
      if (!reply.taken || !("open" in answer) || !answer.open || ask.kind !== "url") return reply;
      return { taken: true, browser: await openPage(ask.url, onNote) };
    },
    turnEnded: () => {
      for (const server of servers.values()) server.turnEnded();
    },
  };
}
