/** The error for a name that no server has: the server may not run, was removed, or is unknown. Pure. */

import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { advice } from "../../shared/commands.ts";
import { notTrusted } from "./errors.ts";

export interface KnownNames {
  /** Names of the servers that exist. */
  known: readonly string[];
  /** Servers of the project that may not run -> the reason, worded to follow a colon. */
  withheld: ReadonlyMap<string, string>;
  /** Servers that an edit removed in this session. */
  removed: ReadonlySet<string>;
}

/** `server_not_trusted`, `server_removed` or `unknown_server`. */
export function noServer(name: string, { known, withheld, removed }: KnownNames): ThreadsError {
  const reason = withheld.get(name);
  if (reason !== undefined) return notTrusted(name, reason);
  if (removed.has(name)) {
    return new ThreadsError("server_removed", `The server ${name} was removed from the configuration.`, {
      remedy: advice("search"),
      data: { server: name, known: [...known] },
    });
  }
  return new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
    remedy: advice("lists"),
    data: { known: [...known] },
  });
}
