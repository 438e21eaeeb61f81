/**
 * Bounds the requests of a server: how many wait for their answers, the bytes of those answers, and how many come
 * within a time. A server that asks and never reads would otherwise fill the worker. Stands between the SDK's client
 * and any transport. Each message passes through unchanged.
 */

import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { createGate, type Gate, RequestWindow } from "../../shared/pace/pace.ts";
import type { JSONRPCMessage, RequestId, Transport, TransportSendOptions } from "../mcp/wire/wire.ts";
import { cancelledRequest, isAnswer, isRequest } from "./incoming.ts";
import { mebibytesOf } from "./too-large.ts";

export interface RequestLimits {
  server: string;
  /** Ends the connection of a server that asks too much, for this reason. Called once. */
  end: (error: ThreadsError) => void;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** Limit for answers that are sent at the same time: over HTTP each takes a connection. Absent: no limit. */
  answersAtATime?: number;
  now?: () => number;
}

const NEVER = new AbortController().signal;

const count = (number: number): string => number.toLocaleString("en");

export class BoundedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];

  readonly #inner: Transport;
  readonly #limits: RequestLimits;
  readonly #now: () => number;
  readonly #gate: Gate | undefined;
  /** Number of requests of the server that wait for an answer, by id. A server may use an id twice. */
  readonly #waiting = new Map<RequestId, number>();
  #waitingCount = 0;
  /** Bytes of answers that the server has not accepted. */
  #unsentBytes = 0;
  readonly #window = new RequestWindow();
  /** Sessions that the server has forgotten: their ids may mean other requests in the next one. */
  #lostSessions = 0;
  #isEnded = false;

  constructor(inner: Transport, limits: RequestLimits) {
    this.#inner = inner;
    this.#limits = limits;
    this.#now = limits.now ?? (() => performance.now());
    this.#gate = limits.answersAtATime === undefined ? undefined : createGate(limits.answersAtATime);
  }

  start(): Promise<void> {
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => this.#receive(message);
    return this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version);
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!isAnswer(message) || message.id === undefined) return this.#inner.send(message, options);
    const bytes = Buffer.byteLength(JSON.stringify(message));
    this.#unsentBytes += bytes;
    if (this.#unsentBytes > LIMITS.unsentReplyBytes) {
      const limit = mebibytesOf(LIMITS.unsentReplyBytes);
      this.#end(`does not take the answers to its requests: more than ${limit} of them wait`);
    }
    const before = this.#lostSessions;
    const leave = this.#gate && (await this.#gate.enter(NEVER));
    try {
      if (!this.#isEnded && this.#lostSessions === before) await this.#inner.send(message, options);
    } finally {
      leave?.();
      this.#unsentBytes -= bytes;
      if (this.#lostSessions === before) this.#settle(message.id);
    }
  }

  /** The server has forgotten what it asked: takes each request back in its place, and sends no answer any more. */
  sessionLost(): void {
    this.#lostSessions++;
    for (const requestId of this.#waiting.keys())
      this.#receive({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
  }

  #settle(id: RequestId): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waitingCount--;
    if (waiting === 1) this.#waiting.delete(id);
    else this.#waiting.set(id, waiting - 1);
  }

  /** A request that the server has cancelled gets no answer. */
  #forget(id: RequestId): void {
    this.#waitingCount -= this.#waiting.get(id) ?? 0;
    this.#waiting.delete(id);
  }

  #receive(message: JSONRPCMessage): void {
    if (this.#isEnded) return;
    const cancelled = cancelledRequest(message);
    if (isRequest(message)) this.#onRequest(message.id);
    else if (cancelled !== undefined) this.#forget(cancelled);
    if (this.#isEnded) return;
    try {
      this.onmessage?.(message);
    } catch (error) {
      // The SDK writes a message that it does not understand into an error, and V8 gives up on extreme depth.
      this.#limits.onNote(`sent a message that cannot be handled: ${messageOf(error)}`);
    }
  }

  #onRequest(id: RequestId): void {
    const tooMany = this.#window.add(this.#now());
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1);
    if (++this.#waitingCount > LIMITS.serverRequestsOpen) {
      this.#end(`sent more than ${count(LIMITS.serverRequestsOpen)} requests that wait for an answer`);
    } else if (tooMany !== undefined) this.#end(tooMany);
  }

  #end(what: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { server, end } = this.#limits;
    end(
      new ThreadsError("server_died", `${server} ${what}; the connection was closed.`, {
        remedy: "This is a fault of the server. The next call connects again.",
        data: { server },
      }),
    );
  }
}
