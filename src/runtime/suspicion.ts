/**
 * Remembers, across the workers of one session, which servers a worker must not connect unasked. Owns what main sees of
 * a worker's servers while the worker runs, and what that means when the worker has ended.
 */

import type { WorkerEvent } from "../shared/protocol/contract.ts";
import { createTalkMemory, talkRecord, weightOf } from "../shared/protocol/port.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import type { WorkerEnd } from "./keep-worker.ts";

/** What is known about a worker's end. */
export interface Death {
  atMs: number;
  /** In words for people, for example `exit code 7`. */
  reason: string;
  outOfMemory: boolean;
  /** The server whose message the worker was handling. */
  talking: string | undefined;
  /** How much each server has sent recently; older bytes count less (`TalkRecord`). */
  heard: readonly { server: string; bytes: number }[];
  connecting: readonly string[];
}

interface Suspect {
  server: string;
  /** A sentence without its full stop, for the user. */
  why: string;
}

const MINUTE_MS = 60_000;
/** A server that has sent less has not filled the memory. */
const FILLING_BYTES = 1024 * 1024;
const FILLING_SHARE = 0.5;

/** The server that has sent most fills the memory. The server that talks when the memory is full may have sent little. */
function fillerOf({ outOfMemory, heard }: Death): string | undefined {
  if (!outOfMemory) return undefined;
  const total = heard.reduce((sum, { bytes }) => sum + bytes, 0);
  return heard.find(({ bytes }) => bytes >= FILLING_BYTES && bytes > total * FILLING_SHARE)?.server;
}

/** `before`: the death before this one, if there was one. */
export function suspectsOf(death: Death, before: Death | undefined): Suspect[] {
  const { talking, connecting, reason } = death;
  const filler = fillerOf(death);
  if (filler !== undefined) {
    return [{ server: filler, why: "the connection worker ran out of memory while this server sent most" }];
  }
  if (talking !== undefined) {
    return [
      {
        server: talking,
        why: `the connection worker ended while it handled a message of this server (${reason})`,
      },
    ];
  }
  if (before === undefined || death.atMs - before.atMs > MINUTE_MS) return [];
  const both = connecting.filter((server) => before.connecting.includes(server));
  return (both.length > 0 ? both : connecting).map((server) => ({
    server,
    why: `the connection worker ended twice within a minute (${reason}), the last time while this server was being connected`,
  }));
}

export type Suspicion = ReturnType<typeof createSuspicion>;

export function createSuspicion(now: () => number = Date.now) {
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
    /** Called when a worker starts. Answers the memory that this worker writes into: a new one, if none is given. */
    startWorker: (memory = createTalkMemory()): SharedArrayBuffer => {
      record = talkRecord(memory);
      servers.clear();
      connecting.clear();
      return memory;
    },
    see: (event: WorkerEvent): void => {
      if (event.type === "talker") servers.set(event.slot, event.server);
      if (event.type !== "server") return;
      const { name, state } = event.status;
      if (state === "connecting") connecting.add(name);
      else connecting.delete(name);
      // A call or the user has connected the server, and the worker has survived that.
      if (state === "connected") heldBack.delete(name);
    },
    /** Called when the worker has ended. Answers the names of the servers that were probably at work. */
    blame: (end: WorkerEnd): string[] => {
      const death = deathOf(end);
      const suspects = suspectsOf(death, lastDeath);
      lastDeath = death;
      for (const { server, why } of suspects) heldBack.set(server, why);
      return suspects.map(({ server }) => server);
    },
    /** The facts for the next worker. */
    facts: (): Pick<SessionFacts, "heldBack"> =>
      heldBack.size === 0 ? {} : { heldBack: [...heldBack].map(([server, why]) => ({ server, why })) },
  };
}
