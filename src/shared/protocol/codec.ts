/**
 * Bytes for payloads that cross a thread or lie in a file: msgpackr with plain maps, so that any
 * msgpack reader can decode them and a decoder needs no shared state.
 */
import { Packr, Unpackr } from "msgpackr";

const OPTIONS = { useRecords: false, mapsAsObjects: true, moreTypes: false };

// Two objects, each free to be left out: main only decodes, and the encoder is a quarter of its bundle.
const packr = /* @__PURE__ */ new Packr(OPTIONS);
const unpackr = /* @__PURE__ */ new Unpackr(OPTIONS);

/** Encodes into a buffer of its own, so that it can be transferred. */
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  // `pack` returns a view into a pooled buffer; transferring that would take the pool along.
  return new Uint8Array(packr.pack(value));
}

/** Decodes what `encode` made. The caller checks the shape: bytes may come from a file. Throws on most broken bytes; the rest decode to something else. */
export function decode(bytes: Uint8Array): unknown {
  return unpackr.unpack(bytes);
}
