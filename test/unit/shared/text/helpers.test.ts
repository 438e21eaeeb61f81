/** Small helpers for texts: surrogates, the byte-order mark, the hash. */
import { expect, test } from "vitest";
import { fnv1a } from "../../../../src/shared/naming.ts";
import { BOM, withoutBom } from "../../../../src/shared/text/reading.ts";
import {
  isHighSurrogate,
  isLowSurrogate,
  withoutHalfAtEnd,
} from "../../../../src/shared/text/unprintable.ts";

test.each([
  ["", ""],
  ["ab", "ab"],
  ["a😀", "a😀"],
  ["a\ud83d", "a"],
  ["a\ude00", "a\ude00"],
])("withoutHalfAtEnd(%j) -> %j", (text, whole) => {
  expect(withoutHalfAtEnd(text)).toBe(whole);
});

test("the first half of a character is high, the second low, a letter neither", () => {
  const codes = [..."a\ud83d\ude00"].join("");
  const kinds = Array.from({ length: 3 }, (_, at) => codes.charCodeAt(at)).map((code) => [
    isHighSurrogate(code),
    isLowSurrogate(code),
  ]);
  expect(kinds).toEqual([
    [false, false],
    [true, false],
    [false, true],
  ]);
});

test.each([
  ["", ""],
  ["a", "a"],
  [`${BOM}{}`, "{}"],
  [`${BOM}${BOM}`, BOM],
  [`a${BOM}`, `a${BOM}`],
])("withoutBom(%j) -> %j", (text, without) => {
  expect(withoutBom(text)).toBe(without);
});

/** Test vectors of FNV-1a, 32 bit (draft-eastlake-fnv, section 6.1.1); ASCII has one code unit a byte. */
test.each([
  ["", 0x811c9dc5],
  ["a", 0xe40c292c],
  ["foobar", 0xbf9cf968],
])("fnv1a(%j) -> %i", (text, hash) => {
  expect(fnv1a(text)).toBe(hash);
});
