/**
 * Remembers over the workers of one session which servers are not to be connected by themselves. Owns what main sees
 * of a worker's servers while the worker runs; suspects.ts decides what that means once the worker has ended.
 */

import type { WorkerEvent } from "../shared/protocol/events.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import { createTalkMemory, talkRecord, weightOf } from "../shared/protocol/talk.ts";
import type { WorkerEnd } from "./keep-worker.ts";
import { type Death, suspectsOf } from "./suspects.ts";

export interface Suspicion {
  /** A worker starts: the memory for it to write into. */
  startWorker(): SharedArrayBuffer;
  see(event: WorkerEvent): void;
  /** The worker has ended. Answers the names of the servers that were at work. */
  blame(end: WorkerEnd): string[];
  /** What the next worker must know. */
  facts(): Pick<SessionFacts, "heldBack">;
}

export function createSuspicion(now: () => number = Date.now): Suspicion {
  /** Server -> why it is held back. */
  const heldBack = new Map<string, string>();
  /** Of the worker that runs. */
  let record = talkRecord(createTalkMemory());
  const servers = new Map<number, string>();
  const connecting = new Set<string>();
  let lastDeath: Death | undefined;

  const deathOf = ({ reason, outOfMemory }: WorkerEnd): Death => {
    const atMs = now();
    return {
      atMs,
      reason,
      outOfMemory,
      talking: servers.get(record.current[0] ?? 0),
      heard: [...servers].map(([slot, server]) => ({ server, bytes: weightOf(record, slot, atMs) })),
      connecting: [...connecting],
    };
  };

  return {
    startWorker: () => {
      const memory = createTalkMemory();
      record = talkRecord(memory);
      servers.clear();
      connecting.clear();
      return memory;
    },
    see: (event) => {
      if (event.type === "talker") servers.set(event.slot, event.server);
      if (event.type !== "server") return;
      const { name, state } = event.status;
      if (state === "connecting") connecting.add(name);
      else connecting.delete(name);
      // Somebody wanted it, and it went well.
      if (state === "connected") heldBack.delete(name);
    },
    blame: (end) => {
      const death = deathOf(end);
      const suspects = suspectsOf(death, lastDeath);
      lastDeath = death;
      for (const { server, why } of suspects) heldBack.set(server, why);
      return suspects.map(({ server }) => server);
    },
    facts: () =>
      heldBack.size === 0 ? {} : { heldBack: [...heldBack].map(([server, why]) => ({ server, why })) },
  };
}
