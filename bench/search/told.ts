/**
 * Measures of which server the description of ToolSearch reminds: the line of each server is searched for the words of a
 * query, which stands for the model's choice. A model knows more than words, so compare rows, and expect more of a model.
 * usage: told.ts
 */
import { buildIndex } from "../../src/shared/search/build.ts";
import { openIndex } from "../../src/shared/search/index-format.ts";
import { searchIndex } from "../../src/shared/search/ranked.ts";
import { toolSearchDescription } from "../../src/shared/text/search-tool.ts";
import { labelledQueries, realTools, serverDescriptions } from "../../test/support/search-data.ts";
import { createRandom } from "../../test/unit/random.ts";
import { tellingNames } from "../../workers/cache/snapshot/telling-names.ts";

/** Servers of a catalog, and how many such catalogs are drawn. */
const CATALOGS = [
  [3, 30],
  [10, 20],
  [20, 12],
  [50, 6],
  [126, 1],
] as const;

const texts = serverDescriptions();
const toolNames = Map.groupBy(realTools(), ({ server }) => server);
const queries = labelledQueries().map((query) => ({
  query,
  right: query.relevant.map((id) => id.split("/")[0] ?? ""),
}));

function measure(servers: readonly string[], order: typeof tellingNames | undefined) {
  const described = servers.map((name) => {
    const description = texts[name]?.description;
    const tools = (toolNames.get(name) ?? []).map((tool) => tool.name);
    return description ? { name, tools, description } : { name, tools };
  });
  const text = toolSearchDescription(described, "tools", undefined, order);
  const lines = text.split("\n").slice(2);
  const index = openIndex(
    buildIndex(servers.map((server, at) => ({ server, name: server, description: lines[at] ?? "" }))),
  );
  const asked = queries.filter(({ right }) => right.some((server) => servers.includes(server)));
  const ranks = asked.flatMap(({ query, right }) =>
    [query.query, query.keyword].map((wording) =>
      searchIndex(index, wording, 3).hits.findIndex(({ tool }) => right.includes(servers[tool] ?? "")),
    ),
  );
  return { characters: text.length, ranks };
}

const percent = (ranks: readonly number[], most: number): number =>
  Number(((100 * ranks.filter((rank) => rank >= 0 && rank < most).length) / ranks.length).toFixed(1));

console.table(
  CATALOGS.flatMap(([size, draws]) => {
    const { next: random } = createRandom(5);
    const catalogs = Array.from({ length: draws }, () =>
      [...toolNames.keys()]
        .map((name) => ({ name, at: random() }))
        .sort((a, b) => a.at - b.at)
        .slice(0, size)
        .map(({ name }) => name),
    );
    return [undefined, tellingNames].map((order) => {
      const measured = catalogs.map((servers) => measure(servers, order));
      const ranks = measured.flatMap((one) => one.ranks);
      const characters = Math.round(measured.reduce((sum, one) => sum + one.characters, 0) / draws);
      return {
        servers: size,
        names: order ? "telling" : "first",
        characters,
        "server first": percent(ranks, 1),
        "among three": percent(ranks, 3),
      };
    });
  }),
);
