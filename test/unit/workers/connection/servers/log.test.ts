/** Owns: a logging notification of any shape -> the line that it becomes; which secrets a text loses while they come and go. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";
import {
  createKnownSecrets,
  createServerLog,
  type ServerLog,
} from "../../../../../workers/connection/servers/log.ts";
import { recordingLog } from "../../recording-log.ts";

const SECRET = "s3cr3t-of-the-test";

function open(): { serverLog: ServerLog; lines: string[] } {
  const { log, lines } = recordingLog();
  return {
    serverLog: createServerLog("db", { log, redact: createRedactor({ values: [SECRET], named: [] }) }),
    lines,
  };
}

const written = (params: unknown): string => {
  const { serverLog, lines } = open();
  serverLog.message(params);
  return lines.join("\n");
};

const deep = (): unknown => JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`);

test.each<[string, unknown, string]>([
  ["debug", { level: "debug", data: "m" }, "debug db debug: m"],
  ["info", { level: "info", data: "m" }, "info db info: m"],
  ["notice", { level: "notice", data: "m" }, "info db notice: m"],
  ["warning", { level: "warning", data: "m" }, "warn db warning: m"],
  ["error", { level: "error", data: "m" }, "error db error: m"],
  ["critical", { level: "critical", data: "m" }, "error db critical: m"],
  ["alert", { level: "alert", data: "m" }, "error db alert: m"],
  ["emergency", { level: "emergency", data: "m" }, "error db emergency: m"],
  ["a logger", { level: "info", logger: "pool", data: "m" }, "info db/pool info: m"],
  [
    "a logger of two lines",
    { level: "info", logger: " a\r\n b\u2028c ", data: "m" },
    "info db/a b c info: m",
  ],
  [
    "a long logger",
    { level: "info", logger: "l".repeat(99), data: "m" },
    `info db/${"l".repeat(60)}… (99 characters) info: m`,
  ],
  ["a logger that is not a text", { level: "info", logger: {}, data: "m" }, "info db info: m"],
  [
    "an object",
    { level: "info", data: { a: [1, null], b: "x\ny" } },
    'info db info: {"a":[1,null],"b":"x\\ny"}',
  ],
  ["a number", { level: "info", data: 5 }, "info db info: 5"],
  ["no data", { level: "info" }, "info db info: "],
  ["an unknown level", { level: "warn", data: "m" }, "info db of an unknown level: m"],
  ["a level of Object.prototype", { level: "toString", data: "m" }, "info db of an unknown level: m"],
  ["no level", { data: "m" }, "info db of an unknown level: m"],
  ["no params", undefined, "info db of an unknown level: "],
  ["params that are not an object", 7, "info db of an unknown level: "],
  ["half a surrogate pair", { level: "info", data: "a\ud83d" }, "info db info: a\ufffd"],
  [
    "a secret",
    { level: "info", logger: SECRET, data: `key ${SECRET}` },
    "info db/[redacted] info: key [redacted]",
  ],
  [
    "a secret in an object",
    { level: "info", data: { [SECRET]: [SECRET] } },
    'info db info: {"[redacted]":["[redacted]"]}',
  ],
  [
    "a secret at the cut",
    { level: "info", data: `${"x".repeat(1_995)}${SECRET}` },
    `info db info: ${"x".repeat(1_995)}[reda… (2,005 characters)`,
  ],
  [
    "a surrogate pair at the cut",
    { level: "info", data: `${"x".repeat(1_999)}😀` },
    `info db info: ${"x".repeat(1_999)}\ufffd… (2,001 characters)`,
  ],
])("%s", (_name, params, line) => {
  expect(written(params)).toBe(line);
});

test("exactly at the limit -> whole; one over -> cut, with its length", () => {
  expect(written({ level: "info", data: "x".repeat(2_000) })).toBe(`info db info: ${"x".repeat(2_000)}`);
  expect(written({ level: "info", data: "x".repeat(2_001) })).toMatch(/x{2000}… \(2,001 characters\)$/);
});

test("data nested beyond what V8 writes -> says so", () => {
  expect(written({ level: "info", data: deep() })).toMatch(/^info db info: \[/);
});

test("a flood -> as many lines as allowed, and how many were dropped; notes are counted by themselves", () => {
  const { serverLog, lines } = open();
  for (let i = 0; i < 5_000; i++) serverLog.message({ level: "error", data: `m${i}` });
  serverLog.note("printed something odd");
  expect(lines).toHaveLength(LIMITS.serverLogLines + 1);
  expect(lines.at(-1)).toBe("info db printed something odd");
  serverLog.close();
  expect(lines.at(-1)).toBe("warn db: 4,900 log messages dropped: it says too much");
});

test("long messages -> no more characters than allowed", () => {
  const { serverLog, lines } = open();
  for (let i = 0; i < 100; i++) serverLog.message({ level: "info", data: "x".repeat(1_000_000) });
  expect(lines.join("").length).toBeLessThanOrEqual(LIMITS.serverLogChars + lines.length * 5);
});

test("a note -> without secrets, bounded", () => {
  const { serverLog, lines } = open();
  serverLog.note(`printed ${SECRET} ${"y".repeat(9_000)}`);
  expect(lines[0]).toMatch(/^info db printed \[redacted\] y+… \(9,019 characters\)$/);
});

test("secrets of the definition and of the sign-in -> a text loses both", () => {
  const secrets = createKnownSecrets();
  secrets.setDefined({ values: ["header-value-1"], named: [] });
  secrets.add("access-token-1");
  expect(secrets.redact("header-value-1 and access-token-1")).toBe("[redacted] and [redacted]");
});

test("a connect that resolves the definition anew -> tokens stay secret, old values do not", () => {
  const secrets = createKnownSecrets();
  secrets.setDefined({ values: ["header-value-1"], named: [] });
  secrets.add("access-token-1");
  secrets.setDefined({ values: ["header-value-2"], named: [] });
  expect(secrets.redact("header-value-1 header-value-2 access-token-1")).toBe(
    "header-value-1 [redacted] [redacted]",
  );
});

test("a token that is renewed 100 times -> the newest 40 are looked for", () => {
  const secrets = createKnownSecrets();
  for (let i = 1; i <= 100; i++) secrets.add(`access-token-${i}`);
  expect(secrets.redact("access-token-60")).toBe("access-token-60");
  expect(secrets.redact("access-token-61 access-token-100")).toBe("[redacted] [redacted]");
});

test("a client secret that is named at each of 50 renewals -> it is never forgotten", () => {
  const secrets = createKnownSecrets();
  for (let i = 1; i <= 50; i++) {
    secrets.add("client-secret-1");
    secrets.add(`access-token-${i}`);
    expect(secrets.redact("client-secret-1")).toBe("[redacted]");
  }
});

test("the redactor that was handed out before a token came -> it knows the token", () => {
  const { redact, add } = createKnownSecrets();
  add("access-token-1");
  expect(redact("access-token-1")).toBe("[redacted]");
});

test("a refresh token that never rotates, and 50 access tokens -> it is secret at every moment", () => {
  const { redact, add } = createKnownSecrets();
  for (let i = 1; i <= 50; i++) {
    add("refresh-token-for-ever");
    add(`access-token-${i}`);
    expect(redact("refresh-token-for-ever")).toBe("[redacted]");
  }
});
