/** Deep equality of JSON values. */
import { expect, test } from "vitest";
import { sameJson } from "../../../../../workers/shared/json.ts";

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
