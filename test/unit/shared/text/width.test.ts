/** Widths in terminal cells, compared with the real Pi's measure: Pi ends with an error if a line is too wide. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { cutTo, printable, visibleWidth, wrap } from "../../../../src/shared/text/width.ts";
import { amount } from "../../../support/long.ts";
import { ensurePi } from "../../../support/pi-host.ts";
import { randomNumbers } from "../../workers/connection/results/support.ts";

let piWidth: (text: string) => number;

beforeAll(async () => {
  const { packageDir } = await ensurePi();
  const chunks = join(packageDir, "dist", "bundle", "chunks");
  for (const name of await readdir(chunks)) {
    if (!name.endsWith(".js")) continue;
    if (!(await readFile(join(chunks, name), "utf8")).includes("function visibleWidth(")) continue;
    const chunk = (await import(pathToFileURL(join(chunks, name)).href)) as Record<string, unknown>;
    piWidth = chunk.visibleWidth as typeof piWidth;
    return;
  }
  throw new Error("the pinned Pi has no visibleWidth");
});

const SAMPLES: [string, string, number][] = [
  ["ASCII", "hello", 5],
  ["nothing", "", 0],
  ["CJK", "日本語", 6],
  ["full width forms", "ＡＢ", 4],
  ["half width katakana", "ｱｲ", 2],
  ["an emoji", "😀", 2],
  ["a family", "👨‍👩‍👧‍👦", 2],
  ["a flag", "🇩🇪", 2],
  ["a skin tone", "👍🏽", 2],
  ["a keycap", "1️⃣", 2],
  ["text made emoji", "❤️", 2],
  ["a combining mark", "é", 1],
  ["Devanagari", "क्षि", 3],
  ["Thai with AM", "กำ", 2],
  ["Hangul syllables", "한국", 4],
  ["zero width joiner alone", "\u200d", 0],
  ["a colour", "\u001b[38;5;12mred\u001b[0m", 3],
  ["a link", "\u001b]8;;https://a.example\u001b\\here\u001b]8;;\u001b\\", 4],
  ["box drawing", "█░…", 3],
  ["marks and borders of our screens", "● ○ – → ─ ▏ » · ↑↓", 18],
  ["Latin-1", "Ä©ÿ", 3],
  ["a mark behind an arrow", "→\u0301", 1],
  ["a joiner behind an arrow", "↑\ufe0f", 1],
];

describe("visibleWidth", () => {
  test.each(SAMPLES)("%s", (_name, text, width) => {
    expect([visibleWidth(text), piWidth(text)]).toEqual([width, width]);
  });

  test("any line of mixed scripts is as wide as Pi says", () => {
    const random = randomNumbers(3);
    const pieces = [
      ...SAMPLES.map(([, text]) => text),
      "\u0301",
      "\ufe0f",
      "🏽",
      "🇫",
      "ำ",
      "\u0bbe",
      "a",
      " ",
    ];
    for (let run = 0; run < amount(1_000, 3_000); run++) {
      const text = Array.from(
        { length: 1 + Math.floor(random() * 8) },
        () => pieces[Math.floor(random() * pieces.length)],
      ).join("");
      expect([text, visibleWidth(text)]).toEqual([text, piWidth(text)]);
    }
  });
});

describe("printable", () => {
  test.each([
    ["colours", "\u001b[1;31mred\u001b[0m", "red"],
    ["a title and a link", "\u001b]0;title\u0007a\u001b]8;;x\u001b\\b", "ab"],
    ["a cleared screen", "a\u001b[2J\u001b[Hb\u001bcd", "abd"],
    ["an escape that is cut off", "a\u001b", "a"],
    ["C1 controls, bells, NUL", "a\u009b31mb\u0007\0c", "a31mbc"],
    ["tabs and CRLF", "a\tb\r\nc\rd", "a   b\ncd"],
    ["text that runs backwards", "a\u202eb", "ab"],
    ["half a pair", "a\ud83d", "a\ufffd"],
    ["a sequence without end hides nothing", "a\u001b]8;;x b\nall of this", "a8;;x b\nall of this"],
    ["nor one whose end is on another line", "a\u001b]0;b\nc\u0007d", "a0;b\ncd"],
    ["nor a very long one", `\u001b]0;${"x".repeat(3_000)}\u0007`, `0;${"x".repeat(3_000)}`],
    ["a sequence within a sequence", "\u001b\u001b[2J[2Ja", "[2Ja"],
    ["C1 OSC and CSI", "\u009d0;t\u009ca\u009b2Jb", "0;ta2Jb"],
  ])("%s", (_name, text, expected) => {
    expect(printable(text)).toBe(expected);
  });
});

test.each([
  ["hello", 5, "hello"],
  ["hello!", 5, "hell…"],
  ["日本語", 5, "日本…"],
  ["日本語", 4, "日…"],
  ["a", 0, ""],
  ["ab", 1, "…"],
  ["x👨‍👩‍👧‍👦y", 3, "x…"],
])("cutTo(%j, %i) -> %j", (line, width, expected) => {
  expect(cutTo(line, width)).toBe(expected);
});

describe("wrap", () => {
  test.each<[string, number, number, string[], number]>([
    ["a\nb\nc", 10, 2, ["a", "b"], 4],
    ["a\nb\nc", 10, 9, ["a", "b", "c"], 5],
    ["one two three", 8, 9, ["one two", "three"], 13],
    ["onetwothree", 4, 9, ["onet", "woth", "ree"], 11],
    ["日本語", 4, 9, ["日本", "語"], 3],
    ["a\n\nb", 4, 9, ["a", "", "b"], 4],
    ["日a", 1, 9, ["a"], 2],
    ["", 4, 9, [], 0],
  ])("%j at %i cells, %i lines", (text, width, maxLines, lines, rest) => {
    expect(wrap(text, width, maxLines)).toEqual({ lines, rest });
  });

  test("any text at any width -> no line is too wide by Pi's measure, and only spaces and newlines are lost", () => {
    const random = randomNumbers(5);
    const pieces = [
      ...SAMPLES.map(([, text]) => printable(text)),
      " ",
      "\n",
      "word ",
      "long-word-without-end",
    ];
    for (let run = 0; run < amount(200, 500); run++) {
      const text = Array.from(
        { length: Math.floor(random() * 40) },
        () => pieces[Math.floor(random() * pieces.length)],
      ).join("");
      // The widest cluster here has three cells; a cluster that fits no line is skipped.
      const width = 8 + Math.floor(random() * 40);
      const { lines, rest } = wrap(text, width, Number.MAX_SAFE_INTEGER);
      for (const line of lines) expect(piWidth(line)).toBeLessThanOrEqual(width);
      expect(rest).toBe(text.length);
      expect(lines.join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
    }
  });

  test("one line of a megabyte costs no more than its shown part", () => {
    const { lines, rest } = wrap("日".repeat(1_000_000), 80, 5);
    expect(lines).toEqual(Array(5).fill("日".repeat(40)));
    expect(rest).toBe(200);
  });
});
