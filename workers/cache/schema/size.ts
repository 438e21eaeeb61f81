/** Measures a schema without recursion, since its depth may be what is too large. Pure. */

export interface Size {
  /** Values: objects, lists and scalars. */
  nodes: number;
  /** Characters of keys and texts, and `SCALAR_CHARS` for each other scalar. */
  chars: number;
}

/** Stands for the digits of a number, or for a word of JSON. */
export const SCALAR_CHARS = 8;

/** The size of a JSON value. The count stops soon after it exceeds one of the limits. */
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
