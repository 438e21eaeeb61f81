/** What the connection worker tells main unasked. Types only. */
import type { CallProgress } from "./calls.ts";
import type { CatalogSettings, RemovedTools } from "./catalog.ts";
import type { AcceptedBefore } from "./session.ts";
import type { SignInResult } from "./sign-in.ts";
import type { ServerStatus, StatusReport } from "./status.ts";

/**
 * One-way messages. An event that is sent before an answer arrives before it.
 */
export type WorkerEvent =
  /** Sent when a server's process has started, before its first byte. Main kills it if the worker dies. */
  | { type: "spawned"; pid: number; server: string }
  /** Sent when that process has ended. */
  | { type: "exited"; pid: number; server: string }
  /** Sent once per server, before the shared record (talk.ts) names the server by this slot. */
  | { type: "talker"; slot: number; server: string }
  /** Sent when the configured servers are known: at the start, before anything connects, and after each change. */
  | ({
      type: "planned";
      settings: CatalogSettings;
      accepted: AcceptedBefore;
    } & StatusReport)
  /**
   * Sent when the new servers have settled: what a change of the configuration did, in one line. Also sent as a warning
   * of a fault that the user can mend, and as an error if an answer of the user could not be carried out.
   */
  | { type: "notice"; text: string; level: "info" | "warning" | "error" }
  /**
   * Sent when an edit waits for the user's word (`hotReload: "ask"`). `id` names all that the edit would do, and is the
   * same after a crash of the worker.
   */
  | { type: "held"; id: string; text: string }
  /** Sent at each change of a server's status. */
  | { type: "server"; status: ServerStatus }
  /** Sent each second while the trial of a server waits, for npm, and once when it does no longer (without `waits`). */
  | { type: "trying"; server: string; waits?: string }
  /** Sent when a sign-in has ended, after the server has connected with it. */
  | { type: "sign-in"; id: string; server: string; result: SignInResult }
  /** Sent when no browser could be started for the page of a server's question that the user wants to open. */
  | { type: "unopened"; server: string; url: string }
  /** Sent when the number of sign-ins that are being renewed changes. The end of the session waits for them. */
  | { type: "renewing"; open: number }
  /**
   * Sent when the catalog differs from the one main has: a whole snapshot in the file's own format. `prompts`: it has
   * prompts, and others than the last one had, so that main decodes no snapshot in vain.
   */
  | { type: "catalog"; snapshot: Uint8Array<ArrayBuffer>; prompts?: true }
  /** Sent as soon as servers or tools are gone, because the snapshot without them takes time to make. */
  | ({ type: "removed" } & RemovedTools)
  /** Sent while a call runs, at most as often as `LIMITS` allows. */
  | ({ type: "progress"; callId: string } & CallProgress);
