/**
 * Lets at most one long message be parsed in a turn of the event loop. Each may take more than a second, and between
 * two of them this thread has to answer the main thread, which would otherwise take the worker for hanging, and to
 * serve other servers.
 */
let isTaken = false;
const waiting: (() => void)[] = [];

function next(): void {
  const go = waiting.shift();
  if (!go) {
    isTaken = false;
    return;
  }
  setImmediate(next);
  go();
}

/** Undefined: the message may be parsed now. Otherwise the promise settles when it is the message's turn. */
export function longTurn(): Promise<void> | undefined {
  if (isTaken) return new Promise((resolve) => waiting.push(resolve));
  isTaken = true;
  setImmediate(next);
  return undefined;
}
