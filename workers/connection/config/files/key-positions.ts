/**
 * The positions of the keys of a text, as a tree that is filled while the text is read. A look-up takes one step for
 * each key of the path, however many keys the file has. Values below `POSITION_DEPTH` have no position of their own,
 * because no mistake is reported there. Pure.
 */

export interface KeyNode<P> {
  /** The position of the value, in whatever the format counts by. */
  position: P;
  keys?: Map<string, KeyNode<P>>;
}

/** The longest path to a value that is ever reported: `projects`, folder, `mcpServers`, server, `oauth`, key. */
export const POSITION_DEPTH = 8;

/** Adds a key below `parent`. If a key is given twice, the last one counts, as in `JSON.parse`. */
export function addKey<P>(parent: KeyNode<P>, key: string, position: P): KeyNode<P> {
  const child: KeyNode<P> = { position };
  parent.keys ??= new Map();
  parent.keys.set(key, child);
  return child;
}

/** The position of the value at `path`, or of the nearest value around it. */
export function positionAt<P>(root: KeyNode<P>, path: readonly string[]): P {
  let at = root;
  for (const key of path) {
    const child = at.keys?.get(key);
    if (!child) break;
    at = child;
  }
  return at.position;
}
