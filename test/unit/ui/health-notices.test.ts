/** Owns: one notice when a server fails or needs a sign-in, one when it works again, none while all is well. */
import { describe, expect, it, test } from "vitest";
import type { ServerState, ServerStatus } from "../../../src/shared/protocol/status.ts";
import { createHealthNotices, type Notice } from "../../../src/ui/health-notices.ts";
import { makeStatus } from "../server-status.ts";

const error = { code: "connect_failed" as const, message: "s: no answer.", remedy: "Look." };
const FAILED: Notice = { level: "error", text: "MCP server s: no answer. Look." };
const often = (times: number): Notice => ({ ...FAILED, text: `${FAILED.text} (${times} times)` });
const RECOVERED: Notice = { level: "info", text: "MCP server s works again." };

const UNCALLED = { isCalled: false, isSigningIn: false, isSignedOut: false };

/** The notice after each of these states of the server `s`, one after the other. */
function told(states: readonly ServerState[]): (Notice | undefined)[] {
  const health = createHealthNotices();
  return states.map((state) =>
    health.onStatus(
      makeStatus("s", { state, ...(state === "failed" || state === "needs-auth" ? { error } : {}) }),
      UNCALLED,
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
    ["refuses its header", ["connecting", "needs-auth"], [undefined, FAILED]],
    ["fails again and again", ["failed", "connecting", "failed"], [FAILED, undefined, undefined]],
    ["fails, comes back", ["failed", "connecting", "connected"], [FAILED, undefined, RECOVERED]],
    ["comes back, goes on", ["failed", "connected", "connected"], [FAILED, RECOVERED, undefined]],
    ["fails, comes back, fails", ["failed", "connected", "failed"], [FAILED, RECOVERED, often(2)]],
    [
      "fails at every second call",
      ["failed", "connected", "failed", "connected", "failed", "connected", "failed"],
      [FAILED, RECOVERED, often(2), RECOVERED, undefined, undefined, often(4)],
    ],
  ])("a server that %s: %j -> %j", (_name, states, notices) => {
    expect(told(states)).toEqual(notices);
  });

  test("two servers -> each has its own notices", () => {
    const health = createHealthNotices();
    expect(health.onStatus(makeStatus("a", { state: "failed", error }), UNCALLED)?.text).toMatch(
      /^MCP server a: /,
    );
    expect(health.onStatus(makeStatus("b"), UNCALLED)).toBeUndefined();
    expect(health.onStatus(makeStatus("b", { state: "failed", error }), UNCALLED)?.level).toBe("error");
    expect(health.onStatus(makeStatus("a"), UNCALLED)?.text).toBe("MCP server a works again.");
  });

  test("a failure for another reason than before -> a new notice", () => {
    const health = createHealthNotices();
    health.onStatus(makeStatus("s", { state: "failed", error }), UNCALLED);
    const other = { code: "needs_auth" as const, message: "s: answered 401." };
    expect(health.onStatus(makeStatus("s", { state: "needs-auth", error: other }), UNCALLED)).toMatchObject({
      text: "MCP server s: answered 401.",
    });
  });
});

test("an error with the long words of a server -> cut, with its remedy still visible", () => {
  const error = { code: "connect_failed" as const, message: "no ".repeat(100_000), remedy: "Try again." };
  const text =
    createHealthNotices().onStatus(makeStatus("s", { state: "failed", error }), UNCALLED)?.text ?? "";
  expect(text.length).toBeLessThan(5_000);
  expect(text).toMatch(/Try again\.$/);
});

describe("a server that takes a sign-in", () => {
  const NEEDS: Notice = { level: "warning", text: "MCP server s needs a sign-in: /mcp auth s" };
  const signIn = { state: "needed" } as const;
  const needing = (rest: Partial<ServerStatus> = {}): ServerStatus =>
    makeStatus("s", { state: "needs-auth", lifecycle: "eager", signIn, error, ...rest });

  it.each<[string, Partial<ServerStatus>, Partial<typeof UNCALLED>, Notice | undefined]>([
    ["eager, not called", {}, {}, NEEDS],
    ["keep-alive, not called", { lifecycle: "keep-alive" }, {}, NEEDS],
    ["lazy, not called, its tools are known", { lifecycle: "lazy" }, {}, undefined],
    ["lazy, called", { lifecycle: "lazy" }, { isCalled: true }, NEEDS],
    ["lazy, its tools are unknown", { lifecycle: "lazy", toolsKnown: false }, {}, NEEDS],
    ["signing in now", {}, { isSigningIn: true }, undefined],
    ["signed out by the user", {}, { isSignedOut: true }, undefined],
    [
      "a name that acts on a terminal",
      { name: "a\n\u001b[2Jb" },
      {},
      {
        level: "warning",
        text: "MCP server a b needs a sign-in: /mcp auth a b",
      },
    ],
  ])("%s -> %4$j", (_name, status, surroundings, notice) => {
    expect(createHealthNotices().onStatus(needing(status), { ...UNCALLED, ...surroundings })).toEqual(notice);
  });

  test("needs it again and again, for other reasons too -> one notice; signed in elsewhere -> one more", () => {
    const health = createHealthNotices();
    const other = { code: "needs_auth" as const, message: "s: it has moved.", data: { reason: "moved" } };
    const signedIn = makeStatus("s", { signIn: { state: "signed-in", renews: true } });
    const notices = [needing(), needing({ error: other }), signedIn, signedIn].map((status) =>
      health.onStatus(status, UNCALLED),
    );
    expect(notices).toEqual([
      NEEDS,
      undefined,
      { level: "info", text: "MCP server s is signed in." },
      undefined,
    ]);
  });

  test("connects without a sign-in and wants one for each call -> one notice, and none that is false", () => {
    const health = createHealthNotices();
    const calls = Array.from({ length: 10 }, () => [needing(), makeStatus("s", { signIn })]).flat();
    const notices = calls.map((status) => health.onStatus(status, { ...UNCALLED, isCalled: true }));
    expect(notices.filter((notice) => notice !== undefined)).toEqual([NEEDS]);
  });

  test("loses each token that it was given -> both notices become rare", () => {
    const health = createHealthNotices();
    const signedIn = makeStatus("s", { signIn: { state: "signed-in", renews: true } });
    const calls = Array.from({ length: 64 }, () => [needing(), signedIn]).flat();
    const texts = calls.map((status) => health.onStatus(status, { ...UNCALLED, isCalled: true })?.text);
    const told = texts.filter((text) => text !== undefined);
    expect(told).toHaveLength(14);
    expect(told.at(-2)).toBe(`${NEEDS.text} (64 times)`);
  });

  test("signed in by the user of this session -> no notice beside the sign-in's own line", () => {
    const health = createHealthNotices();
    health.onStatus(needing(), UNCALLED);
    expect(
      health.onStatus(makeStatus("s"), { ...UNCALLED, isCalled: true, isSigningIn: true }),
    ).toBeUndefined();
    expect(health.onStatus(makeStatus("s"), UNCALLED)).toBeUndefined();
  });

  test("it fails while the user signs in -> told, because the sign-in's line does not say why", () => {
    const health = createHealthNotices();
    expect(
      health.onStatus(makeStatus("s", { state: "failed", error }), { ...UNCALLED, isSigningIn: true }),
    ).toEqual(FAILED);
  });
});

test("npm fetches a package for seconds -> one notice; at the next start another one", () => {
  const health = createHealthNotices();
  const text = (waits?: string): string | undefined =>
    health.onStatus(makeStatus("a", { state: "connecting", ...(waits ? { waits } : {}) }), UNCALLED)?.text;
  expect(text("npm fetches x, 2 s")).toBe(
    "MCP server a: npm fetches x, 2 s. A first start may take minutes; /mcp shows it.",
  );
  expect(text("npm fetches x, 3 s")).toBeUndefined();
  expect(text()).toBeUndefined();
  expect(text("npm fetches x, 2 s")).toBeDefined();
});
