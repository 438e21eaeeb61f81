/**
 * Texts and schemas of the tools of a snapshot in blocks, most of which are never read. Those of a large catalog are
 * deflated: they take an eighth of the bytes, and reading the file is what a start with it costs. Called by columns.ts.
 */
import { decode, encode } from "../protocol/codec.ts";

/** Descriptions that are decoded together. Decoding one by one is slower for all, all at once is slower for a few. */
const BLOCK = 128;

/** Schemas that are inflated together, in a twentieth of a millisecond. */
const SCHEMA_BLOCK = 32;

/** Deflates or inflates bytes, without a header. Passed in, since this folder does not know Node. */
export type Packing = (bytes: Uint8Array) => Uint8Array;

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The bytes as a plain array: `subarray` of a `Buffer` takes twice as long, which counts for thousands of tools. */
const plainBytes = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length);

/** Texts of the tools in blocks of msgpackr bytes. */
export function packTextBlocks(texts: readonly string[], deflate: Packing | undefined): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < texts.length; at += BLOCK) blocks.push(encode(texts.slice(at, at + BLOCK).join("")));
  return deflate ? blocks.map(deflate) : blocks;
}

/** `parts` of the tools in one array, or in deflated blocks. */
export function packParts(parts: readonly Uint8Array[], deflate: Packing | undefined): Uint8Array[] {
  if (!deflate) return [concat(parts)];
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < parts.length; at += SCHEMA_BLOCK) {
    blocks.push(deflate(concat(parts.slice(at, at + SCHEMA_BLOCK))));
  }
  return blocks;
}

export const NONE: Uint8Array = new Uint8Array();

/** Reads the bytes of one tool. Of deflated blocks the last one is kept. */
export function readParts(
  blocks: readonly Uint8Array[],
  starts: Uint32Array,
  inflate: Packing | undefined,
): (at: number) => Uint8Array {
  let last = inflate ? -1 : 0;
  let bytes: Uint8Array = inflate ? NONE : plainBytes(blocks[0] as Uint8Array);
  return (at) => {
    const block = inflate ? Math.floor(at / SCHEMA_BLOCK) : 0;
    if (inflate && block !== last) {
      bytes = plainBytes(inflate(blocks[block] as Uint8Array));
      last = block;
    }
    const from = starts[block * SCHEMA_BLOCK] ?? 0;
    return bytes.subarray((starts[at] ?? 0) - from, (starts[at + 1] ?? 0) - from);
  };
}

/** Reads the text of one tool. Each block is decoded once. */
export function readTextBlocks(
  blocks: readonly Uint8Array[],
  starts: Uint32Array,
  inflate: Packing | undefined,
): (at: number) => string {
  const read: string[] = [];
  return (at) => {
    const block = Math.floor(at / BLOCK);
    // Only `decode` may be used here: the encoder would be a quarter of what main loads.
    read[block] ??= String(
      decode(inflate ? inflate(blocks[block] as Uint8Array) : (blocks[block] as Uint8Array)),
    );
    const from = starts[block * BLOCK] ?? 0;
    return read[block].slice((starts[at] ?? 0) - from, (starts[at + 1] ?? 0) - from);
  };
}
