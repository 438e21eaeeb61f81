/**
 * Owns: the floor of the ranking on real catalogs and labelled queries, which lie beside the repository.
 * Without them the tests are skipped, and the run says so.
 */
import { describe, expect, it, test } from "vitest";
import { buildIndex } from "../../../../src/shared/search/build.ts";
import { amount } from "../../../support/long.ts";
import {
  createRanker,
  dataFolder,
  hasSearchData,
  hitAt5,
  labelledQueries,
  outcomesOf,
  realTools,
  withServerTexts,
} from "../../../support/search-data.ts";

/** Of so many tools one is looked for by its name. */
const EACH = amount(3, 1);

/** Below the measured 91.3 and 89.2. */
const FLOOR = { natural: 90.5, keyword: 89 };

if (!hasSearchData) process.stderr.write(`skipped: there are no search data in ${dataFolder}\n`);

describe.skipIf(!hasSearchData)("search on the public queries", () => {
  let made: ReturnType<typeof createRanker> | undefined;
  /** One ranker of all tools for all tests, because its index takes longer than their queries. */
  const rankerOfAll = (): ReturnType<typeof createRanker> => {
    made ??= createRanker(realTools());
    return made;
  };

  test("hit@5 stays above its floor in both wordings", () => {
    const outcomes = outcomesOf(rankerOfAll(), labelledQueries(), 5);
    expect(hitAt5(outcomes, "query")).toBeGreaterThanOrEqual(FLOOR.natural);
    expect(hitAt5(outcomes, "keyword")).toBeGreaterThanOrEqual(FLOOR.keyword);
  });

  it.each([
    ["tool", (_server: string, name: string) => name],
    ["server__tool", (server: string, name: string) => `${server}__${name}`],
    ["mcp__server__tool", (server: string, name: string) => `mcp__${server}__${name}`],
    ["server--tool", (server: string, name: string) => `${server}__${name}`.replaceAll("_", "-")],
  ])("a tool is found by its name, written as %s", (_form, write) => {
    const tools = realTools().filter((_tool, at) => at % EACH === 0);
    const rank = rankerOfAll();
    const missed = tools.filter(
      ({ server, name }) => !rank(write(server, name), 5).includes(`${server}/${name}`),
    );
    expect(missed.map(({ server, name }) => `${server}/${name}`)).toEqual([]);
  });

  it.each([
    ["with its server", " and ", (server: string, name: string) => `${server}__${name}`],
    ["alone", ", ", (_server: string, name: string) => name],
  ])("four names in one sentence, each %s, are all found", (_form, between, write) => {
    const tools = realTools();
    const rank = rankerOfAll();
    for (let at = 0; at + 4 <= tools.length; at += 4 * EACH) {
      const four = tools.slice(at, at + 4);
      const names = four.map(({ server, name }) => write(server, name));
      const found = rank(`use ${names.join(between)} for this`, 5);
      const ids = four.map(({ server, name }) => `${server}/${name}`);
      expect(ids.filter((id) => !found.includes(id))).toEqual([]);
    }
  });

  test("the index takes less than 1 KB for each tool", () => {
    const tools = withServerTexts(realTools());
    expect(buildIndex(tools).byteLength / tools.length).toBeLessThan(1_024);
  });
});
