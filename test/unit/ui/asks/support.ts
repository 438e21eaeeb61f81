/** Owns: the questions of servers on a Pi in memory: a user with prepared answers, and a worker that takes what fits. */
import type { Runtime } from "../../../../src/runtime/runtime.ts";
import type {
  Ask,
  AskAnswer,
  AskForm,
  AskReply,
  Field,
  FieldKind,
} from "../../../../src/shared/protocol/ask.ts";
import { type Asks, createAsks } from "../../../../src/ui/asks/asks.ts";
import { createDialogs } from "../../../../src/ui/dialogs/dialogs.ts";
import {
  createRecordingContext,
  type RecordingContext,
  type RecordingOptions,
} from "../../recording-context.ts";
import { settled } from "../../settled.ts";

export const field = (title: string, kind: FieldKind, more: Partial<Field> = {}): Field =>
  ({ title, required: false, ...kind, ...more }) as Field;
export const form = (...fields: Field[]): AskForm => ({ kind: "form", message: "Tell me.", fields });

export interface Asking extends RecordingContext {
  asks: Asks;
  /** The answers that the worker got. */
  answers: AskAnswer[];
  errors: string[];
  /** Sends a question and waits until nothing moves. */
  ask(ask: Ask, askId?: string): Promise<void>;
  /** Ends the session. */
  stop(): void;
}

/**
 * The user's answers in order, for any dialog: a choice by its whole text, or the text to type; null presses Escape, and
 * undefined leaves the dialog open, as does the end of the list.
 */
export interface AskingOptions extends RecordingOptions {
  user?: readonly unknown[];
  worker?: (answer: AskAnswer) => AskReply | Promise<AskReply>;
}

export function asking({
  user = [],
  worker = () => ({ taken: true }),
  ...options
}: AskingOptions = {}): Asking {
  const left = [...user];
  const never = new Promise<never>(() => undefined);
  const next = (): unknown => {
    const answer = left.shift();
    return answer === undefined ? never : (answer ?? undefined);
  };
  const recording = createRecordingContext({ select: next as () => string, input: next, ...options });
  const answers: AskAnswer[] = [];
  const errors: string[] = [];
  let isOver = false;
  const ask = async (_method: string, params: { answer: AskAnswer }): Promise<AskReply> => {
    answers.push(structuredClone(params.answer));
    return worker(params.answer);
  };
  const over = (): boolean => isOver;
  const failed = (text: unknown): void => void errors.push(String(text));
  const { inTurn } = createDialogs(recording.ctx, {
    consent: async () => undefined,
    held: async () => undefined,
    approval: async () => undefined,
    over,
    failed,
  });
  const asks = createAsks(recording.ctx, { ask: ask as unknown as Runtime["ask"], inTurn, over, failed });
  return {
    ...recording,
    asks,
    answers,
    errors,
    ask: async (one, askId = "1") => {
      asks.on({ type: "ask", askId, server: "files", ask: one });
      await settled();
    },
    stop: () => {
      isOver = true;
      asks.interrupt();
    },
  };
}
