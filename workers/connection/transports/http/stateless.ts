/**
 * Streamable HTTP of the stateless era (MCP 2026-07-28, basic/transports/streamable-http): one POST for each request, whose
 * answer comes in its response or not at all. No session, no stream beside the requests, nothing to resume. Giving a request
 * up closes its response, which is how the server learns of it; notifications are never sent.
 */
import type { JSONRPCMessage, JSONRPCRequest } from "../../mcp/wire/wire.ts";
import { cancelledRequest } from "../../messages/incoming.ts";
import type { HttpResponse } from "../../web/client.ts";
import { answerError } from "./exchange.ts";
import { classifyFailure, NotSent } from "./failure.ts";
import { ANY_ANSWER, HttpTransport, type HttpTransportOptions, isAccepted } from "./transport.ts";

interface StatelessOptions extends HttpTransportOptions {
  /** The headers that mirror a request. Undefined: its parameters are too long for headers. */
  headersOf: (request: JSONRPCRequest) => Record<string, string> | undefined;
  /** Whether a refusal is none of the server's answers to a request, but one of a server of another era. */
  isWrongEra: (error: unknown) => boolean;
}

/** Failures of an answer whose JSON-RPC error is the server's answer to the request. */
const ANSWERS = new Set(["rejected", "refuses-streamable"]);

export class StatelessHttpTransport extends HttpTransport<StatelessOptions> {
  protected override async notify(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    if (cancelled !== undefined) this.open.cancel(cancelled);
  }

  protected override async request(message: JSONRPCRequest): Promise<void> {
    if (this.isClosed) throw new NotSent("its connection is closed");
    const exchange = this.open.open(message);
    try {
      const response = await this.#post(message, exchange.controller.signal);
      if (response) await this.receive(response, exchange);
    } finally {
      this.open.close(message.id);
    }
  }

  /** Undefined: the status refuses the request, and the server's error has been delivered. */
  async #post(message: JSONRPCRequest, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const { url, headersOf, isWrongEra } = this.options;
    const mirrored = headersOf(message);
    if (!mirrored) throw new NotSent("the parameters that its headers must repeat are too long for headers");
    const response = await this.postTo(url, message, { ...ANY_ANSWER, ...mirrored }, signal);
    if (isAccepted(response)) return response;
    const { error } = await answerError(response, { url });
    if (!error.rpc || isWrongEra(error) || !ANSWERS.has(classifyFailure(error).kind)) throw error;
    this.open.deliver({ jsonrpc: "2.0", id: message.id, error: error.rpc });
    return undefined;
  }

  protected override giveUp(): void {
    this.open.cancelAll();
  }
}
