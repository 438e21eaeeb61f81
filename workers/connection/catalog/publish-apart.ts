/**
 * Publishes a catalog of which one server may be too much for the cache worker: its tools take for ever, more memory
 * than there is, or make it fail. Then each server is tried alone, and the others are published without those
 * that failed. Knows nothing of threads: a publication that fails answers undefined.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SessionLimits } from "../../../src/shared/protocol/session.ts";
import type { PublishResult, PublishTask } from "../../shared/tasks.ts";
import type { CachePool } from "./cache-worker.ts";

export interface PublishedApart {
  /** Undefined where nothing could be published, or nobody waits for it any longer. */
  result: PublishResult | undefined;
  /** Servers whose tools it does not hold. */
  leftOut: string[];
}

/** How long a publication may take. */
export interface PublishTimes {
  /** Of all servers. */
  wholeMs: number;
  /** Of one alone. */
  aloneMs: number;
  /** Of all servers, where none alone is to blame. */
  slowMs: number;
  /** The end of a session waits this long for one, whose snapshot the next start would have. */
  finishMs: number;
}

export const publishTimes = ({
  publishMs,
  publishAloneMs,
}: Pick<SessionLimits, "publishMs" | "publishAloneMs"> = LIMITS): PublishTimes => ({
  wholeMs: publishMs,
  aloneMs: publishAloneMs,
  slowMs: LIMITS.publishSlowMs,
  finishMs: LIMITS.publishFinishMs,
});

export interface PublishApartOptions {
  publish: CachePool["publish"];
  /** Nobody waits any longer. */
  signal: AbortSignal;
  times: PublishTimes;
}

/** The same servers, of which some have no tools. */
export const withoutToolsOf = (task: PublishTask, names: ReadonlySet<string>): PublishTask =>
  names.size === 0
    ? task
    : {
        ...task,
        servers: task.servers.map((server) => (names.has(server.name) ? { ...server, tools: [] } : server)),
      };

/** The largest servers, which have half of all tools together. */
function largestHalf({ servers }: PublishTask): string[] {
  const bySize = servers
    .filter(({ tools }) => tools.length > 0)
    .sort((a, b) => b.tools.length - a.tools.length);
  let left = bySize.reduce((sum, { tools }) => sum + tools.length, 0) / 2;
  return bySize
    .filter(({ tools }) => {
      const isAmong = left > 0;
      left -= tools.length;
      return isAmong;
    })
    .map(({ name }) => name);
}

export async function publishApart(
  task: PublishTask,
  { publish, signal, times }: PublishApartOptions,
): Promise<PublishedApart> {
  const nothing: PublishedApart = { result: undefined, leftOut: [] };
  const whole = await publish(task, { limitMs: times.wholeMs, signal });
  if (whole) return { result: whole, leftOut: [] };
  const { stored: _stored, ...unstored } = task;
  const alone = (servers: PublishTask["servers"]): Promise<PublishResult | undefined> =>
    publish({ ...unstored, servers }, { limitMs: times.aloneMs, signal });
  // Where not even this can be done, no server is to blame.
  if (signal.aborted || !(await alone([]))) return nothing;
  const leftOut = new Set<string>();
  for (const server of task.servers) {
    if (signal.aborted) return nothing;
    if (server.tools.length > 0 && !(await alone([server]))) leftOut.add(server.name);
  }
  // Each for itself can be done, all together take long: they get the time. What still fails is too much.
  for (;;) {
    if (signal.aborted) return nothing;
    const rest = withoutToolsOf(task, leftOut);
    const result = await publish(rest, { limitMs: times.slowMs, signal });
    if (result) return { result, leftOut: [...leftOut] };
    const more = largestHalf(rest);
    if (more.length === 0) return nothing;
    for (const name of more) leftOut.add(name);
  }
}
