/** Writes down whose bytes are being looked at, where main finds it even when this thread never gets to say it. */

import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { TALK_SLOTS, talkRecord, weightOf } from "../../../src/shared/protocol/talk.ts";

export interface Talkers {
  /** To be told of each piece that came from the server, before anything is done with it. */
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
        // Whatever the bytes lead to at once, promises included, has run by then.
        setImmediate(clear);
      };
    },
  };
}
