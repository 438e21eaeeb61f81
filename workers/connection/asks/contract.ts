/** Who asks, and what a connection gets of its server's questions. Types only. */
import type { Redactor } from "../secrets/redact.ts";

export interface AskingServer {
  name: string;
  redact: Redactor;
  /** Takes a note about the server, worded to follow the server's name. */
  onNote: (note: string) => void;
}

/** The result of `elicitation/create`. */
export interface ElicitAnswer extends Record<string, unknown> {
  action: "accept" | "decline" | "cancel";
  content?: Record<string, unknown>;
}

/** `none`: the error named no address. */
export type RequiredOutcome = ElicitAnswer["action"] | "none";

/** While a question is open the server waits for a person, so the clocks of its calls stand still. */
export interface AskPauses {
  readonly isOpen: boolean;
  /** Calls the listener at each change of `isOpen`. Answers how to stop that. */
  watch(listener: () => void): () => void;
}

export interface ServerAsks extends AskPauses {
  /** Answers a question, which may have any shape. `signal`: the server no longer waits. Does not reject. */
  create(params: unknown, signal: AbortSignal): Promise<ElicitAnswer>;
  /** Asks for each address of the error -32042, whose data may have any shape. Does not reject. */
  required(data: unknown, signal: AbortSignal): Promise<RequiredOutcome>;
  /**
   * A call begins. Answers how to end it: a question of a call that was given up leaves the screen. Over stdio nothing
   * tells which call a question belongs to, so it stays as long as one of those calls is open that it may belong to.
   */
  callBegins(): (how: "done" | "given-up") => void;
}
