import { describe, expect, test } from "vitest";
import type { RenderContext, RenderTheme, ToolRenderers, ToolResult } from "../../../src/pi/api.ts";
import { visibleWidth } from "../../../src/shared/text/width.ts";
import { createRenderers, renderersFor } from "../../../src/tools/rows.ts";
import { drawInPi, randomText, TUI_MODES, WIDER, WIDTH_SEED } from "../../support/pi-tui.ts";
import { randomNumbers } from "../workers/connection/results/support.ts";

const plain: RenderTheme = { fg: (_color, text) => text, bold: (text) => text };
const marked: RenderTheme = { fg: (color, text) => `<${color}>${text}</>`, bold: (text) => `*${text}*` };
const coloured: RenderTheme = {
  fg: (_color, text) => `\u001b[38;5;12m${text}\u001b[39m`,
  bold: (text) => `\u001b[1m${text}\u001b[22m`,
};

const context = (more: Partial<RenderContext> = {}): RenderContext => ({
  expanded: false,
  isError: false,
  durationMs: undefined,
  keyHint: (_key, description) => `ctrl+o ${description}`,
  ...more,
});

const renderers = createRenderers("github · search");

const call = (
  args: Record<string, unknown>,
  width: number,
  more: Partial<RenderContext> = {},
  theme = plain,
) => renderers.renderCall?.(args, theme, context(more)).render(width) ?? [];

const result = (
  text: string | ToolResult["content"],
  width: number,
  {
    details,
    theme = plain,
    isPartial = false,
    ...more
  }: { details?: unknown; theme?: RenderTheme; isPartial?: boolean } & Partial<RenderContext> = {},
): string[] => {
  const content = typeof text === "string" ? [{ type: "text" as const, text }] : text;
  const options = { expanded: more.expanded ?? false, isPartial };
  return renderers.renderResult?.({ content, details }, options, theme, context(more)).render(width) ?? [];
};

describe("the call", () => {
  test("server, tool and arguments in one line", () => {
    expect(call({ query: "a\nb", n: 3, tags: ["x"], o: { p: null } }, 80)).toEqual([
      'github · search  query: "a\\nb", n: 3, tags: ["x"], o: {p: null}',
    ]);
    expect(call({}, 80)).toEqual(["github · search"]);
    expect(call({ a: 1 }, 80, {}, marked)).toEqual(["<toolTitle>*github · search*</>  <muted>a: 1</>"]);
  });

  test("expanded: one line per argument, strings as they are", () => {
    expect(call({ query: "a\nb", n: 3 }, 80, { expanded: true })).toEqual([
      "github · search",
      "  query: a",
      "    b",
      "  n: 3",
    ]);
  });

  test("expanded: an argument of megabytes ends after 200 lines", () => {
    for (const text of ["x".repeat(4_000_000), "日本\n".repeat(400_000)]) {
      const lines = call({ text }, 80, { expanded: true });
      expect(lines).toHaveLength(202);
      expect(lines.at(-1)).toBe("  …");
    }
  });

  test.each([60, 80, 200])("at %i cells long arguments end in an ellipsis", (width) => {
    const [line = "", ...more] = call({ query: "日本語 words ".repeat(100) }, width);
    expect(more).toEqual([]);
    expect(line).toMatch(/…$/);
    expect(visibleWidth(line)).toBeGreaterThan(width - 3);
    expect(visibleWidth(line)).toBeLessThanOrEqual(width);
  });

  test.each([
    ["undefined", undefined],
    ["no object", "text"],
    ["a megabyte", { data: "x".repeat(1024 * 1024) }],
    ["a cycle of depth", { a: { b: { c: { d: { e: 1 } } } } }],
    ["many", Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, [i]]))],
    ["escapes", { a: "\u001b[2J", "\u001b[31m": 1 }],
  ])("arguments that are %s", (_name, args) => {
    const [line = ""] = call(args as Record<string, unknown>, 80);
    expect(line.startsWith("github · search")).toBe(true);
    expect(visibleWidth(line)).toBeLessThanOrEqual(80);
    expect(line).not.toContain("\u001b");
  });

  test.each([1, 2, 5, 16, 19])("at %i cells the line is cut", (width) => {
    const lines = call({ a: 1 }, width, {}, coloured);
    expect(lines).toHaveLength(1);
    expect(visibleWidth(lines[0] ?? "")).toBeLessThanOrEqual(width);
  });
});

describe("the result", () => {
  const details = {
    server: "github",
    tool: "search",
    durationMs: 1_240,
    bytes: { received: 9_437_184, shown: 49_971 },
  };

  test("the first lines, how to expand, time and size, the file", () => {
    const text = Array.from({ length: 12 }, (_, i) => `line ${i}`).join("\n");
    const row = { ...details, storedAt: "/home/me/.pi/agent/mcp-results/a/b.txt" };
    expect(result(text, 80, { details: row })).toEqual([
      "",
      "line 0",
      "line 1",
      "line 2",
      "line 3",
      "line 4",
      "… 7 more lines (ctrl+o to expand)",
      "1.2 s · 48.8 KB of 9 MB",
      "Full text: /home/me/.pi/agent/mcp-results/a/b.txt",
    ]);
    expect(result(text, 80, { details, expanded: true })).toHaveLength(14);
  });

  test("an error in the colour of errors, a result in that of output", () => {
    expect(result("boom", 80, { isError: true, theme: marked })).toEqual(["", "<error>boom</>"]);
    expect(result("fine", 80, { theme: marked })).toEqual(["", "<toolOutput>fine</>"]);
  });

  test("one more line is counted in the singular; without a time of ours, Pi's time is shown", () => {
    expect(result("1\n2\n3\n4\n5\n6", 80, { durationMs: 12 }).slice(-2)).toEqual([
      "… 1 more line (ctrl+o to expand)",
      "12 ms",
    ]);
  });

  test("an image has a line, also if the terminal draws no images", () => {
    const content = [{ type: "image" as const, mimeType: "image/png", data: "A".repeat(4_000) }];
    expect(result(content, 80)).toEqual(["", "[Image: image/png, 2.9 KB]"]);
  });

  test("text that is only for the person comes first", () => {
    expect(result("for the model", 80, { details: { forUser: "for you" } })).toEqual([
      "",
      "for you",
      "for the model",
    ]);
  });

  test.each([60, 80, 200])("at %i cells no line is too wide, collapsed or expanded", (width) => {
    const text = [
      "日本語のとても長い行".repeat(40),
      "emoji 👨‍👩‍👧‍👦🇩🇪👍🏽 ".repeat(60),
      "\u001b[31mcoloured\u001b[0m\tand\ttabs ".repeat(40),
      `{"json":"${"x".repeat(2_000)}"}`,
      "\0\u0007binary",
    ].join("\n");
    const row = { ...details, storedAt: `/very/long/${"folder/".repeat(50)}file.txt` };
    for (const expanded of [false, true]) {
      const lines = result(text, width, { details: row, expanded, theme: coloured });
      for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width);
      expect(lines.length).toBeGreaterThan(7);
    }
  });

  test.each([0, 1, 2, 3, 10])("at %i cells no line is too wide either", (width) => {
    const lines = result("日本語 text ".repeat(20), width, { details: { ...details, storedAt: "/a/b" } });
    for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width);
  });

  test.each([[undefined], [null], ["x"], [{ durationMs: "1", bytes: 5, storedAt: 3, forUser: {} }]])(
    "details of another session, %j, break nothing",
    (other) => {
      expect(result("text", 80, { details: other }).slice(0, 2)).toEqual(["", "text"]);
    },
  );

  test.each<[string, unknown]>([
    ["no content", undefined],
    ["content that is not a list", "text"],
    ["an image without data", [{ type: "image", mimeType: "image/png" }]],
    ["an unknown block", [{ type: "video" }]],
  ])("%s, of another session, breaks nothing", (_name, content) => {
    expect(() => result(content as ToolResult["content"], 80)).not.toThrow();
  });

  test.each([60, 80, 200])("escapes of every kind at %i cells: no escape reaches the terminal", (width) => {
    const escapes =
      "a\u001b]8;;https://x.test\u0007b\u001b[2Jc\u009b1md\u001bPq\u001b\\e\u0007\u001b]0;f\n日本\u202e";
    const forUser = `you: ${escapes}`;
    const lines = [
      ...result(escapes.repeat(20), width, { details: { forUser, storedAt: escapes } }),
      ...result(escapes, width, { isPartial: true, details: { progress: 1, total: 3 } }),
      ...call({ [escapes]: escapes, deep: { [escapes]: [escapes] } }, width),
      ...call({ [escapes]: escapes }, width, { expanded: true }),
      ...(createRenderers(escapes).renderCall?.({}, plain, context()).render(width) ?? []),
    ];
    for (const line of lines) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is to be found.
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
      expect(visibleWidth(line)).toBeLessThanOrEqual(width);
    }
  });

  test.each(TUI_MODES)("odd texts, tuiMode %s -> Pi itself draws every row", async (mode) => {
    const rowsOf = function* (): Iterable<string[]> {
      const text = randomText(randomNumbers(WIDTH_SEED));
      for (const odd of [...WIDER, ...Array.from({ length: 50 }, (_, i) => text(10 + i * 4))]) {
        for (const expanded of [false, true]) {
          yield [
            ...result(odd, 58, {
              details: { ...details, forUser: odd, storedAt: odd },
              expanded,
              theme: coloured,
            }),
            ...result(odd, 58, { isPartial: true, details: { progress: 1, total: 3 }, theme: coloured }),
            ...call({ [odd]: odd, deep: { [odd]: [odd] } }, 58, { expanded }, coloured),
            ...(createRenderers(odd).renderCall?.({ a: odd }, coloured, context()).render(58) ?? []),
          ].slice(0, 90);
        }
      }
    };
    const drawn = drawInPi(mode, rowsOf(), { columns: 60, margin: 1 });
    await expect(drawn, `WIDTH_SEED=${WIDTH_SEED}`).resolves.toBe(undefined);
  });

  test("a component draws anew at another width and after invalidate", () => {
    let drawn = 0;
    const counting: RenderTheme = { ...plain, fg: (_color, text) => `${++drawn}${text}` };
    const component = renderers.renderResult?.(
      { content: [{ type: "text", text: "a" }], details: {} },
      { expanded: false, isPartial: false },
      counting,
      context(),
    );
    expect(component?.render(80)).toBe(component?.render(80));
    expect(drawn).toBe(1);
    component?.render(60);
    component?.invalidate();
    component?.render(60);
    expect(drawn).toBe(3);
  });
});

describe("progress", () => {
  test.each<[number, unknown, string[]]>([
    [80, { progress: 2, total: 5 }, ["████████░░░░░░░░░░░░ 40% reading files"]],
    [80, { progress: 9, total: 5 }, ["████████████████████100% reading files"]],
    [80, { progress: 2 }, ["reading files"]],
    [80, { progress: 2, total: 0 }, ["reading files"]],
    [80, undefined, ["reading files"]],
    [20, { progress: 2, total: 5 }, ["██░░░ 40% reading f…"]],
  ])("at %i cells, %j", (width, details, lines) => {
    expect(result("reading\nfiles", width, { details, isPartial: true })).toEqual(lines);
  });
});

describe("renderersFor", () => {
  test.each([
    ["github__search", "github · search"],
    ["file_system__read__all", "file_system · read__all"],
    ["mcp__github__search", "github · search"],
    ["mcp__my_server__read__all", "my_server · read__all"],
    ["mcp__search", "mcp · search"],
    ["read", undefined],
    ["a.b__c", undefined],
  ])("%s -> %s", (name, label) => {
    const found = renderersFor<ToolRenderers>(name, () => undefined);
    expect(found?.renderCall?.({}, plain, context()).render(80)).toEqual(label && [label]);
  });

  test("a renderer of another extension goes first", () => {
    const theirs = {};
    expect(renderersFor("github__search", () => theirs)).toBe(theirs);
  });
});

test("a result of many megabytes, as without an output guard -> its start is drawn, and a line says that there is more", () => {
  const lines = result("0123456789\n".repeat(3_000_000), 80);
  expect(lines.slice(0, 3)).toEqual(["", "0123456789", "0123456789"]);
  expect(lines).toHaveLength(7);
  expect(lines[6]).toMatch(/^… over 47,\d\d\d more lines \(ctrl\+o to expand\)$/);
  const many = Array.from({ length: 200_000 }, () => ({ type: "text" as const, text: "word ".repeat(20) }));
  expect(result(many, 80, { expanded: true }).at(-1)).toMatch(/^… over [\d,]+ more lines$/);
});
