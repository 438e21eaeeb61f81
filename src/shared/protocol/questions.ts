/**
 * What the worker asks the person. A question is a call over comlink, from the worker to main. It ends with the answer, or
 * when the worker takes it back. Types only.
 */
import type { ApprovalAnswer, ApprovalQuestion } from "./approval.ts";
import type { Ask, AskAnswer } from "./ask.ts";

export type Question =
  /** A server asks something (MCP: elicitation). One question of a server is open at a time. */
  | { about: "server"; server: string; ask: Ask }
  /** A call needs the person's yes. */
  | ({ about: "call" } & ApprovalQuestion);

interface Answers {
  server: AskAnswer;
  call: ApprovalAnswer;
}

export type AnswerTo<Q extends Question> = Answers[Q["about"]];

/** What main exposes. `ask` answers undefined if nobody answers. `withdraw`: nobody waits for the answer to that question any more. */
export interface MainApi {
  ask(id: number, question: Question): Promise<unknown>;
  withdraw(id: number): void;
}
