/**
 * Requests over Streamable HTTP that wait for their answers. Owns: which message answers which request, by whatever
 * stream the message comes, and giving requests up. Knows nothing of HTTP.
 */
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "../../mcp/wire/wire.ts";
import { isAnswer } from "../../messages/kinds.ts";

/** One open request. */
export interface Exchange {
  /** The answer has been handed on. */
  answered: boolean;
  /** Aborted when the client cancels the request, and when the transport closes. */
  readonly controller: AbortController;
  /** Called after the answer has been handed on. The reader of the answer's stream replaces it. */
  onAnswered: () => void;
}

interface OpenExchange extends Exchange {
  readonly method: string;
  readonly handOn: (answer: JSONRPCMessage) => void;
}

export interface OpenExchanges {
  /** `handOn` gets the answer; without it the answer goes where all messages go. */
  open(request: JSONRPCRequest, handOn?: (answer: JSONRPCMessage) => void): Exchange;
  /** The open requests: ids as texts, and their methods. */
  asked(): ReadonlyMap<string, string>;
  /** The request is over. A late answer is a message like any other. */
  close(id: RequestId): void;
  /** The client no longer wants the answer. Does nothing if the request is not open. */
  cancel(id: RequestId): void;
  /** Hands on a message of the server, an answer to the request that it belongs to. */
  deliver(message: JSONRPCMessage): void;
  cancelAll(): void;
}

/** `onMessage` gets every message that no request of ours takes for itself. */
export function createOpenExchanges(onMessage: (message: JSONRPCMessage) => void): OpenExchanges {
  const open = new Map<RequestId, OpenExchange>();
  return {
    open: ({ id, method }, handOn = onMessage) => {
      const exchange = {
        method,
        answered: false,
        controller: new AbortController(),
        handOn,
        onAnswered: () => undefined,
      };
      open.set(id, exchange);
      return exchange;
    },
    asked: () => new Map([...open].map(([id, { method }]) => [String(id), method])),
    close: (id) => void open.delete(id),
    cancel: (id) => open.get(id)?.controller.abort(),
    deliver: (message) => {
      const exchange = isAnswer(message) && message.id !== undefined ? open.get(message.id) : undefined;
      if (!exchange) {
        onMessage(message);
        return;
      }
      exchange.answered = true;
      exchange.handOn(message);
      exchange.onAnswered();
    },
    // One by one: Node 22 never quite forgets a signal that is derived from a signal with a long life.
    cancelAll: () => {
      for (const { controller } of open.values()) controller.abort();
    },
  };
}
