/** Owns: what the person is told without asking: which notices come, how often, and what becomes one. */

import { describe, expect, it, test, vi } from "vitest";
import type { ErrorCode } from "../../../src/shared/protocol/errors.ts";
import type { ServerState, ServerStatus } from "../../../src/shared/protocol/session.ts";
import { createGathering, createHealthNotices, GATHER_MS } from "../../../src/ui/health-notices.ts";
import { joinNotices, type Notice, type ServerNotice } from "../../../src/ui/join-notices.ts";
import { createConfigNotices, createStatusLine, statusText } from "../../../src/ui/notices.ts";
import { PATIENCE_MS } from "../../support/patience.ts";
import { createRecordingContext } from "../recording-context.ts";
import { makeStatus } from "../server-status.ts";

describe("statusText", () => {
  test("no servers, or only disabled ones -> no line", () => {
    expect(statusText([])).toBeUndefined();
    expect(statusText([makeStatus("a", { state: "disabled" })])).toBeUndefined();
  });

  it.each<[ServerState, string]>([
    ["idle", "MCP: 2 servers ready · 4 tools"],
    ["connecting", "MCP: 1 of 2 servers ready · 4 tools"],
    ["connected", "MCP: 2 servers ready · 4 tools"],
    ["needs-auth", "MCP: 1 of 2 servers ready · b needs you: /mcp"],
    ["failed", "MCP: 1 of 2 servers ready · b failed: /mcp"],
    ["closing", "MCP: 2 servers ready · 4 tools"],
    ["disabled", "MCP: 1 server ready · 2 tools"],
  ])("one connected, one %s -> %j", (state, text) => {
    expect(statusText([makeStatus("a"), makeStatus("b", { state })])).toBe(text);
  });

  test("one tool -> singular", () => {
    expect(statusText([makeStatus("a", { toolCount: 1 })])).toBe("MCP: 1 server ready · 1 tool");
  });

  test("several are wrong -> how many, and where to look", () => {
    const states: ServerState[] = ["connected", "failed", "needs-auth"];
    const servers = states.map((state, at) => makeStatus(`s${at}`, { state }));
    expect(statusText(servers)).toBe("MCP: 1 of 3 servers ready · 2 need attention: /mcp");
  });
});

describe("createStatusLine", () => {
  test("the same text again -> told once; another text -> told; no text -> the line is cleared", () => {
    const { ctx, statuses } = createRecordingContext();
    const line = createStatusLine(ctx);
    const servers = [makeStatus("a")];
    line.show([]);
    line.show(servers);
    line.show([makeStatus("a", { pid: 5 })]);
    line.show([makeStatus("a", { state: "connecting" })]);
    line.show([]);
    expect(statuses).toEqual([
      ["pi-mcp-threads", "MCP: 1 server ready · 2 tools"],
      ["pi-mcp-threads", "MCP: 0 of 1 server ready · 2 tools"],
      ["pi-mcp-threads", undefined],
    ]);
  });

  test("no UI -> Pi is told nothing", () => {
    const { ctx, statuses } = createRecordingContext({ hasUI: false });
    createStatusLine(ctx).show([makeStatus("a")]);
    expect(statuses).toEqual([]);
  });
});

test("npm fetches a package -> in place of the tools, also of a server that is only tried", () => {
  const waits = "npm fetches, 12 s, 3 files: x";
  const servers = [makeStatus("a"), makeStatus("b", { state: "connecting", waits })];
  expect(statusText(servers)).toBe(`MCP: 1 of 2 ready · b: ${waits}`);
  expect(statusText([], { server: "new", waits })).toBe(`new: ${waits}`);
  expect(statusText(servers, { server: "new", waits })).toBe(`MCP: 1 of 2 ready · new: ${waits} and 1 more`);
  expect(statusText([makeStatus("a")], { server: "new", waits })).toBe(`MCP: 1 ready · new: ${waits}`);
});

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

const error = { code: "connect_failed" as const, message: "s: no answer.", remedy: "Look." };
const FAILED: Notice = { level: "error", text: "MCP server s: no answer. Look." };
const often = (times: number): Notice => ({ ...FAILED, text: `${FAILED.text} (${times} times)` });
const RECOVERED: Notice = { level: "info", text: "MCP server s works now." };

const UNCALLED: Parameters<ReturnType<typeof createHealthNotices>["onStatus"]>[1] = {
  isCalled: false,
  isSigningIn: false,
};

test("a failure that the test before /mcp add has shown -> not told again; another one, and its end, are", () => {
  const health = createHealthNotices();
  const failed = (code: ErrorCode) => makeStatus("s", { state: "failed", error: { ...error, code } });
  const known = { ...UNCALLED, known: "connect_failed" as const };
  expect(health.onStatus(failed("connect_failed"), known)).toBeUndefined();
  expect(health.onStatus(makeStatus("s"), UNCALLED)).toEqual(RECOVERED);
  expect(health.onStatus(failed("spawn_failed"), known)).toEqual(FAILED);
});

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
    expect(health.onStatus(makeStatus("a"), UNCALLED)?.text).toBe("MCP server a works now.");
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
    ["signed out by the user", {}, { known: "signed-out" }, undefined],
    [
      "a name that acts on a terminal",
      { name: "a\n\u001b[2Jb" },
      {},
      {
        level: "warning",
        text: "MCP server a b needs a sign-in: /mcp auth a b",
      },
    ],
  ])("%s -> $3", (_name, status, surroundings, notice) => {
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
  expect(text("npm fetches, 2 s: x")).toBe(
    "MCP server a: npm fetches, 2 s: x. A first start may take minutes; /mcp shows it.",
  );
  expect(text("npm fetches, 3 s: x")).toBeUndefined();
  expect(text()).toBeUndefined();
  expect(text("npm fetches, 2 s: x")).toBeDefined();
});

const failing = (server: string, text = "no answer. Look."): ServerNotice => ({
  server,
  level: "error",
  text: `MCP server ${server}: ${text}`,
});
const needing = (server: string): ServerNotice => ({
  server,
  level: "warning",
  text: `MCP server ${server} needs a sign-in: /mcp auth ${server}`,
});
const AGAIN: Notice = { level: "info", text: "MCP server a works now." };
const texts = (notices: readonly Notice[]): string[] => notices.map(({ level, text }) => `${level}: ${text}`);

describe("joinNotices", () => {
  test.each<[string, ServerNotice[], string[]]>([
    ["none", [], []],
    ["one", [failing("a")], ["error: MCP server a: no answer. Look."]],
    [
      "three",
      [failing("a"), failing("b"), failing("c")],
      ["error: 3 MCP servers failed:\n3 servers (a, b, c): no answer. Look.\n/mcp doctor says what to do."],
    ],
    [
      "equal but for the names and the wait",
      [
        failing("a", 'the command "x" was not found. It is tried again in 3 s; /mcp reconnect a tries now.'),
        failing("b", "it ended. It wrote:\nno licence."),
        failing("c", 'the command "x" was not found. It is tried again in 9 s; /mcp reconnect c tries now.'),
      ],
      [
        'error: 3 MCP servers failed:\n2 servers (a, c): the command "x" was not found.\nb: it ended. It wrote: no licence.\n/mcp doctor says what to do.',
      ],
    ],
    [
      "failures and sign-ins",
      [needing("x"), failing("a"), needing("y\nz"), failing("b")],
      [
        "error: 2 MCP servers failed:\n2 servers (a, b): no answer. Look.\n/mcp doctor says what to do.",
        "warning: 2 MCP servers need a sign-in: x, y z. /mcp auth signs in.",
      ],
    ],
  ])("%s", (_title, pending, expected) => {
    expect(texts(joinNotices(pending))).toEqual(expected);
  });

  test("hundreds -> ten lines, the others are counted; a long line is cut", () => {
    const many = Array.from({ length: 300 }, (_, i) => failing(`s${i}`, `answer ${i}`));
    const long = { ...failing("a"), text: `MCP server a: ${"x".repeat(5_000)}` };
    const [text = ""] = joinNotices([long, ...many]).map((notice) => notice.text);
    const lines = text.split("\n");
    expect(lines).toHaveLength(12);
    expect(lines.at(-1)).toBe("and 291 more. /mcp doctor says what to do.");
    expect(lines[1]).toHaveLength(300);
    const equal = Array.from({ length: 30 }, (_, i) => failing(`s${i}`));
    expect(joinNotices(equal)[0]?.text).toContain(
      "\n30 servers (s0, s1, s2, s3, s4 and 25 more): no answer.",
    );
    // Of a long output the end says why, and the start of the sentence which server.
    const output = failing("a", `it ended. It wrote:\n${"y".repeat(400)}\nthe cause. Do it.`);
    expect(joinNotices([output, failing("b")])[0]?.text).toContain(
      "\na: it ended. It wrote: the cause. Do it.\n",
    );
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
    for (const name of ["a", "b", "c", "d"]) add(failing(name), true);
    expect(shown).toEqual([]);
    add(failing("e"), false);
    await vi.waitFor(() => expect(shown).toHaveLength(1), PATIENCE_MS);
    expect(shown[0]).toMatch(/^5 MCP servers failed:/);
    add(failing("f"), false);
    expect(shown[1]).toBe("MCP server f: no answer. Look.");
  });

  test("the last of the others connects well -> the notice is shown then", () => {
    const { shown, add } = start();
    add(failing("a"), true);
    add(undefined, false, "b");
    expect(shown).toEqual(["MCP server a: no answer. Look."]);
  });

  test("another server takes long -> shown after the wait", () => {
    vi.useFakeTimers();
    try {
      const { shown, add } = start();
      add(failing("a"), true);
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
    add(failing("a"), true);
    add({ ...AGAIN, server: "a" }, true);
    add(undefined, false, "b");
    expect(shown).toEqual([]);
    add(failing("a"), false);
    add({ ...AGAIN, server: "a" }, true);
    expect(shown).toEqual(["MCP server a: no answer. Look.", "MCP server a works now."]);
  });

  test("without a UI -> each at once", () => {
    const { shown, add } = start(false);
    add(failing("a"), true);
    add(failing("b"), true);
    expect(shown).toHaveLength(2);
  });
});
