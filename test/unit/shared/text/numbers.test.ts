/** Owns: numbers that JavaScript cannot hold, in arguments and in what is printed. */
import { expect, test } from "vitest";
import { isExact, parseArguments, parseToPrint } from "../../../../src/shared/text/reading.ts";

test.each([
  ["0", true],
  ["-12", true],
  ["+5", true],
  ["1.50", true],
  ["1e3", true],
  ["0.12345678901234567890", true],
  ["9007199254740991", true],
  ["10000000000000000000", true],
  ["9007199254740993", false],
  ["-12345678901234567890", false],
  ["1e400", false],
])("%s: held %s", (text, held) => {
  expect(isExact(text)).toBe(held);
});

test("arguments -> a number that would be sent as another one is refused by name; the same digits as a text are not", () => {
  expect(parseArguments('{"id":"12345678901234567890","n":[1.50]}')).toEqual({
    id: "12345678901234567890",
    n: [1.5],
  });
  expect(() => parseArguments('{"a":[{"id":12345678901234567890}]}')).toThrow(
    "the number 12345678901234567890 would be sent as 12345678901234567000: write it as a text if the tool takes one",
  );
  expect(() => parseArguments("[1e400]")).toThrow("the number 1e400 would be sent as null");
  expect(() => parseArguments("{")).toThrow(SyntaxError);
});

test("what is printed -> each number as it came", () => {
  const json = '{"a":12345678901234567890,"b":[1e400,1.0],"c":"1e400"}';
  expect(JSON.stringify(parseToPrint(json))).toBe(json);
  expect(parseToPrint('{"a":1.5}')).toEqual({ a: 1.5 });
});
