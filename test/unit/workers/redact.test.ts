/** Secrets -> no text shows them. */
import { expect, test } from "vitest";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import { createRedactor, redactError } from "../../../workers/connection/redact.ts";
import { secretsOf } from "../../../workers/connection/secrets.ts";

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
  expect(createRedactor({ values: secrets, named: [] })(text)).toBe(expected);
});

test("an error loses them everywhere and keeps its code", () => {
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
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

test("an error that a server makes long -> cut, only when its secrets are out", () => {
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
  const message = `${"x".repeat(32 * 1024 - 6)}s3cr3t-token${"y".repeat(1_000_000)}`;
  const error = redactError(new ThreadsError("connect_failed", message), redact) as ThreadsError;
  expect(error.message).toMatch(/x\[redac… \(1,032,772 characters\)$/);
  expect(error.message).not.toContain("s3cr3t");
});

test("a definition's secrets are its header and environment values, and what only the server may see of its URL", () => {
  const http = { kind: "http", url: "https://x", headers: { a: "b" }, sseOnly: false } as const;
  const stdio = { kind: "stdio", command: "c", args: ["x"], env: { k: "v" }, cwd: undefined } as const;
  expect(secretsOf(http, http).values).toEqual(["b"]);
  const url = "https://user%40x:pass%20word@x/mcp?key=a%2Fb";
  expect(secretsOf({ ...http, url }, { ...http, url }).values).toEqual([
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
  expect(secretsOf(written, { ...stdio, args: ["--key=s3cret", "plain"] }).values).toEqual(["v", "s3cret"]);
  const printed = { ...stdio, args: ["!pass show key-of-db"] };
  expect(secretsOf(printed, { ...stdio, args: ["s3cret-of-db"] }).values).toEqual(["v", "s3cret-of-db"]);
});

test.each<[string, string[], string, string]>([
  ["short: as a word", ["hunt2"], "hunt2 xhunt2 hunt2x 'hunt2'", "[redacted] xhunt2 hunt2x '[redacted]'"],
  ["long: anywhere", ["hunter22"], "xhunter22x", "x[redacted]x"],
  ["too short for any", ["abc"], "abc", "abc"],
  ["words that are none", ["true", "None"], "true None", "true None"],
  ["behind its scheme", ["Bearer abc12"], "abc12", "[redacted]"],
])("named as secret, %s", (_name, named, text, expected) => {
  expect(createRedactor({ values: [], named })(text)).toBe(expected);
});

const STDIO = { kind: "stdio" as const, command: "c", args: [] as string[], env: {}, cwd: undefined };
test.each<[string, string[], string[]]>([
  ["a flag and its value", ["--api-key", "abcd", "x"], ["abcd"]],
  ["a flag with its value", ["--token=abcd"], ["abcd"]],
  ["a flag of one dash", ["-password", "abcd"], ["abcd"]],
  ["a variable for a container", ["run", "-e", "GITHUB_TOKEN=abcd"], ["abcd"]],
  ["a header", ["--header", "Authorization: Bearer abcd"], ["Bearer abcd"]],
  ["a header without a space", ["X-Api-Key:abcd"], ["abcd"]],
  ["an address", ["postgres://me:p%40ss@db/x"], ["p%40ss", "p@ss"]],
  ["an address behind a flag", ["--db=postgres://me:pass@db/x"], ["pass", "pass"]],
  ["a query", ["https://x/?token=abcd&page=1234"], ["abcd"]],
  ["a flag that has none", ["--token", "--verbose"], []],
  [
    "names that say nothing",
    ["--author=me", "--monkey", "tree", "--keyboard=dvorak", "C:/x", "--compass=n"],
    [],
  ],
  ["tokens that are counted", ["--max-tokens", "4096", "TOKEN_LIMIT=8192", "--tokenizer=bpe1"], []],
])("literal arguments, %s -> what is secret for sure", (_name, args, named) => {
  expect(secretsOf({ ...STDIO, args }, { ...STDIO, args }).named).toEqual(named);
});

test("short values: secret by the name of their key, their variable, or as the output of a command", () => {
  const env = { DB_PASS: "abcd", PORT: "8080", HOST: "!print host", A: `\${MY_TOKEN}`, B: `\${MY_PORT}` };
  const resolved = { DB_PASS: "abcd", PORT: "8080", HOST: "efgh", A: "ijkl", B: "9090" };
  const secrets = secretsOf({ ...STDIO, env }, { ...STDIO, env: resolved });
  expect(secrets.named).toEqual(["abcd", "efgh", "ijkl"]);
  const headers = { "X-Api-Key": "abcd", Accept: "text" };
  const http = { kind: "http", url: "https://x/?key=efgh", headers, sseOnly: false } as const;
  expect(secretsOf(http, http).named).toEqual(["abcd", "efgh"]);
});

test("a key in the path of a URL is secret, a name is not", () => {
  const url = "https://x/api/s/Zm9vYmFyMTIzNDU2Nzg5MA/model-context-protocol/mcp";
  const http = { kind: "http", url, headers: {}, sseOnly: false } as const;
  expect(secretsOf(http, http).values).toEqual(["Zm9vYmFyMTIzNDU2Nzg5MA"]);
});
