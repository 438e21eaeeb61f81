/** Owns: percent-encoded text is decoded where that is possible, and is kept as it is elsewhere. */
import { expect, test } from "vitest";
import { percentDecoded } from "../../../../src/shared/text/reading.ts";

test.each([
  ["plain", "plain"],
  ["a%20b%2Fc", "a b/c"],
  ["%E6%BC%A2", "漢"],
  ["100%", "100%"],
  ["%zz", "%zz"],
  ["%E6%BC", "%E6%BC"],
  ["", ""],
])("%s -> %s", (text, decoded) => {
  expect(percentDecoded(text)).toBe(decoded);
});
