/** Owns: how many notices about servers reach the user and the log, however often a server renames its tools. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  leftOutNotice,
  lineNotice,
  ServerNotices,
} from "../../../../../workers/connection/catalog/notices.ts";
import { Recent } from "../../../../../workers/shared/pace/pace.ts";
import { recordingLog } from "../../recording-log.ts";

const MANY = 10_000;

function open() {
  const shown: string[] = [];
  const { log, lines } = recordingLog();
  const notices = new ServerNotices(log, (text) => shown.push(text));
  const tell = (server: string, text: string, isForUser = true): void =>
    notices.notify({ server, text, isForUser });
  return { tell, shown, lines };
}

describe("ServerNotices", () => {
  test("a text -> shown and logged once", () => {
    const { tell, shown, lines } = open();
    for (let i = 0; i < 3; i++) tell("a", "a: one");
    expect([shown, lines]).toEqual([["a: one"], ["warn a: one"]]);
  });

  test("for the log only -> not shown", () => {
    const { tell, shown, lines } = open();
    tell("a", "a: one", false);
    expect([shown, lines]).toEqual([[], ["warn a: one"]]);
  });

  test("many texts about one server -> three, one that points to the log, no more; the log is bounded, too", () => {
    const { tell, shown, lines } = open();
    for (let i = 0; i < MANY; i++) tell("evil", `evil: ${i}`);
    expect(shown).toEqual([
      "evil: 0",
      "evil: 1",
      "evil: 2",
      "MCP server evil: further notices about its tools are in the log",
    ]);
    expect(lines).toHaveLength(51);
    expect(lines.at(-1)).toBe("warn evil: further lines about its tools are left out in this session");
    tell("good", "good: one");
    expect(shown.at(-1)).toBe("good: one");
    expect(lines.at(-1)).toBe("warn good: one");
  });

  test("texts about many servers -> 20, one that points to the log, no more", () => {
    const { tell, shown } = open();
    for (let i = 0; i < MANY; i++) tell(`s${i}`, `s${i}: one`);
    expect(shown).toHaveLength(LIMITS.noticesASession + 1);
    expect(shown.at(-1)).toBe("MCP servers: further notices about their tools are in the log");
  });
});

test("Recent: a text seen lately is not new; a text seen long ago is new, and memory does not grow", () => {
  const recent = new Recent(3);
  expect(["a", "b", "a", "c", "a", "d"].map((text) => recent.isNew(text))).toEqual([
    ...[true, true, false, true, false, true],
  ]);
  expect([recent.isNew("a"), recent.isNew("b")]).toEqual([false, true]);
});

test.each([
  [false, "a: x"],
  [true, "MCP tools of a: x"],
])("lineNotice, for the user: %s -> %s", (isForUser, text) => {
  expect(lineNotice({ server: "a", text: "x" }, isForUser)).toEqual({ server: "a", text, isForUser });
});

test("leftOutNotice: what is left out, and how it is tried again", () => {
  const notice = leftOutNotice("a");
  expect(notice).toMatchObject({ server: "a", isForUser: true });
  expect(notice.text).toMatch(/^MCP server a: its tools are left out, .*\/mcp reconnect a tries again/);
});
