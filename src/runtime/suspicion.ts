/**
 * Remembers, across the workers of one session, which servers a worker must not connect unasked. Owns what main sees of
 * a worker's servers while the worker runs; suspects.ts decides what that means when the worker has ended.
 */

import type { WorkerEvent } from "../shared/protocol/events.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import { createTalkMemory, talkRecord, weightOf } from "../shared/protocol/talk.ts";
import type { WorkerEnd } from "./keep-worker.ts";
import { type Death, suspectsOf } from "./suspects.ts";

export interface Suspicion {
  /** Called when a worker starts. Answers the memory that this worker writes into: a new one, if none is given. */
  startWorker(memory?: SharedArrayBuffer): SharedArrayBuffer;
  see(event: WorkerEvent): void;
  /** Called when the worker has ended. Answers the names of the servers that were probably at work. */
  blame(end: WorkerEnd): string[];
  /** The facts for the next worker. */
  facts(): Pick<SessionFacts, "heldBack">;
}

export function createSuspicion(now: () => number = Date.now): Suspicion {
  /** Name of a server -> why the server is held back. */
  const heldBack = new Map<string, string>();
  /** What the running worker writes. */
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
    startWorker: (memory = createTalkMemory()) => {
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
      // A call or the user has connected the server, and the worker has survived that.
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
