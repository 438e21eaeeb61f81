/** What the session gets of its dialogs, and what they need of it. Types only. */
import type { ApprovalAnswer } from "../../shared/protocol/approval.ts";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import type { ConsentQuestion } from "../../shared/protocol/status.ts";

export interface Approvals {
  /** Asks whether a tool may run, or takes that question away. */
  approval(event: Extract<WorkerEvent, { type: "approval" }>): void;
  /** The worker or the session has ended: nobody waits for an answer. */
  interrupt(): void;
}

export interface Questions extends Approvals {
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
  approval(id: string, answer: ApprovalAnswer): Promise<void>;
  /** Whether the session that asks has ended. */
  over(): boolean;
  failed(error: unknown): void;
}
