/**
 * Memory that the connection worker and main share: which server's bytes the worker is looking at, and how much each
 * server has sent of late. It outlives the worker, so main can tell which server was talking when the worker died.
 */

/** Servers beyond that are not told apart from nobody: slot 0. */
export const TALK_SLOTS = 1_024;

/** What a server has sent counts half after this time. */
const HALF_LIFE_MS = 10_000;

export interface TalkRecord {
  /** At 0: the slot of the server that is being listened to, or 0. */
  current: Int32Array;
  /** By slot: bytes, weighted by their age. */
  bytes: Float64Array;
  /** By slot: when `bytes` was reckoned, in milliseconds since 1970. */
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

/** What the bytes of a slot weigh at a time. */
export const weightOf = ({ bytes, at }: TalkRecord, slot: number, nowMs: number): number =>
  (bytes[slot] ?? 0) * 0.5 ** (Math.max(0, nowMs - (at[slot] ?? 0)) / HALF_LIFE_MS);
