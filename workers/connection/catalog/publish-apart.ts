/**
 * Publishes a catalog although one server may be too much for the cache worker, because its tools take for ever, need
 * more memory than there is, or make the worker fail. Then each server is tried alone, and the catalog is published
 * without the tools of those that failed. Knows nothing of threads: a publication that fails answers undefined.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SessionLimits } from "../../../src/shared/protocol/session.ts";
import type { PublishResult, PublishTask } from "../../shared/tasks.ts";
import type { CachePool } from "./cache-worker.ts";

export interface PublishedApart {
  /** Undefined if nothing could be published, or nobody waits any longer. */
  result: PublishResult | undefined;
  /** Servers whose tools the published catalog lacks. */
  leftOut: string[];
}

/** How long a publication may take, in milliseconds. */
export interface PublishTimes {
  /** For all servers together. */
  wholeMs: number;
  /** For one server alone. */
  aloneMs: number;
  /** For all servers together, if each alone can be published. */
  slowMs: number;
  /** The end of a session waits this long for a publication, because the next start shows its snapshot. */
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
  /** Fires when nobody waits any longer. */
  signal: AbortSignal;
  times: PublishTimes;
}

/** The same task, in which the named servers have no tools. */
export const withoutToolsOf = (task: PublishTask, names: ReadonlySet<string>): PublishTask =>
  names.size === 0
    ? task
    : {
        ...task,
        servers: task.servers.map((server) => (names.has(server.name) ? { ...server, tools: [] } : server)),
      };

/** Names of the largest servers that together have at least half of all tools. */
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
  // If a catalog without any server fails too, no server is to blame.
  if (signal.aborted || !(await alone([]))) return nothing;
  const leftOut = new Set<string>();
  for (const server of task.servers) {
    if (signal.aborted) return nothing;
    if (server.tools.length > 0 && !(await alone([server]))) leftOut.add(server.name);
  }
  // Each server alone can be published, and all together take long, so they get the time. If they still fail, the
  // largest servers are left out.
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
