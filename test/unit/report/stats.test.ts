/** Owns: statistics as lines of a screen: narrow, ordinary, without calls, with many tools and in other scripts. */
import { describe, expect, test } from "vitest";
import { renderStats } from "../../../src/report/status.ts";
import type { StatsSummary, ToolStats } from "../../../src/shared/protocol/calls.ts";
import { visibleWidth } from "../../../src/shared/text/width.ts";
import { type StatsEntry, summarizeStats } from "../../../workers/connection/results/stats.ts";

const stats = (server: string, tool: string, more: Partial<ToolStats> = {}): ToolStats => ({
  server,
  tool,
  calls: 1,
  errors: 0,
  receivedBytes: 9_000_000,
  shownBytes: 50_000,
  meanMs: 1_500,
  ...more,
});
const shown = (tools: ToolStats[], columns: number, more: Partial<StatsSummary> = {}): string[] =>
  renderStats(
    { captured: true, summary: { tools, moreTools: 0, tokensSaved: 2_237_700, ...more } },
    columns,
  ).split("\n");

const TWO = [
  stats("s", "big"),
  stats("s", "t", { calls: 2, errors: 1, receivedBytes: 1_000, shownBytes: 200, meanMs: 20 }),
];

test("wide enough -> names and numbers side by side", () => {
  for (const columns of [78, 198, Number.MAX_SAFE_INTEGER]) {
    expect(shown(TWO, columns)).toEqual([
      "tool     calls  errors  received    shown   mean",
      "s · big      1       0    8.6 MB  48.8 KB  1.5 s",
      "s · t        2       1    1000 B    200 B  20 ms",
      "About 2,237,700 tokens saved.",
    ]);
  }
});

test("60 columns -> one line per name, the numbers below it", () => {
  expect(shown([stats("everything", "trigger-long-running-operation"), ...TWO.slice(1)], 58)).toEqual([
    "tool",
    "  calls  errors  received    shown   mean",
    "everything · trigger-long-running-operation",
    "      1       0    8.6 MB  48.8 KB  1.5 s",
    "s · t",
    "      2       1    1000 B    200 B  20 ms",
    "About 2,237,700 tokens saved.",
  ]);
});

test("CJK and emoji -> columns line up by cells", () => {
  const lines = shown([stats("服务器", "查询数据库"), stats("👩‍🚀", "go"), ...TWO], 100).slice(0, -1);
  expect(new Set(lines.map(visibleWidth)).size).toBe(1);
  expect(lines[1]).toBe("服务器 · 查询数据库      1       0    8.6 MB  48.8 KB  1.5 s");
});

describe("any width", () => {
  const many = Array.from({ length: 30 }, (_, i) =>
    stats("服务".repeat(i), `tool-${"long-".repeat(i)}`, {
      calls: 10 ** (i % 9),
      receivedBytes: 10 ** (i % 12),
    }),
  );
  test.each([45, 58, 78, 198])("%i -> no line is wider", (columns) => {
    for (const line of shown(many, columns, { moreTools: 170 })) {
      expect(visibleWidth(line)).toBeLessThanOrEqual(columns);
    }
  });
});

test("200 tools -> thirty of them and the number of the others; the tokens count all", () => {
  const entries = Array.from(
    { length: 200 },
    (_, i): StatsEntry => ({
      at: 1,
      server: "s",
      tool: `t${i}`,
      failed: false,
      receivedBytes: 1_000 + i,
      shownBytes: 0,
      durationMs: 1,
    }),
  );
  const summary = summarizeStats(entries);
  const lines = renderStats({ captured: true, summary }, 80).split("\n");
  expect(lines).toHaveLength(33);
  expect(lines[1]).toMatch(/^s · t199 /);
  expect(lines.slice(-2)).toEqual(["and 170 more tools", "About 54,975 tokens saved."]);
});

test("names that a server wrote -> one line without escapes", () => {
  const lines = shown([stats("s", "a\u001b[2J\nb\u202e")], 80);
  expect(lines[1]).toMatch(/^s · a b {2}/);
});

test("no calls, nothing captured -> the table says so", () => {
  expect(shown([], 58)).toEqual(["No calls are recorded yet."]);
  expect(renderStats({ captured: false }, 58)).toBe(
    'Nothing is captured. Set "captureStats": true under "settings" in mcp.json.',
  );
});
