/** Owns: how much of the configuration's mistakes reaches the user, and how often. */
import { expect, test } from "vitest";
import { createConfigNotices } from "../../../src/ui/config-notices.ts";
import { createRecordingContext } from "../recording-context.ts";

const lines = (count: number): string[] => Array.from({ length: count }, (_, i) => `line ${i}`);

test("some lines -> one notice; the same lines again -> none; a new line -> only that line", () => {
  const { ctx, notices } = createRecordingContext();
  const { show } = createConfigNotices(ctx);
  show(["a", "b"]);
  show(["a", "b"]);
  show(["b", "c"]);
  show([]);
  show(["a"]);
  expect(notices).toEqual([
    ["a\nb", "warning"],
    ["c", "warning"],
    ["a", "warning"],
  ]);
});

test("1,000 lines of 10,000 characters -> one notice of bounded length with the number of the other lines", () => {
  const { ctx, notices } = createRecordingContext();
  createConfigNotices(ctx).show(Array.from({ length: 1_000 }, (_, i) => `${i}${"x".repeat(10_000)}`));
  expect(notices).toHaveLength(1);
  const [text] = notices[0] ?? [""];
  expect(text.length).toBeLessThan(6_000);
  expect(text.split("\n")).toHaveLength(11);
  expect(text).toMatch(/\nand 990 more: \/mcp shows what is wrong\.$/);
});

test("as many lines as a notice shows -> all lines and no number", () => {
  const { ctx, notices } = createRecordingContext();
  createConfigNotices(ctx).show(lines(10));
  expect(notices).toEqual([[lines(10).join("\n"), "warning"]]);
});
