/**
 * At most one copy of this extension works in a Pi. Copies meet on Pi's event bus, which all extensions
 * of one load share and which forgets its listeners when they are replaced.
 */
import type { Pi } from "./api.ts";

const CHANNEL = "pi-mcp-threads:claim";

interface Claim {
  /** Set by the copy that is already there: where it was loaded from. */
  owner?: string;
}

/** Claims the place for the copy at `location`. Answers the location of the copy that has it, if any. */
export function claim(pi: Pi, location: string): string | undefined {
  const asked: Claim = {};
  pi.events.emit(CHANNEL, asked);
  // The same file is the instance that this one replaces: several reloads at once leave more than one on a
  // bus. Its session ends when this one's begins.
  if (asked.owner !== undefined && asked.owner !== location) return asked.owner;
  pi.events.on(CHANNEL, (other) => {
    (other as Claim).owner ??= location;
  });
  return undefined;
}
