/** Owns: no text shows a secret, in whatever form it appears. */
import { expect, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { inheritedSecrets, secretsOf } from "../../../../../workers/connection/secrets/find.ts";
import {
  boundEnd,
  boundText,
  createRedactor,
  LONGEST_MATCH,
  redactData,
  redactError,
} from "../../../../../workers/connection/secrets/redact.ts";
import { createRandom } from "../../../random.ts";

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

test("an error -> without secrets in all its parts, with the same code", () => {
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

test("a long error of a server -> cut, after its secrets are taken out", () => {
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
  const message = `${"x".repeat(32 * 1024 - 6)}s3cr3t-token${"y".repeat(1_000_000)}`;
  const error = redactError(new ThreadsError("connect_failed", message), redact) as ThreadsError;
  expect(error.message).toMatch(/x\[red\w*… \(1,032,772 characters\)$/);
  expect(error.message).not.toContain("s3cr3t");
});

test("secrets of a definition -> header and environment values, and the parts of its URL for the server alone", () => {
  const http = { kind: "http", url: "https://x", headers: { a: "b" }, type: "http" } as const;
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
    "user@x:pass word",
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
  [
    "a key in the path of an address",
    [
      "-y",
      "mcp-remote",
      "https://mcp.zapier.com/s/q7f3k9x2m5v8b1n4/mcp",
      "--url=https://a.example/docs/k9x2m5v8b1n4q7f3",
    ],
    ["q7f3k9x2m5v8b1n4", "k9x2m5v8b1n4q7f3"],
  ],
  [
    "addresses without a key",
    ["https://github.com/modelcontextprotocol/servers/tree/main", "https://h/v1/mcp"],
    [],
  ],
  ["tokens that are counted", ["--max-tokens", "4096", "TOKEN_LIMIT=8192", "--tokenizer=bpe1"], []],
])("literal arguments, %s -> the values that are certainly secret", (_name, args, named) => {
  expect(secretsOf({ ...STDIO, args }, { ...STDIO, args }).named).toEqual(named);
});

test.each<[string, string[]]>([
  ["mongodb://app:s%40crt@h1:27017,h2:27017/db", ["s%40crt", "s@crt"]],
  ["postgresql://app:hunter@h1:5432,h2:5432/db", ["hunter"]],
  ["mongodb://app:hunter@h1:1,h2:2/db?authMechanismProperties=a:b@c", ["hunter"]],
  ["redis+cluster://:hunter@h1:7000,h2:7000", ["hunter"]],
  ["amqp://u:hunter@h1:5672,h2", ["hunter"]],
  ["postgres://app:hunter@/db?host=/run/pg", ["hunter"]],
  ["postgres://app:a#b@h/db", ["a#b"]],
  ["postgres://app:12#b@h/db", ["12#b"]],
  ["postgres://app:a/b?c@h/db", ["a/b?c"]],
  ["jdbc:postgresql://app:hunter@h/db", ["hunter"]],
  ["jdbc:mysql://h/db?user=person&password=hunt%32r", ["hunt%32r", "hunt2r"]],
  ["jdbc:sqlserver://h:1433;databaseName=shop;password=hunter", ["hunter"]],
  ["postgres://app:hunter@h/db", ["hunter"]],
])("an address that only its program reads, %s -> its password is secret", (address, secrets) => {
  const env = { DATABASE_URL: address };
  const named = secretsOf({ ...STDIO, env }, { ...STDIO, env }).named;
  expect(named).toEqual(expect.arrayContaining(secrets));
  expect(inheritedSecrets(env)).toEqual(expect.arrayContaining(secrets));
});

test("a long text that begins as such an address -> looked through once", () => {
  for (const part of [":", "a:", ":@", "?token", ";key=", "a@"])
    expect(inheritedSecrets({ A: `x://,${part.repeat(200_000)}` }).length).toBeLessThan(500_000);
  expect(inheritedSecrets({ A: `${"a:".repeat(200_000)}//` })).toEqual([]);
});

test("short values -> secret if the name of their key or variable says so, or as the output of a command", () => {
  const env = { DB_PASS: "abcd", PORT: "8080", HOST: "!print host", A: `\${MY_TOKEN}`, B: `\${MY_PORT}` };
  const resolved = { DB_PASS: "abcd", PORT: "8080", HOST: "efgh", A: "ijkl", B: "9090" };
  const secrets = secretsOf({ ...STDIO, env }, { ...STDIO, env: resolved });
  expect(secrets.named).toEqual(["abcd", "efgh", "ijkl"]);
  const headers = { "X-Api-Key": "abcd", Accept: "text" };
  const http = { kind: "http", url: "https://x/?key=efgh", headers, type: "http" } as const;
  expect(secretsOf(http, http).named).toEqual(["abcd", "efgh"]);
});

test("parts of the path of a URL -> a key is secret, a name is not", () => {
  const url = "https://x/api/s/Zm9vYmFyMTIzNDU2Nzg5MA/model-context-protocol/mcp";
  const http = { kind: "http", url, headers: {}, type: "http" } as const;
  expect(secretsOf(http, http).values).toEqual(["Zm9vYmFyMTIzNDU2Nzg5MA"]);
});

const HTTP = { kind: "http", headers: {}, type: "http" } as const;
const pathSecrets = (part: string): readonly string[] => {
  const target = { ...HTTP, url: `https://x/s/${part}/mcp` };
  return secretsOf(target, target).values;
};

test.each([
  "0123456789abcdef0123456789abcdef",
  "6f1c1a52-9c0e-4f7d-8a55-0c7a2b1d3e4f",
  "a8f5f167f44f4964",
  "DEADBEEFDEADBEEF1234",
  "AbCdEfGhIjKlMnOpQrStUvWx",
  "aB3dE5gH7jK9mN1p",
  "V1StGXR8_Z5jdHi6B-myT",
  "01HZX3K9Q4T7V8W2Y5B6N1M0PA",
  "abc.DEF123.ghiJKL456mno789",
  "NmE3ZjQyZTAtOTg=",
  "pk_live_51H8xYzABCDEFG",
])("a key in the path, %s -> secret", (key) => {
  expect(pathSecrets(key)).toContain(key);
});

test("a part of the path that is longer than any name -> secret, found in time that does not depend on its letters", () => {
  for (const part of ["a".repeat(100_000), `${"Aaa".repeat(60)}.x1y2`])
    expect(pathSecrets(part)).toEqual([part]);
});

test("a key in the path that is percent-encoded -> secret as it is written and as it is", () => {
  expect(pathSecrets("abc%2BDEF123ghiJKL456mno789")).toEqual([
    "abc%2BDEF123ghiJKL456mno789",
    "abc+DEF123ghiJKL456mno789",
  ]);
});

test.each([
  "v1",
  "organizations",
  "model-context-protocol-v1",
  "organizations-2024-report",
  "listOrganizationMembersForUser",
  "123456789012345678901234",
  "mcp-server-everything-2026",
  "My-Very-Long-Workspace-Name",
  "us-central1-aiplatform",
  "OAuth2AuthorizationServer",
  "documentation-2025-11-25",
  "GraphQLEndpointForHTTP",
  "v2beta1-preview-features",
  "Microsoft.ContainerService",
  "@modelcontextprotocol",
])("a name in the path, %s -> stays readable", (name) => {
  expect(pathSecrets(name)).toEqual([]);
});

test("random keys of any usual alphabet -> 19 of 20 and more are found", () => {
  const base62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const alphabets = [
    ["0123456789abcdef", 16],
    [base62, 16],
    [`${base62}-_`, 22],
    ["ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 26],
    ["abcdefghijklmnopqrstuvwxyz0123456789", 20],
  ] as const;
  for (const [alphabet, length] of alphabets) {
    const random = createRandom(7);
    const draw = (): string => alphabet[random.below(alphabet.length)] ?? "";
    const keys = Array.from({ length: 500 }, () => Array.from({ length }, draw).join(""));
    expect(keys.filter((key) => !pathSecrets(key).includes(key)).length).toBeLessThan(25);
  }
});

const KEY = 's3cr3t/töken+of é"1"';
const bytes = Buffer.from(KEY);
const jsonAscii = (text: string): string =>
  JSON.stringify(text).replace(/[\u0080-\uffff]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
test.each<[string, string]>([
  ["base64", bytes.toString("base64")],
  ["base64 without its padding", bytes.toString("base64").replace(/=+$/, "")],
  ["base64 for URLs", bytes.toString("base64url")],
  ["hex", bytes.toString("hex")],
  ["hex in capitals", bytes.toString("hex").toUpperCase()],
  ["percent-encoded", encodeURIComponent(KEY)],
  ["percent-encoded in small letters", encodeURIComponent(KEY).toLowerCase()],
  ["percent-encoded but for the slash", encodeURIComponent(KEY).replace("%2F", "/")],
  ["as a form encodes it", new URLSearchParams({ k: KEY }).toString().slice(2)],
  ["in JSON", JSON.stringify(KEY).slice(1, -1)],
  ["in JSON of ASCII", jsonAscii(KEY).slice(1, -1)],
  ["in JSON with an escaped slash", JSON.stringify(KEY).replace("/", "\\/").slice(1, -1)],
  ["in JSON within JSON", JSON.stringify(JSON.stringify(KEY)).slice(3, -3)],
  ["in HTML", KEY.replaceAll('"', "&quot;")],
  ["in HTML by numbers", KEY.replaceAll('"', "&#34;").replace("/", "&#x2F;")],
])("a secret, %s -> masked", (_name, form) => {
  const redact = createRedactor({ values: [KEY], named: [] });
  expect(redact(`key=${form}&next`)).toBe("key=[redacted]&next");
});

test.each(["a:", "user:", "me@example.com:", "x".repeat(50)])(
  "base64 of %j and a secret -> no secret left",
  (before) => {
    const secret = "hunter-of-the-test-22";
    const redact = createRedactor({ values: [secret], named: [] });
    for (const behind of ["", "!", "!!"]) {
      const encoded = Buffer.from(`${before}${secret}${behind}`).toString("base64");
      for (const form of [encoded, encoded.replace(/=+$/, "")]) {
        const shown = redact(`token ${form} was refused`);
        expect(shown).toContain("[redacted]");
        expect(Buffer.from(shown.slice("token ".length), "base64").toString("latin1")).not.toContain(
          "hunter",
        );
        expect(shown.length).toBeLessThan(before.length * 2 + 50);
      }
    }
  },
);

test.each<[string, string]>([
  ["Authorization: Basic bWU6aHVudGVyMg== was refused", "Authorization: Basic [redacted] was refused"],
  ["bearer eyJhbGciOi.J9.sig-_, then", "bearer [redacted], then"],
  ['{"authorization":"Bearer abc123"}', '{"authorization":"Bearer [redacted]"}'],
  ["?auth=Bearer%20abc123&x", "?auth=Bearer%20[redacted]&x"],
  ["Missing Bearer token.", "Missing Bearer token."],
  ["Basic authentication required", "Basic authentication required"],
  ["BASIC AUTH REQUIRED", "BASIC AUTH REQUIRED"],
  ['Bearer realm="x", error="invalid_token"', 'Bearer realm="x", error="invalid_token"'],
  ['Bearer resource_metadata="https://a.test/b1"', 'Bearer resource_metadata="https://a.test/b1"'],
])("credentials that are not in a definition: %s -> %s", (text, expected) => {
  expect(createRedactor({ values: [], named: [] })(text)).toBe(expected);
});

test("a secret of several lines -> masked as a whole, and line by line", () => {
  const lines = [
    "-----BEGIN KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0",
    "BAQEFAASCBKcwggSjAgEAAo",
    "-----END KEY-----",
  ];
  const redact = createRedactor({ values: [lines.join("\n")], named: [] });
  expect(redact(`key: ${lines.join("\n")}.`)).toBe("key: [redacted].");
  for (const line of lines) expect(redact(`  ${line}`)).toBe("  [redacted]");
});

test("a text of thousands of words as a secret -> masked word by word, in a short time", () => {
  const words = Array.from({ length: 5_000 }, (_, i) => `word-number-${i}`);
  const redact = createRedactor({ values: [words.join(" ")], named: [] });
  expect(redact("word-number-7 was refused")).toBe("[redacted] was refused");
  const startedAt = performance.now();
  redact("some words of a server ".repeat(10_000));
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});

test("data of an error, nested 2,000 deep -> without secrets, and no stack overflow", () => {
  const deep = JSON.parse(`${"[".repeat(2_000)}"s3cr3t-token"${"]".repeat(2_000)}`);
  const error = new ThreadsError("call_rejected", "no", { data: { deep } });
  const shown = redactError(error, createRedactor({ values: ["s3cr3t-token"], named: [] })) as ThreadsError;
  expect(JSON.stringify(shown.data)).toContain('["[redacted]"]');
});

test("a secret of 128 KB -> nothing of it is left as it is written", () => {
  const secret = Array.from({ length: 16_000 }, (_, i) => i.toString(16).padStart(8, "+")).join("");
  const redact = createRedactor({ values: [secret], named: [] });
  expect(redact(`a ${secret} b`)).toMatch(/^a (\[redacted\])+ b$/);
});

test("a secret of 16 KB -> nothing of it is left, in any form", () => {
  const secret = Array.from({ length: 2_000 }, (_, i) => i.toString(16).padStart(8, "g")).join("");
  const redact = createRedactor({ values: [secret], named: [] });
  for (const form of [secret, Buffer.from(secret).toString("hex"), encodeURIComponent(secret)]) {
    expect(redact(`a ${form} b`)).toMatch(/^a (\[redacted\])+ b$/);
  }
  expect(redact(Buffer.from(secret).toString("base64"))).toMatch(/^(\[redacted\].{0,4})+$/);
});

test("two secrets, one of which begins with the other -> both are masked whole", () => {
  const redact = createRedactor({ values: ["abc+efgh", "abc+efgh/ijkl"], named: [] });
  expect(redact("abc%2Befgh%2Fijkl abc+efgh/ijkl abc+efgh")).toBe("[redacted] [redacted] [redacted]");
});

test("boundText: a text of 64 MiB -> only its beginning is searched", () => {
  let looked = 0;
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
  const shown = boundText(`s3cr3t-token ${"x".repeat(64 * 1024 * 1024)}`, 100, (text) => {
    looked += text.length;
    return redact(text);
  });
  expect(looked).toBeLessThan(20_000);
  expect(shown).toBe(`[redacted] ${"x".repeat(87)}… (67,108,875 characters)`);
});

test("boundText: the beginning of a text, and the length of the whole -> that length", () => {
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
  const start = `s3cr3t-token ${"x".repeat(1024 * 1024)}`;
  expect(boundText(start, 100, redact, 5_000_000)).toBe(
    `[redacted] ${"x".repeat(87)}… (4,999,998 characters)`,
  );
});

/** Long texts of only secrets: the masked text is much shorter than the part that was searched. */
test.each([20, 400, 1_000, 5_000])(
  "a text cut within a secret of %i characters -> no part of it stays",
  (length) => {
    const secret = Array.from({ length }, (_, i) => "0123456789abcdef"[(i * 7 + (i >> 4)) % 16]).join("");
    const redact = createRedactor({ values: [secret], named: [] });
    for (const size of [30_000, 30_001, 30_017, 40_003]) {
      const text = `${secret} `.repeat(Math.ceil(80_000 / length));
      const start = boundText(text.slice(0, size), 4_000, redact);
      expect(start.replace(/… \([\d,]+ characters\)$/, "")).toMatch(/^(\[redacted\]| )*(\[[redact]*)?$/);
      const end = boundEnd(text.slice(-size), 4_000, { isCut: true, redact });
      expect(end).toMatch(/^([redact]*\])?(\[redacted\]| )*$/);
    }
  },
);

test("boundEnd -> begins with a whole line if there is one; the whole text if nothing is missing", () => {
  const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
  const text = "t-token was first\nsecond s3cr3t-token\nthird";
  expect(boundEnd(text, 100, { isCut: true, redact })).toBe("second [redacted]\nthird");
  expect(boundEnd("s3cr3t-token", 100, { isCut: false, redact })).toBe("[redacted]");
  expect(boundEnd(text, 5, { isCut: true, redact })).toBe("third");
  expect(boundEnd("x".repeat(LONGEST_MATCH), 100, { isCut: true, redact })).toBe("");
});

test("redactData: numbers that look like a secret -> stay numbers", () => {
  const redact = createRedactor({ values: [], named: ["9000"] });
  expect(redactData({ retryAfterMs: 9_000, told: "9000", deep: [{ limit: 9_000 }] }, redact)).toEqual({
    retryAfterMs: 9_000,
    told: "[redacted]",
    deep: [{ limit: 9_000 }],
  });
});

test("an address with a name and no password -> the name is secret", () => {
  const at = (url: string) => {
    const http = { kind: "http", url, headers: {}, type: "http" } as const;
    return createRedactor(secretsOf(http, http));
  };
  expect(at("https://k3y7@x/")("k3y7 was refused")).toBe("[redacted] was refused");
  expect(at("https://user:pass1@x/")("user pass1 was refused")).toBe("user [redacted] was refused");
  const basic = Buffer.from("me:p@ss").toString("base64");
  expect(at("https://me:p%40ss@x/")(`got ${basic}`)).not.toContain(basic.slice(0, 6));
});

test("a short header that is not a word -> masked as a word; a word stays", () => {
  const headers = { "x-team": "a1b2c", accept: "text" };
  const http = { kind: "http", url: "https://x/", headers, type: "http" } as const;
  expect(createRedactor(secretsOf(http, http))("a1b2c xa1b2c text")).toBe("[redacted] xa1b2c text");
});

test("query, userinfo and headers of an address -> masked, also decoded; its words are not", () => {
  const url = "https://me:p%40ssw0rd@a.test/mcp?key=abcd1234&v=1";
  const headers = { Authorization: "Bearer tok-123", "x-v": "1" };
  const http = { kind: "http", url, headers, type: "http" } as const;
  expect(
    createRedactor(secretsOf(http, http))("abcd1234 p@ssw0rd p%40ssw0rd tok-123, Bearer tok-123; v 1"),
  ).toBe("[redacted] [redacted] [redacted] [redacted], [redacted]; v 1");
});

test("secrets of an inherited environment -> by the names of its variables, and passwords of addresses; no places, and no words for a kind", () => {
  const env = {
    ...{
      GH_TOKEN: "ghp_1",
      ANTHROPIC_API_KEY: "sk-1",
      AWS_SECRET_ACCESS_KEY: "aws",
      PGPASSWORD: "pg",
      SET: undefined,
    },
    DATABASE_URL: "postgres://me:p%40ss@db.example/x?sslmode=require",
    HTTPS_PROXY: "http://me:proxied@proxy.example:3128",
    ...{
      PWD: "/work",
      SSH_AUTH_SOCK: "/run/agent",
      PASSWORD_STORE_DIR: "/home/me/pw",
      AUTH_URL: "https://a.example",
      GOOGLE_APPLICATION_CREDENTIALS: "/home/me/service-account.json",
    },
    ...{ AUTH_METHOD: "password", GCM_CREDENTIAL_STORE: "secretservice", TOKEN_TYPE: "personal-access" },
    ...{ PATH: "/bin", LANG: "C", MAX_THINKING_TOKENS: "31999", TOKENIZERS_PARALLELISM: "false" },
  };
  expect(inheritedSecrets(env)).toEqual([
    "ghp_1",
    "sk-1",
    "aws",
    "pg",
    "p%40ss",
    "p@ss",
    "proxied",
    "proxied",
  ]);
});

test("a secret that is a word which everybody has -> texts and addresses keep it", () => {
  const redact = createRedactor({
    values: ["localhost", "Required"],
    named: ["postgres", "password", "postgres1"],
  });
  const text = "postgres://localhost:5432/app: password required";
  expect(redact(`${text} for postgres1`)).toBe(`${text} for [redacted]`);
});
