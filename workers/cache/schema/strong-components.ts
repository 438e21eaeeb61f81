/**
 * Finds the groups of nodes of a graph that all lead to each other (strongly connected components). One pass of
 * Tarjan's algorithm, without recursion, since a server decides how deep the graph is. Pure.
 */

interface Visit<T extends object> {
  node: T;
  /** The nodes that this node leads to, and how many of them are done. */
  next: readonly T[];
  done: number;
  /** Position in the order of discovery. */
  index: number;
  /** Index of the earliest open node that this node leads to, as far as it is known. */
  lowest: number;
}

/**
 * Node -> number of its group, for every node that can be reached from `starts`. Two nodes have the same number exactly
 * if each leads to the other.
 */
export function strongComponents<T extends object>(
  starts: Iterable<T>,
  nextOf: (node: T) => readonly T[],
): Map<T, number> {
  const groups = new Map<T, number>();
  const visits = new Map<T, Visit<T>>();
  /** Discovered nodes whose group is not known yet. */
  const ungrouped: T[] = [];
  let groupCount = 0;

  const discover = (node: T): Visit<T> => {
    const visit = { node, next: nextOf(node), done: 0, index: visits.size, lowest: visits.size };
    visits.set(node, visit);
    ungrouped.push(node);
    return visit;
  };
  const close = ({ node, index, lowest }: Visit<T>): void => {
    if (lowest !== index) return;
    for (let member = ungrouped.pop(); member !== undefined; member = ungrouped.pop()) {
      groups.set(member, groupCount);
      if (member === node) break;
    }
    groupCount++;
  };

  for (const start of starts) {
    if (visits.has(start)) continue;
    const open = [discover(start)];
    for (let visit = open.at(-1); visit !== undefined; visit = open.at(-1)) {
      const next = visit.next[visit.done++];
      if (next === undefined) {
        open.pop();
        close(visit);
        const parent = open.at(-1);
        if (parent) parent.lowest = Math.min(parent.lowest, visit.lowest);
        continue;
      }
      const known = visits.get(next);
      if (!known) open.push(discover(next));
      else if (!groups.has(next)) visit.lowest = Math.min(visit.lowest, known.index);
    }
  }
  return groups;
}
