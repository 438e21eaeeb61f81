/** What parsing loses, equality of values, and the hash of a definition. */
import { describe, expect, it, test } from "vitest";
import {
  hashDefinition,
  hashDefinitions,
  jsonOf,
  keepSource,
  sameJson,
} from "../../../../workers/shared/json.ts";

const BASE = {
  command: "node",
  args: ["server.js", "--flag"],
  env: { A: "1", B: "2" },
  headers: { x: "y", z: "w" },
};

describe("hashDefinition", () => {
  test("any definition -> hex SHA-256", () => {
    expect(hashDefinition(BASE)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashDefinition({})).toMatch(/^[0-9a-f]{64}$/);
  });

  test("keys in another order, at any depth -> the same", () => {
    const turned = {
      headers: { z: "w", x: "y" },
      env: { B: "2", A: "1" },
      args: ["server.js", "--flag"],
      command: "node",
    };
    expect(hashDefinition(turned)).toBe(hashDefinition(BASE));
  });

  it.each([
    ["args", ["--flag", "server.js"]],
    ["auth", "oauth"],
    ["bearerToken", "t"],
    ["bearerTokenEnv", "T"],
    ["command", "bun"],
    ["cwd", "/other"],
    ["env", { A: "1", B: "3" }],
    ["excludeTools", ["a"]],
    ["exposeResources", true],
    ["headers", { x: "y" }],
    ["includeTools", ["a"]],
    ["oauth", { clientId: "a" }],
    ["oauth", false],
    ["url", "https://example.com"],
  ])("another %s -> another hash", (key, value) => {
    expect(hashDefinition({ ...BASE, [key]: value })).not.toBe(hashDefinition(BASE));
  });

  it.each([
    ["lifecycle", "eager"],
    ["idleTimeout", 5],
    ["timeout", 5],
    ["requestTimeoutMs", 5],
    ["startupTimeoutMs", 5],
    ["debug", true],
    ["description", "d"],
    ["enabled", false],
    ["disabled", true],
    ["directTools", true],
    ["unknown", { a: 1 }],
  ])("%s -> the same hash", (key, value) => {
    expect(hashDefinition({ ...BASE, [key]: value })).toBe(hashDefinition(BASE));
  });

  it.each([
    ["a text and a number", { cwd: "1" }, { cwd: 1 }],
    ["an empty and a missing array", { args: [] }, {}],
    ["a value that moved between keys", { cwd: "a" }, { command: "a" }],
    ["one argument and two", { args: ["a b"] }, { args: ["a", "b"] }],
    ["a list and a map of the same", { args: ["a"] }, { args: { 0: "a" } }],
    ["a quoted end of a text", { env: { A: '1","B":"2' } }, { env: { A: "1", B: "2" } }],
    ["null and the text null", { cwd: null }, { cwd: "null" }],
  ])("%s -> different hashes", (_name, a, b) => {
    expect(hashDefinition(a)).not.toBe(hashDefinition(b));
  });

  test("a key that is undefined -> as if it were absent", () => {
    expect(hashDefinition({ ...BASE, cwd: undefined })).toBe(hashDefinition(BASE));
  });

  test("a variable to be interpolated -> hashed as written, whatever the environment", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a file holds.
    const definition = { env: { TOKEN: "${PMT_TEST_TOKEN}" } };
    const before = hashDefinition(definition);
    process.env.PMT_TEST_TOKEN = "secret";
    expect(hashDefinition(definition)).toBe(before);
    delete process.env.PMT_TEST_TOKEN;
  });
});

test("hashDefinitions: a list -> hashes by position", () => {
  expect(hashDefinitions([BASE, {}])).toEqual([hashDefinition(BASE), hashDefinition({})]);
  expect(hashDefinitions([])).toEqual([]);
});

const KEY = "structuredContent";

/** The JSON of the result's structured content, after its message was parsed. */
function kept(message: string): string {
  const { result } = JSON.parse(message) as { result: { structuredContent: object } };
  keepSource(message, KEY, result[KEY]);
  return jsonOf(result[KEY]);
}

test.each([
  ['{"id":12345678901234567890}'],
  ['{"big":1e400,"small":-1e-400}'],
  ["[-0,0.1234567890123456789]"],
  ["[\n1234567890.123456789\n]"],
  ['{"a":[1E5]}'],
  ['{"a":-1.5e+3}'],
  ['{"a": -0.0}'],
  ['{"a":[{"b":9007199254740993}],"c":"]}\\\\\\" 1e999"}'],
  [`{"s":"${"long ".repeat(50)}\\\\","id":9007199254740993}`],
  [`{"s":"${"long ".repeat(50)}\\"{","id":9007199254740993}`],
])("%s -> as it came", (json) => {
  for (const text of [
    `{"jsonrpc":"2.0","id":1,"result":{"${KEY}":${json}}}`,
    `{"result":{"content":[{"text":"\\"${KEY}\\":{\\"a\\":1e999}"}],"${KEY}" : ${json},"_meta":{"${KEY}":{"x":1e999}}}}`,
    `{"_meta":{"${KEY}":{"x":1e999}},"result":{"x":"\\\\","${KEY}":${json}}}`,
    `{"result":{"x":"${KEY}","${KEY}":{"old":1e999},"${KEY}":${json}}}`,
  ])
    expect(kept(text)).toBe(json);
});

test.each([
  [
    '{"a":1.0,"b":123456789012345,"c":0.3333333333333333,"d":9007199254740991}',
    '{"a":1,"b":123456789012345,"c":0.3333333333333333,"d":9007199254740991}',
  ],
  ['{ "a" : "12345678901234567890" }', '{"a":"12345678901234567890"}'],
])("%s -> compact, for no number is lost", (json, expected) => {
  expect(kept(`{"result":{"${KEY}":${json}}}`)).toBe(expected);
});

test("a value that is nested too deep to be written -> nothing is kept and nothing fails", () => {
  const deep = `${"[".repeat(500_000)}1e999${"]".repeat(500_000)}`;
  const value = JSON.parse(deep) as object;
  expect(() => keepSource(`{"${KEY}":${deep}}`, KEY, value)).not.toThrow();
});

test("a hundred thousand other values of that name -> each is read once", () => {
  const others = Array(100_000).fill(`{"${KEY}":{"a":1e999}}`).join();
  const json = `{"id":9007199254740993,"s":"${"x".repeat(1_000_000)}"}`;
  expect(kept(`{"result":{"content":[${others}],"${KEY}":${json}}}`)).toBe(json);
});

test.each<[unknown, unknown, boolean]>([
  [1, 1, true],
  [0, -0, false],
  ["1", 1, false],
  [null, null, true],
  [null, {}, false],
  [[], {}, false],
  [[1, 2], [1, 2], true],
  [[1, 2], [2, 1], false],
  [[1], [1, 2], false],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: undefined }, { b: undefined }, false],
  [{ toString: 1 }, { a: 1 }, false],
  [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}'), true],
  [JSON.parse('{"__proto__":{}}'), { x: {} }, false],
])("%j and %j -> %j", (left, right, expected) => {
  expect(sameJson(left, right)).toBe(expected);
});

test("nested 100,000 deep does not overflow the stack", () => {
  const deep = (): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < 100_000; i++) value = [value];
    return value;
  };
  expect(sameJson(deep(), deep())).toBe(true);
});
