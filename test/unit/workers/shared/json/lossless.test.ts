/** Owns: a value of a message keeps the numbers that came, whatever stands around it. */
import { expect, test } from "vitest";
import { jsonOf, keepSource } from "../../../../../workers/shared/json.ts";

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
