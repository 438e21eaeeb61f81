/**
 * One server as the connection speaks to it, whatever the era of the protocol. legacy-peer.ts and modern-peer.ts make
 * one. Types only.
 */

import type { CachedTool } from "../../shared/listed.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { SpokenProtocol } from "./connection.ts";
import type { SendRequest } from "./list-pages.ts";

export interface PeerCall {
  request: { method: string; params: Record<string, unknown> };
  /** The call in words, for example `docs/search`. */
  subject: string;
  signal: AbortSignal;
  /** Params of a progress notification. */
  onProgress: (params: { message?: unknown; progress: unknown; total?: unknown }) => void;
}

export interface Peer {
  readonly protocol: SpokenProtocol;
  /** What the server says that it can do. */
  readonly capabilities: Record<string, unknown>;
  readonly instructions: string | undefined;
  /** False: the connection has ended. */
  readonly isOpen: boolean;
  /** Sends a request of which nobody but this client knows. */
  send: SendRequest;
  /** Sends a request of the user or the model, and answers its last result. */
  call(call: PeerCall): Promise<Record<string, unknown>>;
  /** Rejects if the server does not answer within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** Takes the tools of a new list and answers those that can be called. */
  takeTools?(tools: CachedTool[]): CachedTool[];
  /** What a later session may remember, so that it can call without asking first. */
  memory?(): StoredProtocol;
  /** Whether the list of tools is older than the server said that it counts. */
  isStale?(): boolean;
  /** Whether nothing has been sent yet: what is known of the server was remembered. */
  readonly isFromMemory?: boolean;
}
