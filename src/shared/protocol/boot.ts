/** What main hands to a new connection worker as `workerData`. Types only. */
import type { Port } from "./turn-endpoint.ts";

export interface WorkerBoot {
  /** Requests and their answers, and `WorkerEvent`s to main. */
  port: Port;
  logFile: string;
  /** Where the person types commands: sentences name `/mcp` or `pi-mcp-threads`. */
  commands: "pi" | "shell";
  /** Memory shared with main: which server is talking (talk.ts). */
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
