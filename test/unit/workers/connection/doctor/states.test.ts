/** Owns: what the doctor says about the state of a server. */
import { expect, test } from "vitest";
import type { ErrorData, WireError } from "../../../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../../../src/shared/protocol/status.ts";
import { judgeState } from "../../../../../workers/connection/doctor/states.ts";
import { makeStatus } from "../../../server-status.ts";

const failed = (
  code: WireError["code"],
  message: string,
  data: ErrorData = {},
  more: Partial<ServerStatus> = {},
): ServerStatus =>
  makeStatus("s", { state: "failed", error: { code, message, remedy: "Do it.", data }, ...more });

test.each([
  ["connected", makeStatus("s"), []],
  ["switched off", makeStatus("s", { state: "disabled" }), []],
  ["over SSE", makeStatus("s", { transport: "sse" }), ["note protocol"]],
  ["a command", failed("spawn_failed", "s: no."), ["error command"]],
  ["a host name", failed("connect_failed", "s: no.", { reason: "ENOTFOUND" }), ["error dns"]],
  ["a port", failed("connect_failed", "s: no.", { reason: "ECONNREFUSED" }), ["error port"]],
  ["a certificate", failed("connect_failed", "s: no.", { reason: "certificate" }), ["error tls"]],
  ["a proxy", failed("connect_failed", "s: no.", { reason: "proxy" }), ["error proxy"]],
  ["a web page", failed("connect_failed", "s: no.", { reason: "web-page" }), ["error address"]],
  ["another reason", failed("connect_failed", "s: no.", { reason: "toString" }), ["error connect"]],
  ["no reason", failed("connect_failed", "s: no."), ["error connect"]],
  ["a pinned revision", failed("connect_failed", "s no.", { reason: "era" }), ["error protocol"]],
  ["too slow", failed("connect_timeout", "s: no."), ["error time-out"]],
  ["its own header is refused", failed("needs_auth", "s: no."), ["error sign-in"]],
  ["it ended and is idle", failed("server_died", "s: no.", {}, { state: "idle" }), ["warning ended"]],
  [
    "it is held back",
    failed("server_died", "s: why.", { reason: "held-back" }, { state: "idle" }),
    ["error crash"],
  ],
  [
    "a sign-in is needed",
    makeStatus("s", { state: "needs-auth", signIn: { state: "needed" } }),
    ["warning sign-in"],
  ],
  [
    "a sign-in is refused",
    makeStatus("s", { state: "needs-auth", signIn: { state: "signed-in", renews: false } }),
    ["warning sign-in"],
  ],
  ["someone signs in now", makeStatus("s", { state: "idle", signIn: { state: "running" } }), []],
])("%s", (_title, status, expected) => {
  expect([judgeState(status) ?? []].flat().map(({ severity, id }) => `${severity} ${id}`)).toEqual(expected);
});

test("an error -> its sentence without the server's name, what it wrote as a detail, its remedy", () => {
  const found = judgeState(failed("connect_failed", "s: It ended. It wrote:\nfirst\nsecond"));
  expect(found).toMatchObject({ title: "It ended. It wrote:", detail: "first\nsecond", remedy: "Do it." });
});

test("status 404 -> the remedy names the path", () => {
  const found = judgeState(failed("connect_failed", "s: no.", { status: 404, reason: "refuses-streamable" }));
  expect(found?.remedy).toMatch(/path of the url/);
});
