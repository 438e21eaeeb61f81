/** Owns: regular expressions in linear time: what matches, as the engine of the language says, and what is refused. */
import { describe, expect, it, test } from "vitest";
import { compilePattern, PatternError } from "../../../src/search/regex.ts";

const TEXTS = [
  "",
  "a",
  "aaa",
  "abc",
  "list_issues",
  "github__create_issue",
  "Read a File.",
  "v2.10-beta",
  "a\nb",
  "天气 forecast",
  "[x] {2}",
  "é É ß",
];

describe("compilePattern: matches what RegExp with the flag i matches", () => {
  it.each([
    "",
    "a",
    "A",
    "^a$",
    "a|b",
    "(a|b)c",
    "a*",
    "a+?b",
    "a?b",
    "^a{2}",
    "a{2,}",
    "a{1,2}$",
    "^(?:ab?c?)+$",
    "create|delete",
    "^github__.*issue$",
    "list_(issues|labels)",
    "[a-c]{3}",
    "[^a-z_]",
    "[\\w-]+",
    "[]x]",
    "\\bfile\\b",
    "\\Bssue",
    "\\d+\\.\\d+",
    "\\s\\S",
    ".",
    "a.b",
    "气",
    "É",
    "\\[x\\]",
    "{2}",
    "x{,3}",
    "(?<name>a)b",
    "()",
    "(|a)b",
    "(a*)*b",
    "((a+)+)+$",
  ])("%j", (source) => {
    const pattern = source === "[]x]" ? /[\]x]/i : source === "{2}" ? /\{2\}/i : new RegExp(source, "i");
    const own = compilePattern(source);
    expect(TEXTS.filter((text) => own.test(text))).toEqual(TEXTS.filter((text) => pattern.test(text)));
  });

  test("one pattern, asked again and again -> the same answers", () => {
    const pattern = compilePattern("b$");
    expect(["ab", "ba", "ab"].map((text) => pattern.test(text))).toEqual([true, false, true]);
  });
});

describe("compilePattern: refuses, with the reason", () => {
  it.each([
    ["(a)\\1", "backreferences are not supported"],
    ["(?=a)", "look-around is not supported"],
    ["(?<!a)b", "look-around is not supported"],
    ["(?i)a", "flags inside a pattern are not supported"],
    ["\\p{L}", "\\p is not supported"],
    ["\\x41", "\\x is not supported"],
    ["(a", "a group is not closed"],
    ["a)", "unexpected )"],
    ["[a", "the pattern ends too early"],
    ["*a", "nothing to repeat before *"],
    ["a\\", "the pattern ends too early"],
    ["[z-a]", "z-a is out of order"],
    ["a{3,2}", "a repetition that ends before it begins"],
    ["a{101}", "more than 100 repetitions"],
    ["((a{100}){100}){100}", "the pattern is too large"],
    ["((((){100}){100}){100}){100}", "the pattern is too large"],
    ["(".repeat(501), "it is longer than 500 characters"],
    ["(".repeat(500), "a group is not closed"],
  ])("%j -> %s", (source, reason) => {
    expect(() => compilePattern(source)).toThrow(PatternError);
    expect(() => compilePattern(source)).toThrow(reason);
  });
});

test("patterns that take a backtracking engine for ever -> answered", () => {
  const text = `${"a".repeat(5_000)}!`;
  for (const source of ["(a+)+$", "(a|a)*b$", "(a*)*c", "a*a*a*a*a*a*b"]) {
    expect(compilePattern(source).test(text)).toBe(false);
  }
});
