/**
 * The legacy HTTP+SSE transport (MCP 2024-11-05, basic/transports): one GET whose events carry everything the
 * server says, POSTs to the address that its first event names. The stream is the session: when it ends, so does
 * the connection.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { answerError, discard } from "./http-answer.ts";
import type { HttpResponse } from "./http-client.ts";
import { BrokenAnswer, mediaType } from "./http-failure.ts";
import { isRequest, parseMessages } from "./http-messages.ts";
import type { HttpTransportOptions } from "./http-streamable.ts";
import { readEvents, type ServerEvent } from "./sse-reader.ts";

export class LegacySseTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: HttpTransportOptions;
  readonly #lifetime = new AbortController();
  #endpoint: URL | undefined;
  #protocolVersion: string | undefined;
  #failure: unknown;
  #closed = false;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
  }

  /** Why the stream ended, where it was not ended by us. */
  get failure(): unknown {
    return this.#failure;
  }

  setProtocolVersion(version: string): void {
    this.#protocolVersion = version;
  }

  /** Settles when the server has named the address for messages. `close` ends the attempt. */
  async start(): Promise<void> {
    const { client, url } = this.#options;
    const response = await client.request({
      method: "GET",
      url,
      headers: { ...this.#options.headers, accept: "text/event-stream" },
      signal: this.#lifetime.signal,
    });
    if (response.status !== 200 || mediaType(response.headers) !== "text/event-stream") {
      throw (await answerError(response, { url })).error;
    }
    await new Promise<void>((resolve, reject) => {
      void this.#read(response, resolve).then((failure) => {
        if (!this.#closed) this.#failure = failure;
        reject(failure);
        void this.close();
      });
    });
  }

  /** Answers why the stream ended. */
  async #read({ body }: HttpResponse, onReady: () => void): Promise<unknown> {
    try {
      await readEvents(body, {
        maxBytes: this.#options.maxMessageBytes,
        onEvent: (event) => {
          if (event.type === "endpoint") this.#setEndpoint(event, onReady);
          else if (event.type === "message") this.#onMessage(event);
        },
      });
      return new BrokenAnswer();
    } catch (error) {
      return error;
    }
  }

  /** Throws where messages, and the credentials with them, would go to another server. */
  #setEndpoint({ data }: ServerEvent, onReady: () => void): void {
    if (this.#endpoint) return;
    const { url } = this.#options;
    const endpoint = URL.canParse(data, url.href) ? new URL(data, url.href) : undefined;
    if (endpoint?.origin !== url.origin)
      throw new Error("it names an address for messages at another server");
    endpoint.username = url.username;
    endpoint.password = url.password;
    this.#endpoint = endpoint;
    onReady();
  }

  #onMessage({ data }: ServerEvent): void {
    const messages = parseMessages(data);
    if (!messages)
      this.#options.onNote(`sent an event that is no JSON-RPC message: ${data.slice(0, 16_384)}`);
    for (const message of messages ?? []) this.onmessage?.(message);
  }

  /** Settles when the server has taken the message. */
  async send(message: JSONRPCMessage): Promise<void> {
    try {
      await this.#post(message);
    } catch (error) {
      throw isRequest(message) ? this.#options.explain(error, message) : error;
    }
  }

  async #post(message: JSONRPCMessage): Promise<void> {
    if (!this.#endpoint || this.#closed) throw this.#failure ?? new BrokenAnswer();
    const version = this.#protocolVersion;
    const response = await this.#options.client.request({
      method: "POST",
      url: this.#endpoint,
      headers: {
        ...this.#options.headers,
        "content-type": "application/json",
        ...(version === undefined ? {} : { "mcp-protocol-version": version }),
      },
      body: JSON.stringify(message),
      signal: this.#lifetime.signal,
    });
    if (response.status < 200 || response.status >= 300) {
      throw (await answerError(response, { url: this.#endpoint })).error;
    }
    discard(response.body);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#lifetime.abort();
    this.#options.client.close();
    this.onclose?.();
  }
}
