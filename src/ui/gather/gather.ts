/**
 * Gathers the notices about servers that fail or need a sign-in at about the same time, as at the start of a session: one
 * notice for all of them. A server that recovers before its notice was shown has none. Must not: decide which change of a
 * server needs a notice (health-notices.ts). Called by: session/events.ts.
 */
import type { Notice } from "../health-notices.ts";
import type { ServerNotice } from "./run.ts";

/** A notice waits at most so long for those of other servers. */
export const GATHER_MS = 3_000;

export interface Gathering {
  /** `notice`: about this change of the server's status, if it needs one. `isBusy`: other servers may fail in a moment. */
  add(server: string, notice: Notice | undefined, isBusy: boolean): void;
}

/** `gathers`: false shows each notice at once. */
export function createGathering(show: (notice: Notice) => void, gathers: boolean): Gathering {
  const pending = new Map<string, ServerNotice>();
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const all = [...pending.values()];
    pending.clear();
    if (all.length === 1) for (const notice of all) show(notice);
    else void import("./run.ts").then(({ joinNotices }) => joinNotices(all).forEach(show));
  };
  return {
    add: (server, notice, isBusy) => {
      if (notice?.level === "info") {
        if (!pending.delete(server)) show(notice);
      } else if (notice) pending.set(server, { ...notice, server });
      if (pending.size === 0) return;
      if (!gathers || !isBusy) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
  };
}
