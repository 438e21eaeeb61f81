/** A short, stable hash of a text, for names and tables. Not for security. Pure. */

/** FNV-1a over UTF-16 code units: an unsigned number of 32 bits. */
export function fnv1a(text: string, seed = 0x811c_9dc5): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return hash >>> 0;
}
