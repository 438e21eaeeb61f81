/**
 * Runs a task that touches Pi outside a call of Pi's own, for example when the worker sends an event. Pi makes its
 * objects stale when it replaces a session, and every use of a stale object throws. Pi would end if a listener threw.
 */
export function guardStale(task: () => void, onStale: (error: unknown) => void): void {
  try {
    task();
  } catch (error) {
    onStale(error);
  }
}
