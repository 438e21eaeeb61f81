import { describe, expect, test } from "vitest";
import { indexedColour, PLAIN, readScreen, styleAfter } from "../../../scripts/pictures/screen.ts";
import { screenSvg } from "../../../scripts/pictures/screen-svg.ts";

const ESC = "\u001b";

describe("readScreen", () => {
  test("plain lines -> one run each, and none for an empty line", () => {
    expect(readScreen("one\n\ntwo\n")).toEqual([
      [{ text: "one", column: 0, cells: 3, style: PLAIN }],
      [],
      [{ text: "two", column: 0, cells: 3, style: PLAIN }],
    ]);
  });

  test("a style begins and ends within a line, and goes on in the next line", () => {
    const [first, second] = readScreen(`a${ESC}[1;31mb\nc${ESC}[0md`);
    expect(first?.map(({ text, column, style }) => [text, column, style.bold])).toEqual([
      ["a", 0, false],
      ["b", 1, true],
    ]);
    expect(second?.map(({ text, style }) => [text, style.bold, style.foreground])).toEqual([
      ["c", true, indexedColour(1)],
      ["d", false, undefined],
    ]);
  });

  test("wide characters -> two cells, so that what follows stands right", () => {
    const [line] = readScreen(`日本${ESC}[1mx`);
    expect(line?.map(({ column, cells }) => [column, cells])).toEqual([
      [0, 4],
      [4, 1],
    ]);
  });

  test("links and other sequences -> no text of theirs is shown", () => {
    const [line] = readScreen(`${ESC}]8;;https://x.test${ESC}\\link${ESC}]8;;${ESC}\\${ESC}(B${ESC}[2K.`);
    expect(line?.map(({ text }) => text).join("")).toBe("link.");
  });
});

describe("styleAfter", () => {
  test.each([
    [[38, 5, 196], { foreground: "#ff0000" }],
    [[48, 2, 1, 2, 255], { background: "#0102ff" }],
    [[38, 5, 244], { foreground: "#808080" }],
    [[92], { foreground: indexedColour(10) }],
    [[47], { background: indexedColour(7) }],
    [[2, 3, 4, 9, 7], { dim: true, italic: true, underline: true, strike: true, inverse: true }],
    [[38, 5, 196, 1], { foreground: "#ff0000", bold: true }],
    [[53], {}],
  ])("%j -> %j", (parameters, change) => {
    expect(styleAfter(PLAIN, parameters)).toEqual({ ...PLAIN, ...change });
  });

  test("39, 49 and 22 take back", () => {
    const styled = styleAfter(PLAIN, [1, 31, 44]);
    expect(styleAfter(styled, [22, 39, 49])).toEqual(PLAIN);
  });
});

describe("screenSvg", () => {
  const svg = (captured: string): string => screenSvg(captured, { title: "A screen", columns: 20 });
  const texts = (captured: string): string[] => svg(captured).match(/<text [^>]*>[^<]*<\/text>/g) ?? [];

  test("each text has the width of its cells", () => {
    const [text = ""] = texts("日本 x");
    expect(text).toContain('textLength="48"');
  });

  test("lines and blocks are stretched, so that they touch; letters are not", () => {
    expect(texts("█─█  abc").map((text) => text.includes("spacingAndGlyphs"))).toEqual([true, false]);
  });

  test("a line across the screen -> a rectangle of its width", () => {
    expect(svg("───")).toContain('<rect class="g" x="14" y="42" width="24" height="1" fill="#d5d9e0"/>');
    expect(texts("───")).toEqual([]);
  });

  test("a colour -> a class, once", () => {
    const drawn = svg(`${ESC}[31ma${ESC}[0m b ${ESC}[1;31mc`);
    expect(drawn.split(".c0{fill:#e06c75}")).toHaveLength(2);
    expect(drawn).toMatch(/class="c0">a<[\s\S]*>b<[\s\S]*class="c0 b">c</);
  });

  test("several spaces -> texts of their own, each in its column", () => {
    const at = texts("a  b c   d").map((text) => /x="([\d.]+)".*>([^<]*)</.exec(text)?.slice(1));
    expect(at).toEqual([
      ["14", "a"],
      ["38", "b c"],
      ["86", "d"],
    ]);
  });

  test("what acts in SVG is text", () => {
    expect(texts('<script> & "x"')[0]).toContain("&lt;script&gt; &amp; &quot;x&quot;");
    expect(screenSvg("", { title: "a <b>", columns: 1 })).toContain("<title>a &lt;b&gt;</title>");
  });

  test("neighbours with one ground -> one rectangle, spaces included", () => {
    const grounds = svg(`${ESC}[42m a ${ESC}[1mb${ESC}[0m c`).match(/<rect class="g"[^>]*>/g);
    expect(grounds).toHaveLength(1);
    expect(grounds?.[0]).toContain('width="32"');
  });

  test("inverse -> ink and ground change places", () => {
    const drawn = svg(`${ESC}[7m ${ESC}[27m`);
    expect(drawn).toMatch(/<rect class="g"[^>]* fill="#d5d9e0"/);
  });

  test("the size follows from columns and lines", () => {
    expect(screenSvg("a\nb", { title: "A", columns: 10 })).toContain('width="108" height="83"');
  });
});
