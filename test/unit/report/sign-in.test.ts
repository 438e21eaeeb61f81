/** Owns: a server's sign-in in words, and which servers a sign-in would help. */
import { describe, expect, it, test } from "vitest";
import { canSignIn, lacksKey, needsText, renderStatus, signInText } from "../../../src/report/status.ts";
import type { SignInStatus } from "../../../src/shared/protocol/sign-in.ts";
import type { ServerState } from "../../../src/shared/protocol/status.ts";
import { makeReport, makeStatus } from "../server-status.ts";

const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const signedIn = (expiresInMs: number | undefined, renews: boolean): SignInStatus => ({
  state: "signed-in",
  renews,
  ...(expiresInMs === undefined ? {} : { expiresAt: NOW + expiresInMs }),
});

describe("signInText", () => {
  it.each<[SignInStatus, string]>([
    [{ state: "needed" }, "needs sign-in"],
    [{ state: "running" }, "signing in"],
    [signedIn(42 * MINUTE + 59_000, true), "signed in, expires in 42 min, renews itself"],
    [signedIn(42 * MINUTE, false), "signed in, expires in 42 min, cannot renew"],
    [signedIn(undefined, true), "signed in, renews itself"],
    [signedIn(undefined, false), "signed in, cannot renew"],
    [signedIn(59_999, true), "signed in, expires in less than a min, renews itself"],
    [signedIn(MINUTE, true), "signed in, expires in 1 min, renews itself"],
    [signedIn(119 * MINUTE, true), "signed in, expires in 119 min, renews itself"],
    [signedIn(120 * MINUTE, true), "signed in, expires in 2 h, renews itself"],
    [signedIn(47.9 * 60 * MINUTE, true), "signed in, expires in 47 h, renews itself"],
    [signedIn(48 * 60 * MINUTE, true), "signed in, expires in 2 days, renews itself"],
    [signedIn(0, true), "signed in, expired, renews itself"],
    [signedIn(-MINUTE, false), "signed in, expired, cannot renew"],
  ])("%j -> %s", (signIn, text) => {
    expect(signInText(signIn, NOW)).toBe(text);
  });
});

describe("canSignIn", () => {
  it.each<[ServerState, SignInStatus | undefined, boolean]>([
    ["needs-auth", { state: "needed" }, true],
    ["idle", { state: "needed" }, true],
    ["needs-auth", signedIn(MINUTE, true), true],
    ["needs-auth", { state: "running" }, true],
    ["connected", signedIn(MINUTE, true), false],
    ["needs-auth", undefined, false],
    ["connected", undefined, false],
  ])("%s, %j -> %s", (state, signIn, can) => {
    expect(canSignIn(makeStatus("s", { state, ...(signIn ? { signIn } : {}) }))).toBe(can);
  });
});

describe("/mcp", () => {
  const error = {
    code: "needs_auth" as const,
    message: "s: it needs a sign-in.",
    remedy: "Run pi and /mcp auth s.",
  };
  it.each<[ServerState, SignInStatus | undefined, string]>([
    ["needs-auth", { state: "needed" }, "s: needs sign-in (http, 2 tools)"],
    ["needs-auth", { state: "running" }, "s: signing in (http, 2 tools)"],
    ["needs-auth", signedIn(MINUTE, true), "s: needs sign-in (http, 2 tools)"],
    ["needs-auth", undefined, "s: needs sign-in (http, 2 tools)"],
    ["idle", { state: "needed" }, "s: idle (http, 2 tools, needs sign-in)"],
    [
      "connected",
      signedIn(42 * MINUTE, true),
      "s: connected (http, 2 tools, signed in, expires in 42 min, renews itself)",
    ],
    ["idle", signedIn(undefined, false), "s: idle (http, 2 tools, signed in, cannot renew)"],
    ["connected", undefined, "s: connected (http, 2 tools)"],
  ])("a server that is %s, %j -> %s", (state, signIn, line) => {
    const servers = [makeStatus("s", { state, transport: "http", ...(signIn ? { signIn } : {}) })];
    expect(renderStatus(makeReport({ servers }), NOW).split("\n")[1]).toBe(line);
  });

  test("a server that needs a sign-in -> its error stands behind the words", () => {
    const servers = [makeStatus("s", { state: "needs-auth", signIn: { state: "needed" }, error })];
    expect(renderStatus(makeReport({ servers }), NOW).split("\n")[1]).toBe(
      "s: needs sign-in (stdio, 2 tools): it needs a sign-in. Run pi and /mcp auth s.",
    );
  });
});

test.each<[reason: string | undefined, words: string, isKey: boolean]>([
  ["key-wanted", "needs a key", true],
  ["key-refused", "key refused", true],
  ["not-signed-in", "needs sign-in", false],
  [undefined, "needs sign-in", false],
])("a server that answers 401, for the reason %s -> %s", (reason, words, isKey) => {
  const error = {
    code: "needs_auth",
    message: "s: answered 401.",
    ...(reason && { data: { reason } }),
  } as const;
  const status = makeStatus("s", { state: "needs-auth", error });
  expect([needsText(status), lacksKey(status)]).toEqual([words, isKey]);
  expect(lacksKey(makeStatus("s", { state: "failed", error }))).toBe(false);
});
