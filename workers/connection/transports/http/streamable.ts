/**
 * Streamable HTTP (MCP 2025-11-25, basic/transports): one POST for each message, the answer as JSON or as a stream of
 * events, and a session that the server may give and lose. Implements the SDK's `Transport`, with three differences
 * from the SDK's own: `send` of a request settles with the answer, so that a broken answer fails that request at once
 * and no other; messages are bounded; a lost session is opened again.
 */

import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { JSONRPCMessage, JSONRPCRequest, Transport } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/kinds.ts";
import { Noise } from "../../messages/noise.ts";
import { type MessageStream, receive } from "../../messages/receive.ts";
import type { HttpClient, HttpResponse } from "../../web/client.ts";
import { Acknowledged } from "./acknowledged.ts";
import { answerError } from "./answer.ts";
import type { ServerEvent } from "./events.ts";
import { receiveAnswer } from "./exchange.ts";
import { type AnswerError, classifyFailure, mediaType } from "./failure.ts";
import { handEvent } from "./messages-in.ts";
import { followNotifications } from "./notifications.ts";
import { createOpenExchanges, type Exchange } from "./open-exchanges.ts";
import { HttpSession, mayRepeat, streamRefusal } from "./session.ts";

export interface HttpTransportOptions {
  server: string;
  url: URL;
  headers: Record<string, string>;
  client: HttpClient;
  maxMessageBytes: number;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** Returns the error with which a failed request is rejected. */
  explain: (error: unknown, request: JSONRPCRequest) => unknown;
}

const isInitialize = (message: JSONRPCMessage): boolean =>
  isRequest(message) && message.method === "initialize";

export class StreamableHttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: HttpTransportOptions;
  readonly #lifetime = new AbortController();
  readonly #open = createOpenExchanges((message) => this.onmessage?.(message));
  readonly #acknowledged = new Acknowledged();
  readonly #stream: MessageStream;
  readonly #session: HttpSession;
  #listening: AbortController | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    this.#stream = {
      server: options.server,
      batches: () => this.#session.hasBatches,
      asked: this.#open.asked,
      isOver: () => this.#lifetime.signal.aborted,
      hand: this.#open.deliver,
      noise: new Noise(options.onNote),
      onNote: options.onNote,
    };
    this.#session = new HttpSession({
      initialize: (request) => this.#initializeAgain(request),
      initialized: () => this.#notify({ jsonrpc: "2.0", method: "notifications/initialized" }),
      onLost: () => this.#listening?.abort(),
      onNote: options.onNote,
    });
  }

  async start(): Promise<void> {
    this.#lifetime.signal.throwIfAborted();
  }

  setProtocolVersion(version: string): void {
    this.#session.agree(version);
  }

  /** A request settles when its answer has been handed to `onmessage`, any other message when it is accepted. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (!isRequest(message)) return this.#notify(message);
    try {
      await this.#request(message);
    } catch (error) {
      throw this.#options.explain(error, message);
    }
  }

  async #request(message: JSONRPCRequest): Promise<void> {
    if (isInitialize(message)) this.#session.begin(message);
    this.#lifetime.signal.throwIfAborted();
    const exchange = this.#open.open(message);
    try {
      if (this.#session.isLost) await this.#session.reopen();
      await this.#exchange(message, exchange);
    } catch (error) {
      if (classifyFailure(error).kind !== "session-lost") throw error;
      this.#session.lose((error as AnswerError).sessionId);
      if (!mayRepeat(message.method)) throw error;
      if (this.#session.isLost) await this.#session.reopen();
      await this.#exchange(message, exchange);
    } finally {
      this.#open.close(message.id);
    }
  }

  async #notify(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    if (cancelled !== undefined) this.#open.cancel(cancelled);
    this.#lifetime.signal.throwIfAborted();
    await this.#acknowledged.send((signal) => this.#post(message, signal));
    if ("method" in message && message.method === "notifications/initialized") this.#listen();
  }

  /** One POST and its answer. Rejects with the error as it happened, not explained. */
  async #exchange(message: JSONRPCRequest, exchange: Exchange): Promise<void> {
    const { signal } = exchange.controller;
    signal.throwIfAborted();
    const response = await this.#post(message, signal);
    await receiveAnswer(response, exchange, {
      url: this.#options.url,
      maxBytes: this.#options.maxMessageBytes,
      stream: this.#stream,
      onEvent: (event) => this.#onEvent(event),
      resume: (lastId) => this.#get(lastId, signal),
      signal,
    });
  }

  /** Rejects unless the status is 2xx. */
  async #post(message: JSONRPCMessage, signal: AbortSignal): Promise<HttpResponse> {
    const { client, url } = this.#options;
    const sessionId = this.#session.id;
    const response = await client.request({
      method: "POST",
      url,
      headers: this.#headers({
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      }),
      body: JSON.stringify(message),
      signal,
    });
    if (response.status >= 200 && response.status < 300) {
      const given = response.headers["mcp-session-id"];
      if (isInitialize(message) && typeof given === "string") this.#session.accept(given);
      return response;
    }
    const { error, body } = await answerError(response, { url, sessionId });
    // Some servers send a proper answer with an error status.
    const isRejected = isRequest(message) && classifyFailure(error).kind === "rejected";
    await receive(body, {
      ...this.#stream,
      hand: (answer) => {
        if (isRejected && "error" in answer && answer.id === message.id) this.#open.deliver(answer);
      },
      onNoise: () => undefined,
    });
    throw error;
  }

  #headers(own: Record<string, string>): Record<string, string> {
    return { ...this.#options.headers, ...own, ...this.#session.headers() };
  }

  #onEvent(event: ServerEvent): undefined | Promise<unknown> {
    return handEvent(event, this.#stream);
  }

  /** A stream of events from the server, or undefined if it offers none. Rejects if it may offer one later. */
  async #get(lastId: string | undefined, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const { client, url } = this.#options;
    const sessionId = this.#session.id;
    const resume: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
    const headers = this.#headers({ accept: "text/event-stream", ...resume });
    const response = await client.request({ method: "GET", url, headers, signal });
    if (response.status === 200 && mediaType(response.headers) === "text/event-stream") return response;
    const { error } = await answerError(response, { url, sessionId });
    const refusal = streamRefusal(classifyFailure(error));
    if (refusal === "session lost") this.#session.lose(sessionId);
    if (refusal === "later") throw error;
    return undefined;
  }

  #listen(): void {
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    const signal = AbortSignal.any([this.#lifetime.signal, listening.signal]);
    void followNotifications({
      open: (lastId) => this.#get(lastId, signal),
      noise: this.#stream.noise,
      onEvent: (event) => this.#onEvent(event),
      onNote: this.#options.onNote,
      maxBytes: this.#options.maxMessageBytes,
      signal,
    });
  }

  /** For a new session. The client has had its answer to `initialize`, so the transport keeps this one. */
  async #initializeAgain(request: JSONRPCRequest): Promise<string | undefined> {
    let rejection: string | undefined;
    this.#lifetime.signal.throwIfAborted();
    const exchange = this.#open.open(request, (answer) => {
      if ("error" in answer) rejection = answer.error.message;
    });
    const limit = setTimeout(() => exchange.controller.abort(), LIMITS.startupTimeoutMs);
    try {
      await this.#exchange(request, exchange);
    } finally {
      clearTimeout(limit);
      this.#open.close(request.id);
    }
    return rejection;
  }

  /** Ends all streams at once, then the session at the server, which may take `LIMITS.sessionEndMs`. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    this.#lifetime.abort();
    this.#open.cancelAll();
    this.#acknowledged.close();
    this.onclose?.();
    const { client, url } = this.#options;
    if (this.#session.id !== undefined && !this.#session.isLost) {
      const signal = AbortSignal.timeout(LIMITS.sessionEndMs);
      // A server may refuse this (405) or be gone. Then there is nothing to end.
      await client.request({ method: "DELETE", url, headers: this.#headers({}), signal }).then(
        ({ body }) => body.destroy(),
        () => undefined,
      );
    }
    client.close();
  }
}
