/**
 * Where the keys of a text stand, as a tree that is filled while the text is read. Each look-up takes as many steps
 * as the path has keys, however many keys the file has. Deep values have no place of their own: nobody tells a
 * mistake there. Pure.
 */

export interface KeyPlace<P> {
  /** Where the value stands, in whatever the format counts by. */
  place: P;
  keys?: Map<string, KeyPlace<P>>;
}

/** The longest path to a value that is ever told: `projects`, folder, `mcpServers`, server, `oauth`, key. */
export const PLACED_DEPTH = 8;

/** A key below `parent`. A key that is given twice: the last one counts, as in `JSON.parse`. */
export function addKey<P>(parent: KeyPlace<P>, key: string, place: P): KeyPlace<P> {
  const child: KeyPlace<P> = { place };
  parent.keys ??= new Map();
  parent.keys.set(key, child);
  return child;
}

/** The place of the value at `path`, or of the nearest one around it. */
export function placeAt<P>(root: KeyPlace<P>, path: readonly string[]): P {
  let at = root;
  for (const key of path) {
    const child = at.keys?.get(key);
    if (!child) break;
    at = child;
  }
  return at.place;
}
