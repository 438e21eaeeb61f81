/**
 * The way of comlink's messages between main and the connection worker: what one side says in one turn of its loop goes
 * as one message, since each message wakes the other thread. Owns the form of such a message: a list of comlink's own
 * messages, in order.
 */
import type { Endpoint } from "comlink";

/** A `Worker`, or the worker's `parentPort`. */
export interface Port {
  postMessage(messages: unknown, transferred?: readonly ArrayBuffer[]): void;
  on(event: "message", listener: (messages: unknown) => void): unknown;
  off(event: "message", listener: (messages: unknown) => void): unknown;
}

type Listener = Parameters<Endpoint["addEventListener"]>[1];

/** What comlink answers a request with whose handler threw. */
const thrown = (id: unknown, error: unknown) => {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { id, type: "HANDLER", name: "throw", value: { isError: true, value: { name, message } } };
};

export function createTurnEndpoint(port: Port): Endpoint {
  const listeners = new Map<Listener, (messages: unknown) => void>();
  let waiting: { message: unknown; transferred: ArrayBuffer[] }[] = [];

  const receive = (messages: unknown): void => {
    for (const listener of listeners.values()) listener(messages);
  };
  /** A message that cannot be cloned fails its request, on whichever side that waits. */
  const sendAlone = ({ message, transferred }: (typeof waiting)[number]): void => {
    try {
      port.postMessage([message], transferred);
    } catch (error) {
      const { id, path } = message as { id?: unknown; path?: unknown };
      const failure = [thrown(id, error)];
      if (path === undefined) port.postMessage(failure);
      else receive(failure);
    }
  };
  const send = (): void => {
    const said = waiting;
    waiting = [];
    try {
      port.postMessage(
        said.map(({ message }) => message),
        said.flatMap(({ transferred }) => transferred),
      );
    } catch {
      // Nothing of it was sent: one of the messages cannot be cloned.
      for (const one of said) sendAlone(one);
    }
  };

  return {
    postMessage: (message: unknown, transferred: readonly unknown[] = []) => {
      if (waiting.length === 0) void Promise.resolve().then(send);
      waiting.push({ message, transferred: transferred as ArrayBuffer[] });
    },
    addEventListener: (_type, listener) => {
      const onMessages = (messages: unknown): void => {
        // After an update, the other side may be of a version that sends one message alone.
        for (const data of Array.isArray(messages) ? messages : [messages]) {
          const event = { data } as never;
          if ("handleEvent" in listener) listener.handleEvent(event);
          else listener(event);
        }
      };
      listeners.set(listener, onMessages);
      port.on("message", onMessages);
    },
    removeEventListener: (_type, listener) => {
      const onMessages = listeners.get(listener);
      listeners.delete(listener);
      if (onMessages) port.off("message", onMessages);
    },
  };
}
