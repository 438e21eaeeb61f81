/**
 * Gathers the notices about servers that fail or need a sign-in at about the same time, as at the start of a session: one
 * notice for all of them. A server that recovers before its notice was shown has none.
 */
import { serverName } from "../report/server-name.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import type { Notice } from "./health-notices.ts";

/** A notice waits at most so long for those of other servers. */
export const GATHER_MS = 3_000;
const LINES = 10;
const LINE_CHARS = 300;

/** A notice and the server that it is about. */
export type ServerNotice = Notice & { server: string };

const START = "MCP server ";

/** One notice for each level: a single one as it is, several as one with a line for each server. */
export function joinNotices(pending: readonly ServerNotice[]): Notice[] {
  const join = (level: Notice["level"]): Notice[] => {
    const all = pending.filter((one) => one.level === level);
    const [first] = all;
    if (!first) return [];
    if (all.length === 1) return [{ level, text: first.text }];
    const shown = all.slice(0, LINES);
    const more = all.length - shown.length;
    if (level === "warning") {
      const names = [...shown.map(({ server }) => serverName(server)), ...(more > 0 ? [`${more} more`] : [])];
      return [
        { level, text: `${all.length} MCP servers need a sign-in: ${names.join(", ")}. /mcp auth signs in.` },
      ];
    }
    const lines = shown.map(({ text }) => oneLine(text.slice(START.length), LINE_CHARS));
    const end = more > 0 ? `and ${more} more. /mcp doctor says what to do.` : "/mcp doctor says what to do.";
    return [{ level, text: [`${all.length} MCP servers failed:`, ...lines, end].join("\n") }];
  };
  return [...join("error"), ...join("warning")];
}

export interface Gathering {
  /** `notice`: about this change of the server's status, if it needs one. `isBusy`: other servers may fail in a moment. */
  add(server: string, notice: Notice | undefined, isBusy: boolean): void;
}

/** `gathers`: false shows each notice at once. */
export function createGathering(
  show: (notice: Notice) => void,
  { gathers, waitMs = GATHER_MS }: { gathers: boolean; waitMs?: number },
): Gathering {
  const pending = new Map<string, ServerNotice>();
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const all = [...pending.values()];
    pending.clear();
    for (const notice of joinNotices(all)) show(notice);
  };
  return {
    add: (server, notice, isBusy) => {
      if (notice?.level === "info") {
        if (!pending.delete(server)) show(notice);
      } else if (notice) pending.set(server, { ...notice, server });
      if (pending.size === 0) return;
      if (!gathers || !isBusy) flush();
      else timer ??= setTimeout(flush, waitMs).unref();
    },
  };
}
