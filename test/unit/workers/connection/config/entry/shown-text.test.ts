/** Owns: a question hides no character: what is removed from other foreign text stands in a question as its code. */
import { expect, test } from "vitest";
import { cleanText } from "../../../../../../src/shared/text/unprintable.ts";
import { escaped } from "../../../../../../workers/connection/config/entry/shown-text.ts";

const LAST_CODE_POINT = 0x10ffff;
const isSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;
const BLOCK = 256;

/** Is one of them removed elsewhere? Nearly no block has such a character, and one look at a block is cheap. */
const hasRemoved = (from: number): boolean => {
  const codes = Array.from({ length: BLOCK }, (_, i) => from + i).filter((code) => !isSurrogate(code));
  const text = `a${codes.map((code) => String.fromCodePoint(code)).join("a")}a`;
  return cleanText(text) !== text;
};

test("every character that is removed elsewhere is written as its code", () => {
  const shownAsItIs: string[] = [];
  let removed = 0;
  for (let code = 0; code <= LAST_CODE_POINT; code++) {
    if (code % BLOCK === 0 && !hasRemoved(code)) {
      code += BLOCK - 1;
      continue;
    }
    if (isSurrogate(code)) continue;
    const char = String.fromCodePoint(code);
    if (cleanText(`a${char}b`) === `a${char}b`) continue;
    removed++;
    if (escaped(`a${char}b`) !== `a\\u{${code.toString(16)}}b`) shownAsItIs.push(code.toString(16));
  }
  expect(removed).toBeGreaterThan(4_000);
  expect(shownAsItIs).toEqual([]);
});

test.each([
  ["a line end", "a\nb", "a\\u{a}b"],
  ["an escape sequence", "a\u001b[31mb", "a\\u{1b}[31mb"],
  ["half a character", "a\ud800b", "a\\u{d800}b"],
])("%s is written as its code", (_, text, shown) => {
  expect(escaped(text)).toBe(shown);
});
