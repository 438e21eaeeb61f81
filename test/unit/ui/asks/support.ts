/** Owns: the questions of servers on a Pi in memory: a user with prepared answers. */
import type { Ask, AskForm, Field, FieldKind } from "../../../../src/shared/protocol/calls.ts";
import { createDialogs } from "../../../../src/ui/dialogs/dialogs.ts";
import { tickLines } from "../../../../src/ui/ticks.ts";
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
  /** The answers that the worker got. */
  answers: unknown[];
  errors: string[];
  /** Sends a question and waits until nothing moves. */
  ask(ask: Ask, id?: string): Promise<void>;
  /** Takes the question back. */
  withdraw(id?: string): Promise<void>;
  /** Ends the session. */
  stop(): void;
}

/**
 * The user's answers in order, for any dialog: a choice by its whole text, or the text to type; null presses Escape, and
 * undefined leaves the dialog open, as does the end of the list.
 */
export interface AskingOptions extends RecordingOptions {
  user?: readonly unknown[];
}

export function asking({ user = [], ...options }: AskingOptions = {}): Asking {
  const left = [...user];
  const never = new Promise<never>(() => undefined);
  const next = (): unknown => {
    const answer = left.shift();
    return answer === undefined ? never : (answer ?? undefined);
  };
  const recording = createRecordingContext({ select: next as () => string, input: next, ...options });
  const answers: unknown[] = [];
  const shown = new Map<string, AbortController>();
  const errors: string[] = [];
  let isOver = false;
  const over = (): boolean => isOver;
  const failed = (text: unknown): void => void errors.push(String(text));
  const dialogs = createDialogs(recording.ctx, {
    tick: tickLines,
    skill: async () => "no" as const,
    consent: async () => undefined,
    applyHeld: async () => undefined,
    over,
    failed,
  });
  return {
    ...recording,
    answers,
    errors,
    ask: async (ask, id = "1") => {
      const controller = new AbortController();
      shown.set(id, controller);
      void dialogs.ask({ about: "server", server: "files", ask }, controller.signal).then((answer) => {
        if (answer !== undefined) answers.push(structuredClone(answer));
      });
      await settled();
    },
    withdraw: async (id = "1") => {
      shown.get(id)?.abort();
      await settled();
    },
    stop: () => {
      isOver = true;
      for (const controller of shown.values()) controller.abort();
    },
  };
}
