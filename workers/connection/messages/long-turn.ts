/**
 * Lets at most one long message be parsed in a turn of the event loop: each may take more than a second, and between
 * two of them this thread has to answer main, which otherwise takes it for hanging, and to serve other servers.
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

/** Undefined: now. Else it settles when it is this message's turn. */
export function longTurn(): Promise<void> | undefined {
  if (isTaken) return new Promise((resolve) => waiting.push(resolve));
  isTaken = true;
  setImmediate(next);
  return undefined;
}
