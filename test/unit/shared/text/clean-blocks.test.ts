/** Owns: results for a model are cleaned as other texts, and what is taken out is counted. */
import { describe, expect, test } from "vitest";
import { cleanContent } from "../../../../src/shared/text/clean-blocks.ts";
import { cleanText } from "../../../../src/shared/text/unprintable.ts";

describe("cleanContent: for a model, and counted", () => {
  test("any character -> the same text as cleanText, and something was taken out where the two differ", () => {
    const wrong: string[] = [];
    for (let code = 0; code < 0x110000; code += code < 0x10000 || code >= 0xe0000 ? 1 : 7) {
      const text = `é${String.fromCodePoint(code)}b`;
      const { text: clean, taken } = cleanContent(text);
      if (clean !== cleanText(text) || (clean !== text.toWellFormed()) !== taken.size > 0)
        wrong.push(`U+${code.toString(16)}`);
    }
    expect(wrong).toEqual([]);
  });

  test("every character that Unicode calls ignorable or a format -> taken out, unless a script or an emoji needs it", () => {
    const left: string[] = [];
    for (let code = 0; code < 0x110000; code++) {
      const char = String.fromCodePoint(code);
      if (/[\p{Default_Ignorable_Code_Point}\p{Cf}]/u.test(char) && cleanContent(`a${char}b`).text !== "ab")
        left.push(`U+${code.toString(16)}`);
    }
    // Signs of Arabic, Syriac, Kaithi and Egyptian that have a shape.
    expect(left.filter((code) => !/^U\+(60[0-5]|6dd|70f|89[01]|8e2|110[bc]d|134[345].)$/.test(code))).toEqual(
      [],
    );
  });

  test.each([
    ["joiners", "\u200d".repeat(30_000_000), ""],
    ["joiners behind a sign", `é${"\u200d".repeat(30_000_002)}`, "é"],
    ["one sequence without end", `\u001b[${"1".repeat(30_000_000)}`, undefined],
  ])("30 million characters of %s -> cleaned, without an error of V8", (_name, long, expected) => {
    const { text } = cleanContent(long);
    if (expected !== undefined) expect(text === expected).toBe(true);
    expect(text.includes("\u001b")).toBe(false);
    expect(cleanText(long) === text).toBe(true);
  });

  test("a sequence within a sequence, a line end of Windows, half a pair", () => {
    const { text, taken } = cleanContent("\u001b]8;;x\u001b[1my\u001b\\z\r\n\ud83d");
    expect(text).toBe(cleanText("\u001b]8;;x\u001b[1my\u001b\\z\n\ud83d").replace("\n", "\r\n"));
    expect(Object.fromEntries(taken)).toEqual({ "terminal colour": 1, "terminal command": 2 });
  });
});
