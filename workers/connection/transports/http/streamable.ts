/**
 * Streamable HTTP (MCP 2025-11-25, basic/transports): one POST a message, the answer as JSON or as a stream of
 * events, a session that the server may give and lose. Implements the SDK's `Transport`; unlike the SDK's own,
 * `send` of a request settles with its answer, so that a broken answer fails that request at once and no other,
 * messages are bounded, and a lost session is opened again.
 */

import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { JSONRPCMessage, JSONRPCRequest, RequestId, Transport } from "../../mcp/wire/wire.ts";
import { isRequest, parseMessages } from "../../messages/messages.ts";
import { Acknowledged } from "./acknowledged.ts";
import { answerError } from "./answer.ts";
import type { HttpClient, HttpResponse } from "./client.ts";
import type { ServerEvent } from "./events.ts";
import { type Exchange, newExchange, receiveAnswer } from "./exchange.ts";
import { type AnswerError, BrokenAnswer, classifyFailure, mediaType, NotSent } from "./failure.ts";
import { followNotifications } from "./notifications.ts";

export interface HttpTransportOptions {
  url: URL;
  headers: Record<string, string>;
  client: HttpClient;
  maxMessageBytes: number;
  /** One line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** What a request that failed is rejected with. */
  explain: (error: unknown, request: JSONRPCRequest) => unknown;
}

/** Requests without effect: repeated once when the session turns out to be lost. Never `tools/call`. */
const READ_ONLY = new Set([
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
]);

export class StreamableHttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: HttpTransportOptions;
  readonly #lifetime = new AbortController();
  readonly #open = new Map<RequestId, Exchange>();
  readonly #acknowledged = new Acknowledged();
  #sessionId: string | undefined;
  #protocolVersion: string | undefined;
  /** As it was sent, to open the session again. */
  #initialize: JSONRPCRequest | undefined;
  #sessionLost = false;
  #reopening: Promise<void> | undefined;
  #reopened = 0;
  #listening: AbortController | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#lifetime.signal.throwIfAborted();
  }

  setProtocolVersion(version: string): void {
    this.#protocolVersion = version;
  }

  /** A request: settles when its answer has been handed to `onmessage`. Anything else: when it is accepted. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (!isRequest(message)) return this.#notify(message);
    try {
      await this.#request(message);
    } catch (error) {
      throw this.#options.explain(error, message);
    }
  }

  async #request(message: JSONRPCRequest): Promise<void> {
    if (message.method === "initialize") this.#initialize = message;
    const exchange = newExchange((answer) => this.onmessage?.(answer));
    this.#lifetime.signal.throwIfAborted();
    this.#open.set(message.id, exchange);
    try {
      if (this.#sessionLost) await this.#reopen();
      await this.#exchange(message, exchange);
    } catch (error) {
      if (classifyFailure(error).kind !== "session-lost") throw error;
      this.#loseSession((error as AnswerError).sessionId);
      if (!READ_ONLY.has(message.method)) throw error;
      if (this.#sessionLost) await this.#reopen();
      await this.#exchange(message, exchange);
    } finally {
      this.#open.delete(message.id);
    }
  }

  async #notify(message: JSONRPCMessage): Promise<void> {
    if ("method" in message && message.method === "notifications/cancelled") {
      const { requestId } = (message.params ?? {}) as { requestId?: RequestId };
      if (requestId !== undefined) this.#open.get(requestId)?.controller.abort();
    }
    this.#lifetime.signal.throwIfAborted();
    await this.#acknowledged.send((signal) => this.#post(message, signal));
    if ("method" in message && message.method === "notifications/initialized") this.#listen();
  }

  /** One POST and its answer. Rejects with what happened, unexplained. */
  async #exchange(message: JSONRPCRequest, exchange: Exchange): Promise<void> {
    const { signal } = exchange.controller;
    signal.throwIfAborted();
    const response = await this.#post(message, signal);
    await receiveAnswer(response, exchange, {
      url: this.#options.url,
      maxBytes: this.#options.maxMessageBytes,
      deliver: (answer) => this.#deliver(answer),
      onEvent: (event) => this.#onEvent(event),
      resume: (lastId) => this.#get(lastId, signal),
      signal,
    });
  }

  /** Rejects unless the status is 2xx. */
  async #post(message: JSONRPCMessage, signal: AbortSignal): Promise<HttpResponse> {
    const { client, url } = this.#options;
    const sessionId = this.#sessionId;
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
      if (isRequest(message) && message.method === "initialize" && typeof given === "string") {
        this.#sessionId = given;
      }
      return response;
    }
    const { error, body } = await answerError(response, { url, sessionId });
    // Some servers put a proper answer under an error status.
    const [answer] = parseMessages(body) ?? [];
    const answers = isRequest(message) && answer && "error" in answer && answer.id === message.id;
    if (answers && classifyFailure(error).kind === "rejected") this.#deliver(answer);
    throw error;
  }

  #headers(own: Record<string, string>): Record<string, string> {
    return {
      ...this.#options.headers,
      ...own,
      ...(this.#sessionId === undefined ? {} : { "mcp-session-id": this.#sessionId }),
      ...(this.#protocolVersion === undefined ? {} : { "mcp-protocol-version": this.#protocolVersion }),
    };
  }

  #onEvent({ type, data }: ServerEvent): void {
    if (type !== "message" || data === "") return;
    const messages = parseMessages(data);
    if (!messages)
      this.#options.onNote(`sent an event that is no JSON-RPC message: ${data.slice(0, 16_384)}`);
    for (const message of messages ?? []) this.#deliver(message);
  }

  #deliver(message: JSONRPCMessage): void {
    const isAnswer = "result" in message || "error" in message;
    const exchange = isAnswer && message.id !== undefined ? this.#open.get(message.id) : undefined;
    if (!exchange) {
      this.onmessage?.(message);
      return;
    }
    exchange.answered = true;
    exchange.handOn(message);
    exchange.onAnswered();
  }

  /** A stream of events from the server, or undefined where it offers none. Rejects where it may offer one later. */
  async #get(lastId: string | undefined, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const { client, url } = this.#options;
    const sessionId = this.#sessionId;
    const resume: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
    const headers = this.#headers({ accept: "text/event-stream", ...resume });
    const response = await client.request({ method: "GET", url, headers, signal });
    if (response.status === 200 && mediaType(response.headers) === "text/event-stream") return response;
    const { error } = await answerError(response, { url, sessionId });
    const { kind } = classifyFailure(error);
    if (kind === "session-lost") this.#loseSession(sessionId);
    if (kind === "busy" && response.status !== 501) throw error;
    return undefined;
  }

  #listen(): void {
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    const signal = AbortSignal.any([this.#lifetime.signal, listening.signal]);
    void followNotifications({
      open: (lastId) => this.#get(lastId, signal),
      onEvent: (event) => this.#onEvent(event),
      onNote: this.#options.onNote,
      maxBytes: this.#options.maxMessageBytes,
      signal,
    });
  }

  #loseSession(sessionId: string | undefined): void {
    // Of several requests that learn it, later ones may find a new session already.
    if (this.#sessionLost || sessionId !== this.#sessionId) return;
    this.#sessionLost = true;
    this.#listening?.abort();
  }

  /** One attempt for all that wait. After a failure the next request tries again. */
  #reopen(): Promise<void> {
    this.#reopening ??= this.#openSession().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  async #openSession(): Promise<void> {
    const initialize = this.#initialize;
    if (!initialize) throw new BrokenAnswer();
    this.#sessionId = undefined;
    const id = `reopen-${++this.#reopened}`;
    let rejection: string | undefined;
    // The client has had its answer to `initialize`: this one is for the transport.
    const exchange = newExchange((answer) => {
      if ("error" in answer) rejection = answer.error.message;
    });
    this.#lifetime.signal.throwIfAborted();
    this.#open.set(id, exchange);
    const limit = setTimeout(() => exchange.controller.abort(), LIMITS.startupTimeoutMs);
    try {
      await this.#exchange({ ...initialize, id }, exchange);
    } finally {
      clearTimeout(limit);
      this.#open.delete(id);
    }
    if (rejection !== undefined) throw new NotSent(`it refused a new session: ${rejection}`);
    this.#sessionLost = false;
    this.#options.onNote("had lost the session; a new one is open");
    await this.#notify({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Ends all streams at once, then the session at the server, which may take `LIMITS.sessionEndMs`. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    this.#lifetime.abort();
    // Each by itself: on Node 22 signals derived from a long-lived one are never quite forgotten by it.
    for (const { controller } of this.#open.values()) controller.abort();
    this.#acknowledged.close();
    this.onclose?.();
    const { client, url } = this.#options;
    if (this.#sessionId !== undefined && !this.#sessionLost) {
      const signal = AbortSignal.timeout(LIMITS.sessionEndMs);
      // Servers may refuse it (405) or be gone: then there is nothing to end.
      await client.request({ method: "DELETE", url, headers: this.#headers({}), signal }).then(
        ({ body }) => body.destroy(),
        () => undefined,
      );
    }
    client.close();
  }
}
