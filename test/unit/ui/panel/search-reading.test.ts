/** Owns: when the panel's search is tried, and which hits count. The session is a fake. */
import { expect, test } from "vitest";
import type { TriedSearch } from "../../../../src/ui/panel/panel.ts";
import { createSearchReading } from "../../../../src/ui/panel/search-reading.ts";
import { makeCatalog } from "../../make-catalog.ts";

function setup() {
  const catalog = makeCatalog([{ name: "git", tools: [{ tool: "clone" }] }]);
  const asked: [query: string, PromiseWithResolvers<TriedSearch>][] = [];
  const shown: unknown[] = [];
  const reading = createSearchReading(
    {
      search: (query) => {
        const answer = Promise.withResolvers<TriedSearch>();
        asked.push([query, answer]);
        return answer.promise;
      },
      catalog: () => catalog,
    },
    (tried) => shown.push(tried && `${tried.query}: ${tried.likely} of ${tried.count}`),
  );
  const answer = (at: number, likely: number): void =>
    asked[at]?.[1].resolve({ hits: [], likely, tookMs: 1 });
  return { reading, asked, shown, answer };
}

test("a query -> it is tried once, and again when the session has changed", async () => {
  const { reading, asked, shown, answer } = setup();
  const first = reading.follow("clone");
  answer(0, 1);
  await first;
  await reading.follow("clone");
  expect([asked.length, shown]).toEqual([1, ["clone: 1 of 1"]]);
  reading.forget();
  const second = reading.follow("clone");
  answer(1, 0);
  await second;
  expect(shown).toEqual(["clone: 1 of 1", "clone: 0 of 1"]);
});

test("the query changes meanwhile -> its late hits are dropped", async () => {
  const { reading, shown, answer } = setup();
  const reads = [reading.follow("c"), reading.follow("cl")];
  answer(1, 1);
  answer(0, 0);
  await Promise.all(reads);
  expect(shown).toEqual(["cl: 1 of 1"]);
});

test("an empty query -> nothing is searched and nothing is shown", async () => {
  const { reading, asked, shown } = setup();
  await reading.follow(" ");
  expect([asked, shown]).toEqual([[], [undefined]]);
});
