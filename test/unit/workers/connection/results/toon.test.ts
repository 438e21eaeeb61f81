/** Owns: JSON becomes TOON only if that is shorter and says the same. */
import { decode } from "@toon-format/toon";
import { expect, test } from "vitest";
import { toonOr, toonWanted } from "../../../../../workers/connection/results/structured.ts";
import { sameJson } from "../../../../../workers/shared/json.ts";
import { amount } from "../../../../support/long.ts";
import { randomNumbers, shape, storedText, textOf } from "./support.ts";

/** Random values that are shown and read again. */
const VALUES = amount(400, 2_000);

const rows = Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}`, ok: id % 2 === 0 }));

test("a table of objects -> shorter, marked with one word", () => {
  const json = JSON.stringify({ rows });
  const toon = toonOr(json);
  expect(toon).toMatch(/^TOON:\nrows\[20\]\{id,name,ok\}:\n {2}0,item 0,true\n/);
  expect(toon.length).toBeLessThan(json.length);
});

test.each([
  ["no JSON", "hello: world"],
  ["JSON that is no container", '"hello"'],
  ["broken JSON", '{"a":1'],
  ["not shorter", '{"a":1}'],
  [
    "a number that a double does not hold",
    JSON.stringify({ rows }).replace('"id":7', '"id":12345678901234567890'),
  ],
  ...["1e-400", "1.0", "1.50", "1E3", "9007199254740993", "1e400"].map((number): [string, string] => [
    `a number that would be written otherwise, ${number}`,
    JSON.stringify({ rows }).replace('"id":7', `"id":${number}`),
  ]),
  ["a key that an object has twice", JSON.stringify({ rows }).replace('"id":7', '"id":6,"id":7')],
  ["half a surrogate pair", JSON.stringify({ rows }).replace("item 7", "\\ud800")],
  ["a negative zero", JSON.stringify({ rows }).replace('"id":7', '"id":-0')],
  ["nested 10,000 deep", `${"[".repeat(10_000)}${"]".repeat(10_000)}`],
  ["too long", JSON.stringify(Array(60_000).fill(rows[0]))],
])("%s -> stays as it is", (_name, text) => {
  expect(toonOr(text)).toBe(text);
});

test.each<[unknown, boolean]>([
  [true, true],
  [["a", "b"], true],
  [["a"], false],
  [false, false],
  [undefined, false],
  ["b", false],
])("settings.toonEncode %j -> %j for server b", (setting, expected) => {
  expect(toonWanted(setting, "b")).toBe(expected);
});

test("any JSON value -> the shown text decodes to the same value", () => {
  const random = randomNumbers(42);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const plain = ["", "a", "true", "null", "1", "-0", "1e5", "- x", "a,b", "a:b", "[2]: x", "{}"];
  const odd = [" pad ", "ä😀", "\n", '"', "\\", "#", "\u0000", "\u2028", "__proto__", "constructor"];
  const words = [...plain, ...odd];
  const scalar = (): unknown =>
    pick([
      () => pick(words),
      () => pick(words) + pick(words),
      () => Math.floor(random() * 1e6) - 5e5,
      () => random() * 10 ** Math.floor(random() * 40 - 20),
      () => pick([true, false, null]),
    ])();
  const object = (keys: readonly string[], depth: number): unknown =>
    JSON.parse(
      `{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(value(depth - 1))}`).join(",")}}`,
    );
  const keys = (): string[] => [
    ...new Set(Array.from({ length: Math.floor(random() * 5) }, () => pick(words) + pick(["", "k", "key"]))),
  ];
  const value = (depth: number): unknown => {
    if (depth === 0 || random() < 0.3) return scalar();
    const same = keys();
    return pick([
      () => object(keys(), depth),
      () => Array.from({ length: Math.floor(random() * 6) }, () => value(depth - 1)),
      () => Array.from({ length: 2 + Math.floor(random() * 6) }, () => object(same, 1)),
    ])();
  };
  let encoded = 0;
  for (let run = 0; run < VALUES; run++) {
    const original = [value(4), value(3)];
    const json = JSON.stringify(original, null, pick([0, 2]));
    const shown = toonOr(json);
    const toon = shown.startsWith("TOON:\n");
    if (toon) encoded++;
    const read: unknown = toon ? decode(shown.slice(6)) : JSON.parse(shown);
    expect(sameJson(read, JSON.parse(json)), json).toBe(true);
    if (toon) expect(Buffer.byteLength(shown)).toBeLessThan(Buffer.byteLength(json));
  }
  expect(encoded).toBeGreaterThan(VALUES / 4);
});

test("numbers and colons within strings -> still TOON", () => {
  const tricky = rows.map(({ id }) => ({ id, text: `a: 1.0, -0 "x\\": ${id}`, n: -1.5, e: 1e-7, big: 1e21 }));
  expect(toonOr(JSON.stringify(tricky))).toMatch(/^TOON:\n/);
});

test("JSON of an embedded resource -> TOON after its label", async () => {
  const resource = { uri: "a:b", mimeType: "application/json", text: JSON.stringify({ rows }) };
  const result = await shape({ content: [{ type: "resource", resource }] }, { toon: true });
  expect(textOf(result)).toMatch(/^\[Resource: a:b\]\nTOON:\nrows\[20\]/);
});

test("too long as TOON, too -> the structure is shown, and the file holds the JSON", async () => {
  const json = JSON.stringify(Array.from({ length: 4_000 }, (_, id) => ({ id, name: `item ${id}` })));
  const shown = textOf(await shape({ content: [{ type: "text", text: json }] }, { toon: true }));
  expect(shown).toMatch(/^\[[\d,]+ bytes of JSON in 1 line, shown by its structure\. Full text: .*\.json\]/);
  expect(await storedText(shown)).toBe(json);
});

test("too long as JSON but not as TOON -> the whole TOON", async () => {
  const json = JSON.stringify(Array.from({ length: 1_900 }, (_, id) => ({ id, name: `item ${id}` })));
  expect(json.length).toBeGreaterThan(51_200);
  const result = await shape({ content: [{ type: "text", text: json }] }, { toon: true });
  expect(textOf(result)).toMatch(/^TOON:\n\[1900\]/);
  expect(result).not.toHaveProperty("storedAt");
});

test("a result with text and structured content -> TOON once", async () => {
  const text = JSON.stringify({ rows }, null, 2);
  const result = { content: [{ type: "text", text }], structuredContent: { rows } };
  expect(textOf(await shape(result, { toon: true }))).toMatch(/^TOON:\nrows\[20\]/);
  expect(textOf(await shape({ structuredContent: { rows } }, { toon: true }))).toMatch(/^TOON:\nrows\[20\]/);
  expect(textOf(await shape(result))).toBe(text);
});
