/** What the session gets of its dialogs, and what they need of it. Types only. */
import type { ConsentQuestion } from "../../shared/protocol/status.ts";

export interface Questions {
  /** Asks the questions that have not been asked yet. `questions`: all that are open now. */
  consents(questions: readonly ConsentQuestion[]): void;
  /** Asks whether an edit is applied, unless the same question is open. */
  held(id: string, text: string): void;
  /** For `/mcp trust`: every question may be asked again. */
  forget(): void;
}

export interface Dialogs extends Questions {
  /** Runs the task once every dialog before it has ended. Dialogs after it wait until the task has ended. */
  inTurn<T>(task: () => Promise<T>): Promise<T>;
}

export interface Answers {
  consent(hash: string, allow: boolean): Promise<void>;
  held(id: string, apply: boolean): Promise<void>;
  /** Whether the session that asks has ended. */
  over(): boolean;
  failed(error: unknown): void;
}
