/** The text of a failure, and the bounds of its data. */
import { expect, test } from "vitest";
import { boundJson, type Failure, failureText } from "../../../../src/shared/text/failure.ts";

test.each<[string, Failure, string]>([
  ["the message alone", { message: "s/t was cancelled." }, "s/t was cancelled."],
  ["with a remedy", { message: "No.", remedy: "Do it." }, "No. Do it."],
  [
    "with the parameters",
    { message: "No.", expected: "s__t(a: string)" },
    "No.\nExpected parameters: s__t(a: string)",
  ],
  ["with an HTTP status", { message: "No.", data: { status: 503 } }, "No. (HTTP 503)"],
  ["with a status that it names", { message: "No: HTTP 503.", data: { status: 503 } }, "No: HTTP 503."],
  [
    "with the last words of the server",
    {
      message: "It died.",
      remedy: "Again.",
      data: { stderrTail: "\u001b[31mTraceback\u001b[0m\r\n\n  boom\u0007\n" },
    },
    "It died.\nIts last words on stderr:\n  Traceback\n    boom\nAgain.",
  ],
  [
    "with last words that it quotes",
    { message: "It died: boom", data: { stderrTail: "boom\n" } },
    "It died: boom",
  ],
])("%s", (_name, failure, expected) => {
  expect(failureText(failure)).toBe(expected);
});

test("long last words -> their last lines", () => {
  const stderrTail = Array.from({ length: 500 }, (_, i) => `line ${i}`).join("\n");
  const lines = failureText({ message: "It died.", data: { stderrTail } }).split("\n");
  expect(lines).toHaveLength(12);
  expect(lines.at(-1)).toBe("  line 499");
});

test.each<[string, unknown, unknown]>([
  ["small data", { a: [1, "b"] }, { a: [1, "b"] }],
  ["nothing", undefined, null],
  ["exactly at the limit", "x".repeat(4_094), "x".repeat(4_094)],
  ["one over", "x".repeat(4_095), { truncated: true, bytes: 4_097, start: `"${"x".repeat(681)}` }],
  ["a big integer", 1n, { unreadable: expect.stringContaining("BigInt") }],
])("data: %s", (_name, data, expected) => {
  expect(boundJson(data)).toEqual(expected);
});

test("data that is cut -> secrets are removed before, so that no part of a cut secret stays", () => {
  const secret = "s3cr3t-of-the-test";
  const redact = (text: string): string => text.replaceAll(secret, "[redacted]");
  for (let before = 660; before < 690; before++) {
    const data = { a: `${"x".repeat(before)}${secret}${"y".repeat(9_000)}` };
    expect(JSON.stringify(boundJson(data, { redact }))).not.toContain(secret.slice(0, 3));
  }
  expect(boundJson({ a: secret }, { redact })).toEqual({ a: secret });
});

test("data that is cut -> the JSON of the rest is within the limit, for any characters", () => {
  for (const text of ["\u0001", '"', "日", "😀", "\ud83d"]) {
    expect(Buffer.byteLength(JSON.stringify(boundJson({ text: text.repeat(9_000) })))).toBeLessThanOrEqual(
      4_096,
    );
  }
});
