/**
 * The one way of messages between main and the connection worker: comlink's own, and the worker's events among them, in
 * the order in which they were said. What one side says to comlink in one turn of its loop goes as one message, since each
 * message wakes the other thread; an event goes at once, behind what was said before it. Owns the form of a message: a
 * list of comlink's messages, or `{ event }`; also what a new worker gets, and the memory that tells which server talks.
 */
import type { Endpoint } from "comlink";
import type { WorkerEvent } from "./contract.ts";

/** A `MessagePort`, without naming Node or the DOM. */
export interface Port {
  postMessage(message: unknown, transferred?: readonly ArrayBuffer[]): void;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

interface TurnEndpoint extends Endpoint {
  /** Sends an event. */
  tell(event: WorkerEvent, transferred?: readonly ArrayBuffer[]): void;
  /** Handles a message that was taken from the port by hand. */
  receive(message: unknown): void;
}

type Listener = Parameters<Endpoint["addEventListener"]>[1];

/** What comlink answers a request with whose handler threw. */
const thrown = (id: unknown, error: unknown) => {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { id, type: "HANDLER", name: "throw", value: { isError: true, value: { name, message } } };
};

/** The event of a message, if it is one. */
export const eventOf = (message: unknown): WorkerEvent | undefined =>
  Array.isArray(message) ? undefined : (message as { event: WorkerEvent }).event;

/** `atTurnsEnd`: when a turn ends. The default is soon: after what runs now, and what waits for nothing but that. */
export function createTurnEndpoint(
  port: Port,
  onEvent?: (event: WorkerEvent) => void,
  atTurnsEnd: (send: () => void) => unknown = (send) => Promise.resolve().then(send),
): TurnEndpoint {
  const listeners = new Set<Listener>();
  let waiting: { message: unknown; transferred: ArrayBuffer[] }[] = [];

  const receive = (message: unknown): void => {
    const event = eventOf(message);
    if (event) onEvent?.(event);
    else
      for (const data of message as unknown[]) {
        for (const listener of listeners) {
          if ("handleEvent" in listener) listener.handleEvent({ data } as never);
          else listener({ data } as never);
        }
      }
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
    if (said.length === 0) return;
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
  port.on("message", receive);

  return {
    postMessage: (message: unknown, transferred: readonly unknown[] = []) => {
      if (waiting.length === 0) atTurnsEnd(send);
      waiting.push({ message, transferred: transferred as ArrayBuffer[] });
    },
    tell: (event, transferred) => {
      send();
      port.postMessage({ event }, transferred);
    },
    receive,
    addEventListener: (_type, listener) => void listeners.add(listener),
    removeEventListener: (_type, listener) => void listeners.delete(listener),
  };
}

export interface WorkerBoot {
  /** Main's version of this package. */
  version: string;
  /** Requests and their answers, and `WorkerEvent`s to main. */
  port: Port;
  logFile: string;
  /** Where the person types commands: sentences name `/mcp` or `pi-mcp-threads`. */
  commands: "pi" | "shell";
  /** Memory shared with main: which server is talking (`TalkRecord`). */
  talk: SharedArrayBuffer;
  /** Folder of Node's compile cache, if the worker's environment names it only for the worker itself. */
  compileCache: string | undefined;
}

/** Number of slots. Slot 0 stands for no server, and for the servers beyond the last slot. */
export const TALK_SLOTS = 1_024;

/** Bytes count half after this time. */
const HALF_LIFE_MS = 10_000;

interface TalkRecord {
  /** Element 0: the slot of the server whose bytes are being read, or 0. */
  current: Int32Array;
  /** By slot: bytes that the server sent, weighted by their age. */
  bytes: Float64Array;
  /** By slot: time of the last change of `bytes`, in milliseconds since 1970. */
  at: Float64Array;
}

const HEAD_BYTES = 8;

export const createTalkMemory = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEAD_BYTES + 2 * TALK_SLOTS * Float64Array.BYTES_PER_ELEMENT);

export function talkRecord(memory: SharedArrayBuffer): TalkRecord {
  const half = TALK_SLOTS * Float64Array.BYTES_PER_ELEMENT;
  return {
    current: new Int32Array(memory, 0, 1),
    bytes: new Float64Array(memory, HEAD_BYTES, TALK_SLOTS),
    at: new Float64Array(memory, HEAD_BYTES + half, TALK_SLOTS),
  };
}

/** The weighted bytes of a slot at a time in milliseconds since 1970. */
export const weightOf = ({ bytes, at }: TalkRecord, slot: number, nowMs: number): number =>
  (bytes[slot] ?? 0) * 0.5 ** (Math.max(0, nowMs - (at[slot] ?? 0)) / HALF_LIFE_MS);
