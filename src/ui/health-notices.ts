/** One notice when a server fails, one when it works again, none while all is well. */
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
  /** What to say about this change of a server's status, if anything. */
  onStatus(status: ServerStatus): Notice | undefined;
}

export function createHealthNotices(): HealthNotices {
  /** Servers whose failure was told, with its code. */
  const told = new Map<string, string>();
  return {
    onStatus({ name, state, error }) {
      if (state === "connected") {
        return told.delete(name)
          ? { level: "info", text: `MCP server ${serverName(name)} works again.` }
          : undefined;
      }
      if (state !== "failed" && state !== "needs-auth") return undefined;
      // A server's own words can be long; the remedy behind them is still shown.
      const text = error
        ? describeErrorOf(name, { ...error, message: cut(error.message, LIMITS.errorTextChars) })
        : state;
      // A keep-alive server that keeps failing for the same reason is told of once.
      if (told.get(name) === (error?.code ?? state)) return undefined;
      told.set(name, error?.code ?? state);
      return { level: "error", text: `MCP server ${serverName(name)}: ${text}` };
    },
  };
}
