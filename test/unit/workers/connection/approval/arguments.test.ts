/** Owns: the arguments in the question whether a tool may run: all are named, none hides another, the text is bounded. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { shownArguments, shownName } from "../../../../../workers/connection/approval/approval.ts";

test("each argument stands on a line of its own, as JSON", () => {
  const args = { path: "/a b", count: 2, deep: { x: [true, null] }, "odd name": "" };
  expect(shownArguments(args)).toBe('path: "/a b"\ncount: 2\ndeep: {"x":[true,null]}\n"odd name": ""');
  expect(shownArguments({})).toBe("");
});

test("line ends, escapes, hidden and turned letters -> written as codes, in the names as well", () => {
  const text = shownArguments({ a: "x\ny\u2028z", "b\u001b[2K\nc": "\u202e\u200b", d: "p\u0430ypal" });
  expect(text).toBe('a: "x\\ny\\u{2028}z"\n"b\\u001b[2K\\nc": "\\u{202e}\\u{200b}"\nd: "p\\u{430}ypal"');
  expect(shownName("delete\n\u001b[0m")).toBe('"delete\\n\\u001b[0m"');
});

describe("too much for a question", () => {
  const bounded = (text: string): void => expect(text.length).toBeLessThanOrEqual(LIMITS.approvalChars);

  test("one argument of a megabyte -> cut, with its length", () => {
    const text = shownArguments({ content: "x".repeat(1_000_000) });
    bounded(text);
    expect(text).toMatch(/^content: "x{19000,}… \(cut, 1,000,002 characters in all\)$/);
  });

  test("a long argument -> the one behind it is shown", () => {
    const text = shownArguments({ content: "x".repeat(1_000_000), target: "/etc/passwd" });
    bounded(text);
    expect(text.split("\n").at(-1)).toBe('target: "/etc/passwd"');
  });

  test("a text that is all escapes -> bounded, too", () => {
    const text = shownArguments({ content: "\u200b".repeat(100_000), target: "here" });
    bounded(text);
    expect(text.split("\n").at(-1)).toBe('target: "here"');
  });

  test("ten thousand arguments -> those that are left out are counted", () => {
    const args = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, "x".repeat(300)]));
    const lines = shownArguments(args).split("\n");
    bounded(lines.join("\n"));
    expect(lines.at(-1)).toBe(
      `and ${(10_000 - lines.length + 1).toLocaleString("en")} more arguments, which are not shown`,
    );
    expect(lines.length).toBeGreaterThan(20);
  });

  test("a cut between the halves of a character -> no half is left", () => {
    for (const more of ["", "x"]) {
      expect(shownArguments({ a: `${more}${"😀".repeat(20_000)}` }).isWellFormed()).toBe(true);
      expect(shownName(`${more}${"😀".repeat(200)}`).isWellFormed()).toBe(true);
    }
  });
});
