/** Owns: notices of servers that fail at about the same time become one, and nothing is told that no longer holds. */
import { describe, expect, test, vi } from "vitest";
import { createGathering, GATHER_MS } from "../../../../src/ui/gather/gather.ts";
import { joinNotices, type ServerNotice } from "../../../../src/ui/gather/run.ts";
import type { Notice } from "../../../../src/ui/health-notices.ts";

const failed = (server: string): ServerNotice => ({
  server,
  level: "error",
  text: `MCP server ${server}: no answer. Look.`,
});
const needing = (server: string): ServerNotice => ({
  server,
  level: "warning",
  text: `MCP server ${server} needs a sign-in: /mcp auth ${server}`,
});
const again: Notice = { level: "info", text: "MCP server a works again." };
const texts = (notices: readonly Notice[]): string[] => notices.map(({ level, text }) => `${level}: ${text}`);

describe("joinNotices", () => {
  test.each<[string, ServerNotice[], string[]]>([
    ["none", [], []],
    ["one", [failed("a")], ["error: MCP server a: no answer. Look."]],
    [
      "three",
      [failed("a"), failed("b"), failed("c")],
      [
        "error: 3 MCP servers failed:\na: no answer. Look.\nb: no answer. Look.\nc: no answer. Look.\n/mcp doctor says what to do.",
      ],
    ],
    [
      "failures and sign-ins",
      [needing("x"), failed("a"), needing("y\nz"), failed("b")],
      [
        "error: 2 MCP servers failed:\na: no answer. Look.\nb: no answer. Look.\n/mcp doctor says what to do.",
        "warning: 2 MCP servers need a sign-in: x, y z. /mcp auth signs in.",
      ],
    ],
  ])("%s", (_title, pending, expected) => {
    expect(texts(joinNotices(pending))).toEqual(expected);
  });

  test("hundreds -> ten lines, the others are counted; a long line is cut", () => {
    const many = Array.from({ length: 300 }, (_, i) => failed(`s${i}`));
    const long = { ...failed("a"), text: `MCP server a: ${"x".repeat(5_000)}` };
    const [text = ""] = joinNotices([long, ...many]).map((notice) => notice.text);
    const lines = text.split("\n");
    expect(lines).toHaveLength(12);
    expect(lines.at(-1)).toBe("and 291 more. /mcp doctor says what to do.");
    expect(lines[1]).toHaveLength(300);
    const names = joinNotices(Array.from({ length: 30 }, (_, i) => needing(`s${i}`)))[0]?.text;
    expect(names).toMatch(/s9, 20 more\. \/mcp auth/);
  });
});

describe("createGathering", () => {
  function start(gathers = true) {
    const shown: string[] = [];
    const gathering = createGathering(({ text }) => shown.push(text), gathers);
    const add = (
      notice: ServerNotice | (Notice & { server: string }) | undefined,
      isBusy: boolean,
      name = "a",
    ) => gathering.add(notice?.server ?? name, notice, isBusy);
    return { shown, add };
  }

  test("five servers fail while others connect, the last one when none does -> one notice", async () => {
    const { shown, add } = start();
    for (const name of ["a", "b", "c", "d"]) add(failed(name), true);
    expect(shown).toEqual([]);
    add(failed("e"), false);
    await vi.waitFor(() => expect(shown).toHaveLength(1));
    expect(shown[0]).toMatch(/^5 MCP servers failed:/);
    add(failed("f"), false);
    expect(shown[1]).toBe("MCP server f: no answer. Look.");
  });

  test("the last of the others connects well -> the notice is shown then", () => {
    const { shown, add } = start();
    add(failed("a"), true);
    add(undefined, false, "b");
    expect(shown).toEqual(["MCP server a: no answer. Look."]);
  });

  test("another server takes long -> shown after the wait", () => {
    vi.useFakeTimers();
    try {
      const { shown, add } = start();
      add(failed("a"), true);
      vi.advanceTimersByTime(GATHER_MS - 1);
      expect(shown).toEqual([]);
      vi.advanceTimersByTime(1);
      expect(shown).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test("it works again before its notice was shown -> nothing is told; after it -> told at once", () => {
    const { shown, add } = start();
    add(failed("a"), true);
    add({ ...again, server: "a" }, true);
    add(undefined, false, "b");
    expect(shown).toEqual([]);
    add(failed("a"), false);
    add({ ...again, server: "a" }, true);
    expect(shown).toEqual(["MCP server a: no answer. Look.", "MCP server a works again."]);
  });

  test("without a UI -> each at once", () => {
    const { shown, add } = start(false);
    add(failed("a"), true);
    add(failed("b"), true);
    expect(shown).toHaveLength(2);
  });
});
