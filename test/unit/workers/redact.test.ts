/** Secrets -> no text shows them. */
import { expect, test } from "vitest";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import { createRedactor, redactError, secretsOf } from "../../../workers/connection/redact.ts";

test.each<[string, string[], string, string]>([
  ["as it is", ["s3cr3t-token"], "with s3cr3t-token twice s3cr3t-token", "with [redacted] twice [redacted]"],
  ["the token of a header", ["Bearer abcdefgh1"], "token abcdefgh1", "token [redacted]"],
  ["in a URL", ["p@ss word&1"], "?key=p%40ss%20word%261", "?key=[redacted]"],
  ["in JSON", ['quo"te\\123'], '{"k":"quo\\"te\\\\123"}', '{"k":"[redacted]"}'],
  ["in base64", ["user:password"], `Basic ${btoa("user:password")}`, "Basic [redacted]"],
  ["the longer of two first", ["abcdefgh", "abcdefgh-long"], "abcdefgh-long", "[redacted]"],
  ["special characters", ["a.c*(d)+[e]"], "a.c*(d)+[e] abc", "[redacted] abc"],
  ["short values are none", ["1", "true", "dev"], "1 true dev", "1 true dev"],
  ["no secrets", [], "text", "text"],
])("%s", (_name, secrets, text, expected) => {
  expect(createRedactor(secrets)(text)).toBe(expected);
});

test("an error loses them everywhere and keeps its code", () => {
  const redact = createRedactor(["s3cr3t-token"]);
  const error = redactError(
    new ThreadsError("server_died", "said s3cr3t-token", {
      remedy: "unset s3cr3t-token",
      data: { stderrTail: "s3cr3t-token", deep: [{ "s3cr3t-token": 1 }], status: 5 },
    }),
    redact,
  );
  expect(error).toMatchObject({
    code: "server_died",
    message: "said [redacted]",
    remedy: "unset [redacted]",
    data: { stderrTail: "[redacted]", deep: [{ "[redacted]": 1 }], status: 5 },
  });
});

test("a definition's secrets are its header and environment values, and what only the server may see of its URL", () => {
  const http = { kind: "http", url: "https://x", headers: { a: "b" }, sseOnly: false } as const;
  const stdio = { kind: "stdio", command: "c", args: ["x"], env: { k: "v" }, cwd: undefined } as const;
  expect(secretsOf(http, http)).toEqual(["b"]);
  const url = "https://user%40x:pass%20word@x/mcp?key=a%2Fb";
  expect(secretsOf({ ...http, url }, { ...http, url })).toEqual([
    "b",
    "key=a%2Fb",
    "user%40x",
    "pass%20word",
    "key=a/b",
    "user@x",
    "pass word",
    "a/b",
  ]);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable as a file writes it.
  const written = { ...stdio, args: ["--key=${KEY}", "plain"] };
  expect(secretsOf(written, { ...stdio, args: ["--key=s3cret", "plain"] })).toEqual(["v", "s3cret"]);
  const printed = { ...stdio, args: ["!pass show key-of-db"] };
  expect(secretsOf(printed, { ...stdio, args: ["s3cret-of-db"] })).toEqual(["v", "s3cret-of-db"]);
});
