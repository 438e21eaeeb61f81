/** One notice when a server fails, and one when it works again. */
import { serverName } from "../report/server-name.ts";
import { describeErrorOf } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import { cut } from "../shared/text/unprintable.ts";

export interface Notice {
  level: "info" | "error";
  text: string;
}

export interface HealthNotices {
  /** The notice about this change of a server's status; undefined if it needs none. */
  onStatus(status: ServerStatus): Notice | undefined;
}

export function createHealthNotices(): HealthNotices {
  /** Name of a server -> code of its failure that the user has read. */
  const reported = new Map<string, string>();
  return {
    onStatus({ name, state, error }) {
      if (state === "connected") {
        return reported.delete(name)
          ? { level: "info", text: `MCP server ${serverName(name)} works again.` }
          : undefined;
      }
      if (state !== "failed" && state !== "needs-auth") return undefined;
      // A server's own words can be long, and the remedy after them must stay visible.
      const text = error
        ? describeErrorOf(name, { ...error, message: cut(error.message, LIMITS.errorTextChars) })
        : state;
      // A keep-alive server may fail again and again for the same reason: one notice.
      if (reported.get(name) === (error?.code ?? state)) return undefined;
      reported.set(name, error?.code ?? state);
      return { level: "error", text: `MCP server ${serverName(name)}: ${text}` };
    },
  };
}
