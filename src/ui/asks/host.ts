/** The part of the session that a server's question needs, and what the session gets of the questions. Types only. */
import type { Runtime } from "../../runtime/runtime.ts";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";

export interface AskHost {
  ask: Runtime["ask"];
  inTurn: Dialogs["inTurn"];
  /** Whether the session has ended. Pi must not be touched then. */
  over(): boolean;
  /** Shows an error, unless the session has ended. Does not throw. */
  failed(text: string): void;
}

export type AskEvent = Extract<WorkerEvent, { type: "ask" | "ask-over" }>;

export interface Asks {
  /** A server asks, or no longer waits for the answer. */
  on(event: AskEvent): void;
  /** The worker or the session has ended: every dialog closes. */
  interrupt(): void;
}
