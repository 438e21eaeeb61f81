/**
 * At most one session of this extension runs in a process. Pi can replace an instance without telling it
 * (several new sessions at once), and the servers of both would run side by side. The slot is global because a reload
 * may load this module anew.
 */
const SLOT = Symbol.for("pi-mcp-threads:session");

type Stop = () => Promise<void>;
type Slot = { [SLOT]?: Stop };

/** Called by a session that starts: stops the session that was the only one until now. */
export function becomeOnlySession(stop: Stop): void {
  const slot = globalThis as Slot;
  const before = slot[SLOT];
  slot[SLOT] = stop;
  // A session that fails to stop cleanly does not concern the session that follows.
  before?.().catch(() => undefined);
}

/** Called by a session that ends. Does nothing if another session has become the only one. */
export function leaveOnlySession(stop: Stop): void {
  const slot = globalThis as Slot;
  if (slot[SLOT] === stop) delete slot[SLOT];
}
