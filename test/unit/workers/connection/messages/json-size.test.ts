/** Owns: the cost of a JSON text is counted without parsing the text, whatever its strings hold. */
import { describe, expect, it, test } from "vitest";
import { measureJson } from "../../../../../workers/connection/messages/incoming.ts";
import { createRandom } from "../../../random.ts";

const measure = (text: string) => measureJson(Buffer.from(text));

describe("measureJson", () => {
  it.each<[string, number, number]>([
    ["[]", 1, 1],
    ["[1]", 1, 1],
    ["[1,2,3]", 3, 1],
    ['{"a":1,"b":2}', 4, 1],
    ["[[[1]]]", 3, 3],
    ['["[{,:",2]', 2, 1],
    ['["a\\"[,",2]', 2, 1],
    ['["a\\\\",[2]]', 3, 2],
    ['["\\\\\\"[[",2]', 2, 1],
    ["", 0, 0],
    ['"', 0, 0],
    ['["a', 1, 1],
    ["]]]]", 0, 0],
    [`["${"x".repeat(1_000)}",[2]]`, 3, 2],
    [`["${'\\"'.repeat(1_000)}",[2]]`, 3, 2],
    [`["${"\\\\".repeat(1_000)}",[2]]`, 3, 2],
    [`["${"x".repeat(127)}\\",[",[2]]`, 3, 2],
    [`["${"漢\\u005c".repeat(300)}",[2]]`, 3, 2],
  ])("%j -> %i values, %i levels", (text, values, depth) => {
    expect(measure(text)).toMatchObject({ values, depth });
  });

  it.each<[string, string | undefined, boolean]>([
    ['{"jsonrpc":"2.0","id":7,"result":{}}', "7", false],
    ['{"result":{"id":1,"method":"x"},"jsonrpc":"2.0","id":7}', "7", false],
    ['{"result":{},"id" : "a,}" }', '"a,}"', false],
    ['{"id":1,"id":2}', "2", false],
    ['{"id":3,"method":"ping"}', "3", true],
    ['{"method":"notifications/message","params":{"id":4}}', undefined, true],
    ['{"result":"id","x":"method"}', undefined, false],
    ['{"result":[{"id":5}]}', undefined, false],
    ['[{"id":5,"method":"x"}]', undefined, false],
    [`{"id":"${"x".repeat(1_000)}","result":{}}`, undefined, false],
  ])("%j -> id %j, method %j", (text, id, hasMethod) => {
    expect(measure(text)).toMatchObject({ id, hasMethod });
  });

  test("random values -> as many values as parsing finds, and as deep", () => {
    const random = createRandom(20_261_122);
    const text = (): string =>
      Array.from({ length: random.below(200) }, () => '"\\[]{},:x漢\n\u2028'[random.below(13)] ?? "").join(
        "",
      );
    const make = (levels: number): unknown => {
      const kind = levels === 0 ? random.below(2) : random.below(4);
      if (kind === 0) return random.below(1_000) / 7;
      if (kind === 1) return text();
      const items = Array.from({ length: 1 + random.below(4) }, () => make(levels - 1));
      return kind === 2 ? items : Object.fromEntries(items.map((item, i) => [`${text()}${i}`, item]));
    };
    /** A list counts one for each item, an object two. */
    const count = (value: unknown): { values: number; depth: number } => {
      if (typeof value !== "object" || value === null) return { values: 0, depth: 0 };
      const inner = Object.values(value).map(count);
      const own = Array.isArray(value) ? inner.length : 2 * inner.length;
      return {
        values: inner.reduce((sum, { values }) => sum + values, own),
        depth: 1 + Math.max(...inner.map(({ depth }) => depth)),
      };
    };
    for (let round = 0; round < 500; round++) {
      const value = [make(5)];
      const written = JSON.stringify(value, undefined, random.below(3));
      expect(measure(written), written).toMatchObject(count(value));
    }
  });
});
