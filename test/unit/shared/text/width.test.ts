/** Widths in terminal cells, compared with the real Pi's measure: Pi ends with an error if a line is too wide. */
import { beforeAll, describe, expect, test } from "vitest";
import { withBases } from "../../../../src/shared/text/unprintable.ts";
import {
  cutOff,
  cutTo,
  mostCells,
  padded,
  printable,
  visibleWidth,
  wrap,
} from "../../../../src/shared/text/width.ts";
import { repeats } from "../../../support/long.ts";
import { LONG_TEST_MS } from "../../../support/patience.ts";
import { drawInPi, loadPiTui, randomText, TUI_MODES, WIDER, WIDTH_SEED } from "../../../support/pi-tui.ts";
import { randomNumbers } from "../../workers/connection/results/support.ts";

let pi: Awaited<ReturnType<typeof loadPiTui>>;

beforeAll(async () => {
  pi = await loadPiTui();
});

/** What Pi measures of a finished line: it draws Thai and Lao AM as two characters. */
const piWidth = (line: string): number =>
  pi.visibleWidth(line.replaceAll("\u0e33", "\u0e4d\u0e32").replaceAll("\u0eb3", "\u0ecd\u0eb2"));

const LINES = repeats("WIDTH_LINES", 3_000);

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

  test(
    "any line of all blocks of Unicode: it is as wide as Pi says, and never wider than its most cells",
    () => {
      const random = randomNumbers(WIDTH_SEED);
      const text = randomText(random);
      const faults: string[] = [];
      for (let run = 0; run < LINES; run++) {
        const line = text(1 + Math.floor(random() * 12));
        const width = piWidth(line);
        // Pi's tables may be of another version of Unicode than ours. `mostCells` holds for these as well.
        if (!/\p{Unassigned}/u.test(line) && visibleWidth(line) !== width)
          faults.push(`${line}: ${width} cells`);
        if (width > mostCells(line)) faults.push(`${line}: more than ${mostCells(line)} cells`);
        if (piWidth(` ${line}`) > 1 + mostCells(line)) faults.push(`${line}: wider behind a margin`);
      }
      expect(faults, `WIDTH_SEED=${WIDTH_SEED}`).toEqual([]);
    },
    LONG_TEST_MS,
  );

  test("each character alone is as wide as Pi says", () => {
    const faults: string[] = [];
    const step = LINES > 100_000 ? 1 : 97;
    for (let code = 0xa0; code <= 0x10ffff; code += code < 0x3400 ? 1 : step) {
      const char = String.fromCodePoint(code);
      if (/[\p{Unassigned}\p{Surrogate}]/u.test(char)) continue;
      if (visibleWidth(char) !== piWidth(char)) faults.push(code.toString(16));
    }
    expect(faults).toEqual([]);
  });
});

describe("in Pi itself", () => {
  const WIDTH = 40;
  /** Texts as a server may write them: short ones, long ones, and those that never end. */
  function* texts(): Iterable<string> {
    yield* WIDER;
    const random = randomNumbers(WIDTH_SEED);
    const text = randomText(random);
    for (let run = 0; run < Math.max(300, LINES / 100); run++) {
      yield run % 3 === 0
        ? text(1 + Math.floor(random() * 6)).repeat(40)
        : text(1 + Math.floor(random() * 80));
    }
  }

  test.each(TUI_MODES)(
    "tuiMode %s: lines that are cut, broken or joined fit behind any margin",
    async (mode) => {
      const pictures = function* (): Iterable<string[]> {
        for (const foreign of texts()) {
          const text = printable(foreign);
          const short = cutTo(text.replaceAll("\n", " "), WIDTH / 2);
          const joined = `\u001b[1m${short}\u001b[22m${cutTo(text.replaceAll("\n", " "), WIDTH - mostCells(short))}`;
          yield [cutTo(text.replaceAll("\n", " "), WIDTH), joined, ...wrap(text, WIDTH, 50).lines];
        }
      };
      const drawn = drawInPi(mode, pictures(), { columns: WIDTH + 2, margin: 1 });
      await expect(drawn, `WIDTH_SEED=${WIDTH_SEED}`).resolves.toBe(undefined);
    },
  );

  test.each(TUI_MODES)(
    "tuiMode %s: printable text fits in notices, dialogs, lists and messages that Pi draws itself",
    async (mode) => {
      const pictures = function* (): Iterable<string[]> {
        for (const foreign of texts()) {
          const text = printable(foreign);
          const chosen = `\u001b[38;5;3m→ \u001b[39m\u001b[38;5;3m${text}\u001b[39m`;
          const items = [{ value: "a", label: text, description: text }];
          yield [
            new pi.Text(`\u001b[38;5;3m${text}\u001b[39m`, 1, 0),
            new pi.Text(chosen, 1, 0),
            new pi.TruncatedText(text, 1, 0),
            new pi.SelectList(items, 5, pi.getSelectListTheme()),
            new pi.Markdown(text, 1, 1, pi.getMarkdownTheme()),
          ].flatMap((component) => component.render(WIDTH));
        }
      };
      const drawn = drawInPi(mode, pictures(), { columns: WIDTH });
      await expect(drawn, `WIDTH_SEED=${WIDTH_SEED}`).resolves.toBe(undefined);
    },
  );
});

describe("withBases", () => {
  test.each([
    ["letters with marks", "é ề क्षि गि กำ น้ำ לֹא မြန်မာ བསྒྲུབས"],
    ["emoji of many characters", "👨🏽‍❤️‍💋‍👨🏿 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣ 🇩🇪"],
    ["a long word of syllables", "विश्वविद्यालयीनशैक्षणिककार्यक्रमांच्या"],
  ])("%s stay", (_name, text) => {
    expect(withBases(text)).toBe(text);
  });

  test.each([
    ["a mark at the start of a line", "a\n\u0903b", "a\n◌\u0903b"],
    ["a mark behind a space or a sign", " \u0903 *\u0301\u0903", " ◌\u0903 *◌\u0301\u0903"],
    ["AM behind a flag", "🇩🇪ำ", "🇩🇪◌ำ"],
    [
      "a cluster without end",
      `a${"\u0301".repeat(40)}`,
      `a${`${"\u0301".repeat(15)}◌`.repeat(2).slice(1)}${"\u0301".repeat(11)}`,
    ],
  ])("%s gets a dotted circle, once", (_name, text, expected) => {
    expect(withBases(text)).toBe(expected);
    expect(withBases(expected)).toBe(expected);
  });

  test.each([
    ["signs", `ः${"-".repeat(300_000)}`],
    ["signs behind a flag", `🇩${"-".repeat(300_000)}ำ`],
    ["AM", "ำ".repeat(300_000)],
    ["marks", `a${"\u0301".repeat(300_000)}`],
  ])("%s without end cost no more than their length", (_name, text) => {
    // A step back at each character would take minutes: the time limit of a test ends it.
    expect(withBases(text).length).toBeGreaterThanOrEqual(text.length);
  });

  test("each character that makes a cluster without end, or that takes a cell where no letter is -> it gets a circle", () => {
    const segmenter = new Intl.Segmenter();
    const left: string[] = [];
    for (let code = 0x80; code < 0x110000; code++) {
      const char = String.fromCodePoint(code);
      if (!/[\p{M}\p{Grapheme_Extend}\u200c-\u200d\u0e33\u0eb3]/u.test(char)) continue;
      const row = `a${char.repeat(40)}`;
      const isEndless = Array.from(segmenter.segment(row)).some(({ segment }) => [...segment].length > 20);
      if (isEndless && withBases(row) === row) left.push(`U+${code.toString(16)}`);
      if (/\p{Mc}/u.test(char) && !withBases(` ${char}`).startsWith(" ◌"))
        left.push(`U+${code.toString(16)}`);
    }
    expect(left).toEqual([]);
  });

  test("text of scripts without marks -> the same text, with the punctuation of East Asia", () => {
    for (const text of ["привет, мир", "中文字符，測試。", "안녕하세요", "ひらがな「です」。"])
      expect(withBases(text)).toBe(text);
  });

  test("ten million marks -> divided, without an error of V8", () => {
    expect(withBases(`a${"\u0301".repeat(10_000_000)}`).length).toBeGreaterThan(10_600_000);
  });

  test.each([1_999, 2_000, 2_001, 2_007, 2_008, 4_015])(
    "%i marks in a row -> no cluster of more than 16",
    (count) => {
      const clusters = new Intl.Segmenter().segment(withBases(`a${"\u0903".repeat(count)}`));
      expect(Math.max(...Array.from(clusters, ({ segment }) => segment.length))).toBeLessThanOrEqual(16);
    },
  );
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

test("cutOff marks that more follows; padded fills up by Pi's measure", () => {
  expect([cutOff("hello", 5), cutOff("ab", 5), cutOff("a", 0)]).toEqual(["hell…", "ab…", ""]);
  expect(padded("👨‍👩‍👧‍👦", 4)).toBe("👨‍👩‍👧‍👦  ");
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
    for (let run = 0; run < 500; run++) {
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
