/**
 * Bytes of images and other content: base64 as servers really send it (padded or not, with line breaks, or in the URL
 * alphabet), the type, the width and the height of an image from its bytes, and whether it is complete as far as headers
 * tell. A provider refuses a whole request because of one image with a wrong type, that is too wide or broken. Decodes no
 * pixels. Pure.
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

interface ImageSize {
  width: number;
  height: number;
}

type Reader = (bytes: Buffer) => ImageSize | undefined;

const PNG_SIGNATURE_BYTES = 8;
/** Bytes of length, type and checksum around the data of a chunk. */
const PNG_CHUNK_BYTES = 12;

/** PNG, third edition, 5.2: chunks from IHDR to IEND. */
const readPng: Reader = (bytes) => {
  let size: ImageSize | undefined;
  for (let at = PNG_SIGNATURE_BYTES; at + PNG_CHUNK_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString("latin1", at + 4, at + 8);
    const end = at + PNG_CHUNK_BYTES + length;
    if (end > bytes.length) return undefined;
    if (type === "IHDR" && length >= 8) {
      size = { width: bytes.readUInt32BE(at + 8), height: bytes.readUInt32BE(at + 12) };
    }
    if (type === "IEND") return size;
    at = end;
  }
  return undefined;
};

/** Start of frame: C0 to CF, except for three markers that define tables or are reserved. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
const SCAN = 0xda;
/** Markers without a length: TEM, RST0 to RST7, SOI. */
const standsAlone = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);

/** ITU-T T.81, annex B: segments until the first scan, which holds pixels. */
const readJpeg: Reader = (bytes) => {
  let size: ImageSize | undefined;
  for (let at = 2; at + 4 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] ?? 0;
    // Fill bytes may come before a marker.
    if (marker === 0xff) at++;
    else if (standsAlone(marker)) at += 2;
    else if (marker === SCAN) return size;
    else {
      if (isFrame(marker) && at + 9 <= bytes.length) {
        size = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
      }
      at += 2 + bytes.readUInt16BE(at + 2);
    }
  }
  return undefined;
};

/** GIF89a, 18: the logical screen, and at least one byte after it. */
const readGif: Reader = (bytes) =>
  bytes.length > 13 ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) } : undefined;

const FOURTEEN_BITS = 0x3fff;

/** RFC 9649, 2.4 to 2.7: a RIFF file whose first chunk holds the size. */
const readWebp: Reader = (bytes) => {
  if (bytes.length < 30 || bytes.readUInt32LE(4) + 8 > bytes.length) return undefined;
  const kind = bytes.toString("latin1", 12, 16);
  if (kind === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === "VP8 ") {
    return { width: bytes.readUInt16LE(26) & FOURTEEN_BITS, height: bytes.readUInt16LE(28) & FOURTEEN_BITS };
  }
  if (kind !== "VP8L") return undefined;
  const bits = bytes.readUInt32LE(21);
  return { width: (bits & FOURTEEN_BITS) + 1, height: ((bits >>> 14) & FOURTEEN_BITS) + 1 };
};

const READERS: Record<string, Reader> = {
  "image/png": readPng,
  "image/jpeg": readJpeg,
  "image/gif": readGif,
  "image/webp": readWebp,
};

/** Size in pixels. Undefined for an image that is broken or not complete, and for any other type. */
export function imageSize(type: string, base64: string): ImageSize | undefined {
  const size = READERS[type]?.(Buffer.from(base64, "base64"));
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}
