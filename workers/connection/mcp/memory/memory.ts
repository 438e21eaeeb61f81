/**
 * What is remembered of a server of the stateless era, and what happens if it no longer holds. Imports nothing of the SDK, so
 * that servers can load it at the start. Called by: mcp, servers.
 */
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";

/** The revision of the stateless era that this client speaks. */
export const MODERN_VERSION = "2026-07-28";

/**
 * A server was called by what an earlier session remembered, and is another one now. It refused the request unseen, or was
 * never reached: nothing has run, and the request may be sent once the era is known.
 */
export class MustNegotiate extends ThreadsError {
  constructor(server: string) {
    super("server_died", `${server} no longer speaks the revision of MCP that it spoke before.`, {
      remedy: "The next call connects again.",
      data: { server },
    });
    this.name = "MustNegotiate";
  }
}
