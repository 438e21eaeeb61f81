/** Owns: a person who answers the worker's questions when the test says so. */
import type { Question } from "../../src/shared/protocol/contract.ts";

export interface Asked<Q extends Question = Question> {
  question: Q;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  answer(value: unknown): void;
}

export interface RecordingUser {
  asked: Asked[];
  /** Both threads' side of a question. */
  ask(question: Question, signal: AbortSignal): Promise<never>;
  /** The questions of a server, in order. */
  ofServers(): Asked<Extract<Question, { about: "server" }>>[];
}

/** `onAsked`: called after each question. */
export function recordingUser(onAsked: () => void = () => undefined): RecordingUser {
  const asked: Asked[] = [];
  return {
    asked,
    ask: (question, signal) => {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      signal.addEventListener("abort", () => resolve(undefined), { once: true });
      asked.push({ question, signal, answer: resolve });
      onAsked();
      return promise as Promise<never>;
    },
    ofServers: () => asked.filter(({ question }) => question.about === "server") as never,
  };
}
