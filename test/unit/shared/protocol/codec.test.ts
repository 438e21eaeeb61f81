/** Encoding of values that cross a thread or lie in a file. */
import { expect, it, test } from "vitest";
import { decode, encode } from "../../../../src/shared/protocol/calls.ts";

it.each([
  ["null", null],
  ["a boolean", true],
  ["an integer beyond 32 bit", 2 ** 40 + 1],
  ["a fraction", 0.1],
  ["a negative number", -1],
  ["an empty text", ""],
  ["a text of several scripts", "aé漢😀"],
  ["a text with control characters", "\u0000\r\n\u2028"],
  ["nested objects and arrays", { a: [1, { b: [] }], c: {} }],
  ["an array of like objects", [{ name: "a" }, { name: "b" }, { name: "c" }]],
  ["keys that look like numbers", { 1: "a", "-": "b" }],
  ["an empty array", []],
])("encode and decode: %s -> the same value", (_name, value) => {
  expect(decode(encode(value))).toEqual(value);
});

test("encode and decode: bytes within an object -> the same bytes", () => {
  const back = decode(encode({ bytes: Uint8Array.of(0, 1, 255) })) as { bytes: Uint8Array };
  expect([...back.bytes]).toEqual([0, 1, 255]);
});

test("encode: any value -> a new buffer; transferring it leaves later results whole", () => {
  const first = encode({ a: 1 });
  expect(first.byteOffset).toBe(0);
  expect(first.buffer.byteLength).toBe(first.byteLength);
  const second = encode({ b: 2 });
  const moved = structuredClone(first, { transfer: [first.buffer] });
  expect(first.byteLength).toBe(0);
  expect(decode(moved)).toEqual({ a: 1 });
  expect(decode(second)).toEqual({ b: 2 });
});

test("encode: maps are plain MessagePack, so any reader can decode them", () => {
  // MessagePack specification, format families map and str: a map 16 with one entry, a text of one byte.
  expect([...encode({ a: 1 })]).toEqual([0xde, 0x00, 0x01, 0xa1, 0x61, 0x01]);
});

it.each([
  ["no bytes", []],
  ["a map that ends early", [0x81, 0xa1]],
  ["a text that ends early", [0xa5, 0x61]],
  ["bytes after the value", [0x01, 0x02]],
])("decode: %s -> throws", (_name, bytes) => {
  expect(() => decode(Uint8Array.from(bytes))).toThrow();
});
