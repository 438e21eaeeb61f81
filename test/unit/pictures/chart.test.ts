import { describe, expect, test } from "vitest";
import { chartSvg } from "../../../scripts/pictures/chart.ts";
import { figureOf, machineOf, readFigures } from "../../../scripts/pictures/figures.ts";
import { linesSvg } from "../../../scripts/pictures/lines.ts";

const PAGE = `# Figures

AMD EPYC, 2 cores, 24 GB, linux x64, Node 24.21.0, Pi 1.5.2, 2026-11-21, load before the run 2.6

## connect

| case    | metric          | median (min to max)       | over baseline  | times ours | target     |
| ------- | --------------- | ------------------------- | -------------- | ---------- | ---------- |
| bare Pi | main-thread CPU | 291 ms (285 to 308)       |                | x0.91      |            |
| ours    | connected after | 1,072 ms (1,025 to 1,134) |                |            |            |
|         | main-thread CPU | 319 ms (319 to 348)       | +27.9 ms, x1.1 |            | 40 ms: met |
|         | nothing         | -: it has no cache        |                |            |            |

## tokens

| case | metric           | median (min to max) |
| ---- | ---------------- | ------------------- |
| ours | together, tokens | 1,022 tokens        |
`;

describe("readFigures", () => {
  const figures = readFigures(PAGE);

  test("a row without a case belongs to the one above; numbers have commas", () => {
    expect(figureOf(figures, "connect", "ours", "main-thread CPU")).toMatchObject({
      value: 319,
      unit: "ms",
      over: 27.9,
    });
    expect(figureOf(figures, "connect", "ours", "connected after")).toMatchObject({
      value: 1072,
      over: undefined,
    });
    expect(figureOf(figures, "tokens", "ours", "together, tokens")).toMatchObject({
      value: 1022,
      unit: "tokens",
    });
  });

  test("a row without a number is left out; one that is missing is an error", () => {
    expect(figures).toHaveLength(4);
    expect(() => figureOf(figures, "connect", "ours", "nothing")).toThrow("no row connect | ours | nothing");
  });

  test("scenarios as headings of the second and of the third level -> the same figures", () => {
    expect(readFigures(PAGE.replaceAll("## ", "### "))).toEqual(figures);
  });

  test("the machine and the day", () => {
    expect(machineOf(PAGE)).toBe("AMD EPYC, 2 cores, 24 GB, linux x64, Node 24.21.0, Pi 1.5.2, 2026-11-21");
    expect(machineOf("# Figures\n")).toBeUndefined();
  });
});

describe("chartSvg", () => {
  const bar = (value: number, isOurs = false) => ({ name: `n${value}`, value, label: `${value} ms`, isOurs });
  const chart = chartSvg({
    title: "Cost",
    source: "a & b",
    groups: [
      { title: "First", bars: [bar(10, true), bar(40)] },
      { title: "Second", bars: [bar(1, true), bar(1000)] },
    ],
  });

  test("the bars of a group are to scale; the longest of each group has the same length", () => {
    const widths = [...chart.matchAll(/class="(?:ours|other)"[^>]*? width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toEqual([120, 480, 1, 480]);
  });

  test("values are also said, for those who do not see the bars", () => {
    expect(chart).toContain(
      "<title>Cost. First: n10 10 ms, n40 40 ms. Second: n1 1 ms, n1000 1000 ms.</title>",
    );
  });

  test("a dark page gets other colours", () => {
    expect(chart).toContain("@media (prefers-color-scheme:dark)");
    expect(chart).toContain("a &amp; b");
  });
});

describe("linesSvg", () => {
  const lines = linesSvg({
    title: "Memory",
    source: "a & b",
    axis: "sessions",
    unit: "GB",
    step: 1,
    series: [
      { name: "with", values: [0.5, 0.6, 0.7], role: "main" },
      { name: "without", values: [0.5, 1, 1.5], role: "own" },
      { name: "other", values: [0.5, 1, 1.48], role: "other" },
    ],
  });
  const ends = [...lines.matchAll(/class="(?:main|own|other)" d="[^"]*?([\d.]+)"/g)].map(([, y]) =>
    Number(y),
  );

  test("the ends of lines are to scale, and zero is the bottom of the grid", () => {
    const grid = [...lines.matchAll(/class="grid"[^>]* y1="([\d.]+)"/g)].map(([, y]) => Number(y));
    const [bottom = 0, one = 0] = grid;
    expect(grid).toHaveLength(3);
    expect(ends.map((end) => Number(((bottom - end) / (bottom - one)).toFixed(2)))).toEqual([0.7, 1.5, 1.48]);
  });

  test("two lines that end side by side -> their names do not lie over each other", () => {
    const names = [...lines.matchAll(/y="([\d.]+)">(with|without|other)</g)].map(([, y]) => Number(y));
    const [first = 0, second = 0] = names.slice(1).sort((a, b) => a - b);
    expect(names).toHaveLength(3);
    expect(second - first).toBeGreaterThan(13);
  });

  test("values are also said, for those who do not see the lines", () => {
    expect(lines).toContain(
      "<title>Memory. From 1 to 3 sessions: with from 0.5 to 0.7 GB, without from 0.5 to 1.5 GB, other from 0.5 to 1.48 GB.</title>",
    );
  });
});
