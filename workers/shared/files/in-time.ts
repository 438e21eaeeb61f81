/**
 * Waits for a file system only so long. A path in a clone can lead to another machine, and a read that gets no answer cannot
 * be ended: it holds one of Node's four threads for files. So nobody looks at such a path again until the answer has come.
 */
import { settledWithin } from "../pace/abort.ts";

/** Paths that have not answered; each promise settles with the answer and never rejects. */
const silent = new Map<string, Promise<void>>();

/** Settles when the path answers; undefined: no answer is overdue. */
export const silenceOf = (path: string): Promise<void> | undefined => silent.get(path);

/** The result of `task`, which looks at this path, or that there is none within `ms` milliseconds. Rejects as the task does. */
export async function inTime<T>(
  path: string,
  task: () => Promise<T>,
  ms: number,
): Promise<{ value: T } | { silent: Promise<void> }> {
  const overdue = silent.get(path);
  if (overdue) return { silent: overdue };
  const running = task();
  if (await settledWithin(running, ms)) return { value: await running };
  const answered = running
    .then(
      () => undefined,
      () => undefined,
    )
    .then(() => void silent.delete(path));
  silent.set(path, answered);
  return { silent: answered };
}
