/**
 * One open transport that several clients may use, one after the other: the era of a server is often known only when one
 * client has failed. Closing a client closes its view; the owner of the transport closes the transport.
 */
import { isRequest } from "../messages/kinds.ts";
import type { JSONRPCMessage, Transport, TransportSendOptions } from "./wire/wire.ts";

export class Wire {
  readonly #transport: Transport;
  #started: Promise<void> | undefined;
  /** Requests that were sent so far: the ids of the next client begin here, so that no late answer is taken for another. */
  requests = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** `onRequest`: gets each request of the server in the client's place. */
  view(onRequest?: () => void): WireView {
    return new WireView(this, this.#transport, onRequest);
  }

  start(): Promise<void> {
    this.#started ??= this.#transport.start();
    return this.#started;
  }
}

export class WireView implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  /** The version that the handshake agreed on. */
  protocolVersion: string | undefined;

  readonly #wire: Wire;
  readonly #transport: Transport;
  readonly #onRequest: (() => void) | undefined;
  #isClosed = false;

  constructor(wire: Wire, transport: Transport, onRequest: (() => void) | undefined) {
    this.#wire = wire;
    this.#transport = transport;
    this.#onRequest = onRequest;
  }

  async start(): Promise<void> {
    const transport = this.#transport;
    transport.onclose = () => this.#end();
    transport.onerror = (error) => this.onerror?.(error);
    transport.onmessage = (message, extra) => {
      if (this.#onRequest && isRequest(message)) this.#onRequest();
      else this.onmessage?.(message, extra);
    };
    await this.#wire.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#isClosed) return;
    if (isRequest(message)) this.#wire.requests++;
    await this.#transport.send(message, options);
  }

  setProtocolVersion(version: string): void {
    this.protocolVersion = version;
    this.#transport.setProtocolVersion?.(version);
  }

  async close(): Promise<void> {
    this.#end();
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}
