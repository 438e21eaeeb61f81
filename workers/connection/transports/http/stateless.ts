/**
 * Streamable HTTP of the stateless era (MCP 2026-07-28, basic/transports/streamable-http): one POST for each request, whose
 * answer comes in its response or not at all. No session, no stream beside the requests, nothing to resume. Giving a request
 * up closes its response, which is how the server learns of it; notifications are never sent.
 */
import type { JSONRPCMessage, JSONRPCRequest, Transport } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/incoming.ts";
import type { MessageStream } from "../../messages/receive.ts";
import { Noise } from "../../messages/too-large.ts";
import type { HttpResponse } from "../../web/client.ts";
import { handEvent } from "./events.ts";
import { answerError, OpenExchanges, receiveAnswer } from "./exchange.ts";
import { classifyFailure, NotSent } from "./failure.ts";
import type { HttpTransportOptions } from "./streamable.ts";

export interface StatelessOptions extends HttpTransportOptions {
  /** The headers that mirror a request. Undefined: its parameters are too long for headers. */
  headersOf: (request: JSONRPCRequest) => Record<string, string> | undefined;
  /** Whether a refusal is none of the server's answers to a request, but one of a server of another era. */
  isWrongEra: (error: unknown) => boolean;
}

/** Failures of an answer whose JSON-RPC error is the server's answer to the request. */
const ANSWERS = new Set(["rejected", "refuses-streamable"]);

export class StatelessHttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: StatelessOptions;
  readonly #open = new OpenExchanges((message) => this.onmessage?.(message));
  readonly #stream: MessageStream;
  #isClosed = false;

  constructor(options: StatelessOptions) {
    this.#options = options;
    this.#stream = {
      server: options.server,
      batches: () => false,
      asked: () => this.#open.asked(),
      isOver: () => this.#isClosed,
      hand: (message) => this.#open.deliver(message),
      noise: new Noise(options.onNote),
      onNote: options.onNote,
    };
  }

  async start(): Promise<void> {
    // Each request opens its own connection.
  }

  /** A request settles when its answer has been handed to `onmessage`. */
  async send(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    if (cancelled !== undefined) this.#open.cancel(cancelled);
    if (!isRequest(message)) return;
    try {
      await this.#exchange(message);
    } catch (error) {
      throw this.#options.explain(error, message);
    }
  }

  async #exchange(message: JSONRPCRequest): Promise<void> {
    if (this.#isClosed) throw new NotSent("its connection is closed");
    const { url, maxMessageBytes } = this.#options;
    const exchange = this.#open.open(message);
    const { signal } = exchange.controller;
    try {
      const response = await this.#post(message, signal);
      if (!response) return;
      await receiveAnswer(response, exchange, {
        url,
        maxBytes: maxMessageBytes,
        stream: this.#stream,
        onEvent: (event) => handEvent(event, this.#stream),
        signal,
      });
    } finally {
      this.#open.close(message.id);
    }
  }

  /** Undefined: the status refuses the request, and the server's error has been delivered. */
  async #post(message: JSONRPCRequest, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const { client, url, headers, headersOf } = this.#options;
    const mirrored = headersOf(message);
    if (!mirrored) throw new NotSent("the parameters that its headers must repeat are too long for headers");
    const response = await client.request({
      method: "POST",
      url,
      headers: {
        ...headers,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...mirrored,
      },
      body: JSON.stringify(message),
      signal,
    });
    if (response.status >= 200 && response.status < 300) return response;
    const { error } = await answerError(response, { url });
    if (!error.rpc || this.#options.isWrongEra(error) || !ANSWERS.has(classifyFailure(error).kind))
      throw error;
    this.#open.deliver({ jsonrpc: "2.0", id: message.id, error: error.rpc });
    return undefined;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#open.cancelAll();
    this.onclose?.();
    this.#options.client.close();
  }
}
