/** Owns: one notice when a server fails, one when it works again, none while all is well. */
import { describe, expect, it, test } from "vitest";
import type { ServerState } from "../../../src/shared/protocol/status.ts";
import { createHealthNotices, type Notice } from "../../../src/ui/health-notices.ts";
import { makeStatus } from "../server-status.ts";

const error = { code: "connect_failed" as const, message: "s: no answer.", remedy: "Look." };
const FAILED: Notice = { level: "error", text: "MCP server s: no answer. Look." };
const RECOVERED: Notice = { level: "info", text: "MCP server s works again." };

/** The notice after each of these states of the server `s`, one after the other. */
function told(states: readonly ServerState[]): (Notice | undefined)[] {
  const health = createHealthNotices();
  return states.map((state) =>
    health.onStatus(
      makeStatus("s", { state, ...(state === "failed" || state === "needs-auth" ? { error } : {}) }),
    ),
  );
}

describe("createHealthNotices", () => {
  it.each<[string, ServerState[], (Notice | undefined)[]]>([
    [
      "all is well",
      ["idle", "connecting", "connected", "idle"],
      [undefined, undefined, undefined, undefined],
    ],
    ["disabled", ["disabled"], [undefined]],
    ["fails", ["connecting", "failed"], [undefined, FAILED]],
    ["needs sign-in", ["connecting", "needs-auth"], [undefined, FAILED]],
    ["fails again and again", ["failed", "connecting", "failed"], [FAILED, undefined, undefined]],
    ["fails, comes back", ["failed", "connecting", "connected"], [FAILED, undefined, RECOVERED]],
    ["comes back, goes on", ["failed", "connected", "connected"], [FAILED, RECOVERED, undefined]],
    ["fails, comes back, fails", ["failed", "connected", "failed"], [FAILED, RECOVERED, FAILED]],
  ])("a server that %s: %j -> %j", (_name, states, notices) => {
    expect(told(states)).toEqual(notices);
  });

  test("two servers -> each has its own notices", () => {
    const health = createHealthNotices();
    expect(health.onStatus(makeStatus("a", { state: "failed", error }))?.text).toMatch(/^MCP server a: /);
    expect(health.onStatus(makeStatus("b"))).toBeUndefined();
    expect(health.onStatus(makeStatus("b", { state: "failed", error }))?.level).toBe("error");
    expect(health.onStatus(makeStatus("a"))?.text).toBe("MCP server a works again.");
  });

  test("a failure for another reason than before -> a new notice", () => {
    const health = createHealthNotices();
    health.onStatus(makeStatus("s", { state: "failed", error }));
    const other = { code: "needs_auth" as const, message: "s: answered 401." };
    expect(health.onStatus(makeStatus("s", { state: "needs-auth", error: other }))).toMatchObject({
      text: "MCP server s: answered 401.",
    });
  });
});

test("an error with the long words of a server -> cut, with its remedy still visible", () => {
  const error = { code: "connect_failed" as const, message: "no ".repeat(100_000), remedy: "Try again." };
  const text = createHealthNotices().onStatus(makeStatus("s", { state: "failed", error }))?.text ?? "";
  expect(text.length).toBeLessThan(5_000);
  expect(text).toMatch(/Try again\.$/);
});
