/**
 * Base64 as servers really send it: padded or not, with line breaks, or in the URL alphabet. Also finds the type of an
 * image from its first bytes, because a provider refuses the whole request if type and bytes differ. Pure.
 */

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;
const ANY_ALPHABET = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** The same bytes in the standard alphabet (RFC 4648, section 4), padded. Undefined if `data` is not base64. */
export function normalizeBase64(data: string): string | undefined {
  if (STANDARD.test(data) && data.length % 4 === 0) return data;
  const dense = data.replace(/\s+/g, "");
  if (!ANY_ALPHABET.test(dense)) return undefined;
  const digits = dense.replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/");
  // One digit after a group of four holds 6 bits, which is less than a byte.
  return digits.length % 4 === 1 ? undefined : digits.padEnd(Math.ceil(digits.length / 4) * 4, "=");
}

/** Number of bytes in normalised base64. */
export function decodedBytes(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return (data.length / 4) * 3 - padding;
}

const SIGNATURES: readonly { type: string; matches: (head: string) => boolean }[] = [
  { type: "image/png", matches: (head) => head.startsWith("\x89PNG\r\n\x1a\n") },
  { type: "image/jpeg", matches: (head) => head.startsWith("\xff\xd8\xff") },
  { type: "image/gif", matches: (head) => /^GIF8[79]a/.test(head) },
  { type: "image/webp", matches: (head) => head.startsWith("RIFF") && head.slice(8, 12) === "WEBP" },
];

/** The type of the image in these bytes; undefined for a type that not all providers accept. */
export function sniffImageType(data: string): string | undefined {
  const head = Buffer.from(data.slice(0, 24), "base64").toString("latin1");
  return SIGNATURES.find(({ matches }) => matches(head))?.type;
}
