/** Owns: which items of a server's list are kept, and that the others are named. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { KeptList } from "../../../../../workers/connection/mcp/lists.ts";

const listOf = (limit: number, items: readonly { name: string; text?: string }[]) => {
  const list = new KeptList("tools", limit);
  for (const item of items) list.add(item);
  return list;
};
const names = (count: number): { name: string }[] =>
  Array.from({ length: count }, (_, i) => ({ name: `t${i}` }));

describe("KeptList", () => {
  test("as many as allowed -> all, no note", () => {
    const list = listOf(3, names(3));
    expect([list.items.length, list.isFull, list.note()]).toEqual([3, false, undefined]);
  });

  test("more -> the first ones; some of the others are named", () => {
    const list = listOf(3, names(30));
    list.hasMorePages = true;
    expect(list.items).toEqual(names(3));
    expect(list.isFull).toBe(true);
    expect(list.note()).toMatch(
      /^lists more than 3 tools, and these are left out: t3, t4, .*t22 and 7 more; further pages were not asked for$/,
    );
  });

  test("more bytes than allowed -> the items that fit, in order; the rest is named", () => {
    const text = "x".repeat(LIMITS.listBytes / 2);
    const list = listOf(10, [{ name: "a", text }, { name: "b", text }, { name: "c" }]);
    expect(list.items.map(({ name }) => name)).toEqual(["a"]);
    expect(list.note()).toBe("lists more than 32 MiB of tools, and these are left out: b, c");
  });
});
