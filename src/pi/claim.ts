/**
 * At most one copy of this extension works in one Pi. The copies find each other on Pi's event bus: all extensions of
 * one load share the bus, and the bus drops the listeners of extensions that are replaced.
 */
import type { Pi } from "./api.ts";

const CHANNEL = "pi-mcp-threads:claim";

interface Claim {
  /** The first copy writes its location here. */
  owner?: string;
}

/** Makes the copy at `location` the owner. Answers the location of the copy that is the owner already, if any. */
export function claim(pi: Pi, location: string): string | undefined {
  const asked: Claim = {};
  pi.events.emit(CHANNEL, asked);
  // The same location means an older instance of this copy: several reloads at once leave more than one on a bus. The
  // older instance's session ends when this instance's session begins (one-session.ts).
  if (asked.owner !== undefined && asked.owner !== location) return asked.owner;
  pi.events.on(CHANNEL, (other) => {
    (other as Claim).owner ??= location;
  });
  return undefined;
}
