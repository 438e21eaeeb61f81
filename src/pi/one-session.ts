/**
 * At most one session of this extension runs in a process. Pi can replace an instance without telling it
 * (several new sessions at once); its servers would then run on beside those of the next one. The slot is
 * global since a reload may load this module anew.
 */
const SLOT = Symbol.for("pi-mcp-threads:session");

type Stop = () => Promise<void>;
type Slot = { [SLOT]?: Stop };

/** Takes the place for a session that starts; the session that had it is stopped. */
export function takePlace(stop: Stop): void {
  const slot = globalThis as Slot;
  const before = slot[SLOT];
  slot[SLOT] = stop;
  // Its failure to stop cleanly is not the business of the session that follows.
  before?.().catch(() => undefined);
}

export function leavePlace(stop: Stop): void {
  const slot = globalThis as Slot;
  if (slot[SLOT] === stop) delete slot[SLOT];
}
