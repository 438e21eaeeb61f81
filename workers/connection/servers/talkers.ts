/**
 * Records which server's bytes this thread is reading, in shared memory: main can read the record even if the bytes make
 * this thread hang.
 */

import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { TALK_SLOTS, talkRecord, weightOf } from "../../../src/shared/protocol/port.ts";

export interface Talkers {
  /** Answers a function that must be called with the length of each piece from the server before the piece is read. */
  of(server: string): (bytes: number) => void;
}

export function createTalkers(memory: SharedArrayBuffer, emit: (event: WorkerEvent) => void): Talkers {
  const record = talkRecord(memory);
  const slots = new Map<string, number>();
  let isClearing = false;

  const slotOf = (server: string): number => {
    const known = slots.get(server);
    if (known !== undefined) return known;
    const slot = slots.size + 1 < TALK_SLOTS ? slots.size + 1 : 0;
    slots.set(server, slot);
    if (slot > 0) emit({ type: "talker", slot, server });
    return slot;
  };
  const clear = (): void => {
    isClearing = false;
    record.current[0] = 0;
  };

  return {
    of: (server) => {
      const slot = slotOf(server);
      return (bytes) => {
        const nowMs = Date.now();
        record.bytes[slot] = weightOf(record, slot, nowMs) + bytes;
        record.at[slot] = nowMs;
        record.current[0] = slot;
        if (isClearing) return;
        isClearing = true;
        // Everything that the bytes lead to at once, promises included, has run by then.
        setImmediate(clear);
      };
    },
  };
}
