/**
 * What the three transports over HTTP have in common: the stream of messages that the answers fill, a POST for each
 * message, the explanation of a request that failed, and the end. Implements the SDK's `Transport`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { JSONRPCMessage, JSONRPCRequest, RequestId, Transport } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/incoming.ts";
import type { MessageStream } from "../../messages/receive.ts";
import { Noise } from "../../messages/too-large.ts";
import type { HttpClient, HttpResponse } from "../../web/client.ts";
import { handEvent, type ServerEvent } from "./events.ts";
import { type Exchange, OpenExchanges, receiveAnswer } from "./exchange.ts";
import { classifyFailure, isPassing, retryDelay } from "./failure.ts";

export interface HttpTransportOptions {
  server: string;
  url: URL;
  headers: Record<string, string>;
  client: HttpClient;
  maxMessageBytes: number;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** The server's lists may have changed, and its word of that did not come or will not come. */
  onListChanged: () => void;
  /** The server has forgotten the session, and with it the requests that it sent there. */
  onSessionLost: () => void;
  /** Another session is open in place of the lost one. `result`: of its `initialize`, as the server sent it. */
  onReopened: (result: Record<string, unknown>) => void;
  /** Returns the error with which a failed request is rejected. */
  explain: (error: unknown, request: JSONRPCRequest) => unknown;
}

/** Requests without effect. `tools/call` must never be one of them: the call may have run. */
const READ_ONLY = new Set([
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/directory/read",
  "prompts/list",
  "prompts/get",
  "skills/list",
  "skills/get",
  "completion/complete",
]);

/** Whether a request may be sent once more: the server has forgotten the session meanwhile, or was too busy to answer. */
export const mayRepeat = (method: string): boolean => READ_ONLY.has(method);

export const ANY_ANSWER = { accept: "application/json, text/event-stream" };

export const isAccepted = ({ status }: HttpResponse): boolean => status >= 200 && status < 300;

export abstract class HttpTransport<O extends HttpTransportOptions = HttpTransportOptions>
  implements Transport
{
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  protected readonly options: O;
  protected readonly lifetime = new AbortController();
  protected readonly open = new OpenExchanges((message) => this.onmessage?.(message));
  protected readonly stream: MessageStream;
  #closing: Promise<void> | undefined;
  /** Requests that are sent once more after a while. */
  readonly #pauses = new Map<RequestId, AbortController>();

  constructor(options: O) {
    this.options = options;
    this.stream = {
      server: options.server,
      batches: () => false,
      asked: () => this.open.asked(),
      isOver: () => this.isClosed,
      hand: (message) => this.open.deliver(message),
      noise: new Noise(options.onNote),
      onNote: options.onNote,
    };
  }

  protected get isClosed(): boolean {
    return this.lifetime.signal.aborted;
  }

  async start(): Promise<void> {
    this.lifetime.signal.throwIfAborted();
  }

  /** Rejects with the error as it happened, not explained. */
  protected abstract request(message: JSONRPCRequest): Promise<void>;
  protected abstract notify(message: JSONRPCMessage): Promise<void>;
  /** Gives up all that is open. */
  protected abstract giveUp(): void;
  protected async endSession(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    if (!isRequest(message)) return this.#tell(message);
    for (let retry = 0; ; retry++) {
      try {
        return await this.request(message);
      } catch (error) {
        const failure = classifyFailure(error);
        const isWorthwhile = isPassing(failure) && mayRepeat(message.method);
        const waitMs = isWorthwhile ? retryDelay(failure, retry) : undefined;
        if (waitMs === undefined || !(await this.#pause(message.id, waitMs)))
          throw this.options.explain(error, message);
      }
    }
  }

  /** A request that waits to be repeated is not at the server: giving it up is told to nobody. */
  #tell(message: JSONRPCMessage): void | Promise<void> {
    const cancelled = cancelledRequest(message);
    const pause = cancelled === undefined ? undefined : this.#pauses.get(cancelled);
    return pause ? pause.abort() : this.notify(message);
  }

  /** Answers false if the request is given up meanwhile. */
  async #pause(id: RequestId, waitMs: number): Promise<boolean> {
    const pause = new AbortController();
    this.#pauses.set(id, pause);
    const signal = AbortSignal.any([pause.signal, this.lifetime.signal]);
    const waited = sleep(waitMs, true, { signal, ref: false }).catch(() => false);
    return waited.finally(() => this.#pauses.delete(id));
  }

  /** An answer of any status. */
  protected postTo(
    url: URL,
    message: JSONRPCMessage,
    own: Record<string, string>,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const headers = { ...this.options.headers, "content-type": "application/json", ...own };
    return this.options.client.request({
      method: "POST",
      url,
      headers,
      body: JSON.stringify(message),
      signal,
    });
  }

  /** `resume`: as `receiveAnswer` takes it. */
  protected receive(
    response: HttpResponse,
    exchange: Exchange,
    resume?: (lastId: string) => Promise<HttpResponse | undefined>,
  ): Promise<void> {
    return receiveAnswer(response, exchange, {
      url: this.options.url,
      maxBytes: this.options.maxMessageBytes,
      stream: this.stream,
      ...(resume && { resume }),
      signal: exchange.controller.signal,
    });
  }

  protected onEvent(event: ServerEvent): undefined | Promise<unknown> {
    return handEvent(event, this.stream);
  }

  /** Ends all streams at once, then the session at the server, which may take `LIMITS.sessionEndMs`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.lifetime.abort();
    this.giveUp();
    this.onclose?.();
    await this.endSession();
    this.options.client.close();
  }
}
