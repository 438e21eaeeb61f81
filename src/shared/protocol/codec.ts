/**
 * Encodes values that cross a thread or lie in a file: msgpackr with plain maps, so that any msgpack reader can decode
 * the bytes and a decoder needs no shared state.
 */
import { Packr, Unpackr } from "msgpackr";

const OPTIONS = { useRecords: false, mapsAsObjects: true, moreTypes: false };

// Two objects, so that a bundle can leave one out: main only decodes, and the encoder is a quarter of its bundle.
const packr = /* @__PURE__ */ new Packr(OPTIONS);
const unpackr = /* @__PURE__ */ new Unpackr(OPTIONS);

/** Encodes into a new buffer, so that the buffer can be transferred. */
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  // `pack` returns a view into a pooled buffer; transferring that would take the pool along.
  return new Uint8Array(packr.pack(value));
}

/**
 * Decodes bytes of `encode`. Throws on most broken bytes; other broken bytes decode to some other value, so the caller
 * checks the shape of bytes from a file.
 */
export function decode(bytes: Uint8Array): unknown {
  return unpackr.unpack(bytes);
}
