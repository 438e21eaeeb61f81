/**
 * Decides which servers the next worker must not connect unasked after a worker has died: those that were probably at
 * work. Pure. A wrong guess costs little, because a call or the user still connects the server.
 */

/** What is known about a worker's end. */
export interface Death {
  atMs: number;
  /** In words for people, for example `exit code 7`. */
  reason: string;
  outOfMemory: boolean;
  /** The server whose message the worker was handling. */
  talking: string | undefined;
  /** How much each server has sent recently; older bytes count less (talk.ts). */
  heard: readonly { server: string; bytes: number }[];
  connecting: readonly string[];
}

export interface Suspect {
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
