/**
 * The legacy HTTP+SSE transport (MCP 2024-11-05, basic/transports): one GET whose events carry all messages of the
 * server, and POSTs to the address that the first event names. The stream is the session: when the stream ends, the
 * connection ends.
 */
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isAnswer } from "../../messages/incoming.ts";
import type { MessageStream } from "../../messages/receive.ts";
import { type HttpResponse, namedAddress } from "../../web/client.ts";
import { readEvents, type ServerEvent } from "./events.ts";
import { Acknowledged, AFTER_ANSWER_MS, answerError, discard } from "./exchange.ts";
import { BrokenAnswer, mediaType, NotSent } from "./failure.ts";
import { HttpTransport, type HttpTransportOptions, isAccepted } from "./transport.ts";

/**
 * Limit for requests whose POST has not ended. Some servers end a POST with the answer, so it lasts as long as the
 * call.
 */
const MOST_REQUESTS = 1_000;

export class LegacySseTransport extends HttpTransport {
  /** Requests whose POST has not ended. */
  readonly #requests = new Map<RequestId, AbortController>();
  readonly #acknowledged = new Acknowledged();
  /** Requests without an answer: ids as texts, and their methods. */
  readonly #asked = new Map<string, string>();
  #endpoint: URL | undefined;
  #protocolVersion: string | undefined;
  #failure: unknown;

  constructor(options: HttpTransportOptions) {
    super(options);
    Object.assign(this.stream, {
      asked: () => this.#asked,
      hand: (message: JSONRPCMessage) => this.#onMessage(message),
    } satisfies Partial<MessageStream>);
  }

  /** Why the stream ended; undefined if this side ended it. */
  get failure(): unknown {
    return this.#failure;
  }

  setProtocolVersion(version: string): void {
    this.#protocolVersion = version;
  }

  /** Settles when the server has named the address for messages. `close` ends the attempt. */
  override async start(): Promise<void> {
    const { client, url } = this.options;
    const headers = { ...this.options.headers, accept: "text/event-stream" };
    const response = await client.request({ method: "GET", url, headers, signal: this.lifetime.signal });
    if (response.status !== 200 || mediaType(response.headers) !== "text/event-stream") {
      throw (await answerError(response, { url })).error;
    }
    await new Promise<void>((resolve, reject) => {
      void this.#read(response, resolve).then((failure) => {
        if (!this.isClosed) this.#failure = failure;
        reject(failure);
        void this.close();
      });
    });
  }

  /** Settles with the reason for the end of the stream. */
  async #read({ body }: HttpResponse, onReady: () => void): Promise<unknown> {
    try {
      await readEvents(body, {
        maxBytes: this.options.maxMessageBytes,
        noise: this.stream.noise,
        onEvent: (event) => {
          if (event.type === "endpoint") return this.#setEndpoint(event, onReady);
          return this.onEvent(event);
        },
      });
      return new BrokenAnswer();
    } catch (error) {
      return error;
    }
  }

  /** Throws if messages, and the credentials with them, would go to another server. */
  #setEndpoint({ data }: ServerEvent, onReady: () => void): undefined {
    if (this.#endpoint) return;
    const { url } = this.options;
    const endpoint = namedAddress(data.toString("utf8"), url);
    if (endpoint?.origin !== url.origin)
      throw new Error("it names an address for messages at another server");
    endpoint.username = url.username;
    endpoint.password = url.password;
    this.#endpoint = endpoint;
    onReady();
  }

  #onMessage(message: JSONRPCMessage): void {
    if (isAnswer(message)) this.#onAnswer(message.id);
    this.onmessage?.(message);
  }

  /** After the answer the POST of the request is no longer needed. */
  #onAnswer(id: RequestId | undefined): void {
    this.#asked.delete(String(id));
    const controller = id === undefined ? undefined : this.#requests.get(id);
    if (controller) setTimeout(() => controller.abort(), AFTER_ANSWER_MS).unref();
  }

  /** Settles when the server has accepted the message. */
  protected override async notify(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    if (cancelled !== undefined) {
      this.#requests.get(cancelled)?.abort();
      this.#asked.delete(String(cancelled));
    }
    await this.#acknowledged.send((signal) => this.#post(message, signal));
  }

  protected override async request(message: JSONRPCRequest): Promise<void> {
    if (this.#requests.size >= MOST_REQUESTS)
      throw new NotSent(`it has not taken ${MOST_REQUESTS} requests yet`);
    const controller = new AbortController();
    this.#requests.set(message.id, controller);
    this.#asked.set(String(message.id), message.method);
    const end = (): void => void this.#requests.delete(message.id);
    try {
      const { body } = await this.#post(message, controller.signal);
      void discard(body).then(end);
    } catch (error) {
      end();
      this.#asked.delete(String(message.id));
      throw error;
    }
  }

  /** Rejects unless the status is 2xx. */
  async #post(message: JSONRPCMessage, signal: AbortSignal): Promise<HttpResponse> {
    if (!this.#endpoint || this.isClosed) throw this.#failure ?? new BrokenAnswer();
    const version = this.#protocolVersion;
    const own: Record<string, string> = version === undefined ? {} : { "mcp-protocol-version": version };
    const response = await this.postTo(this.#endpoint, message, own, signal);
    if (isAccepted(response)) return response;
    throw (await answerError(response, { url: this.#endpoint })).error;
  }

  protected override giveUp(): void {
    for (const controller of this.#requests.values()) controller.abort();
    this.#acknowledged.close();
  }
}
