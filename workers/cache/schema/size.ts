/** How big a schema is, without recursion: its depth is what has to be bounded. Pure. */

export interface Size {
  /** Values: objects, lists and scalars. */
  nodes: number;
  /** Characters of keys and texts, and some for each other scalar. */
  chars: number;
}

/** Stands for the digits of a number, or for a word of JSON. */
export const SCALAR_CHARS = 8;

/** Of a JSON value. Stops soon after one of the limits is exceeded. */
export function sizeOf(value: unknown, limit: Size): Size {
  const open = [value];
  const size = { nodes: 0, chars: 0 };
  while (open.length > 0 && size.nodes <= limit.nodes && size.chars <= limit.chars) {
    const node = open.pop();
    size.nodes++;
    if (Array.isArray(node)) {
      for (const child of node) open.push(child);
    } else if (typeof node === "object" && node !== null) {
      for (const [key, child] of Object.entries(node)) {
        size.chars += key.length;
        open.push(child);
      }
    } else {
      size.chars += typeof node === "string" ? node.length : SCALAR_CHARS;
    }
  }
  return size;
}

export function isWithin(value: unknown, limit: Size): boolean {
  const { nodes, chars } = sizeOf(value, limit);
  return nodes <= limit.nodes && chars <= limit.chars;
}
