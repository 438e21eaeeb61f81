/**
 * Measures what each part of the ranking wins on servers that chose no weight. Owns: cross-validation over servers.
 * Random neighbours of the current weights are measured with and without the part. On four fifths of the servers the best
 * neighbours are chosen, each way; the queries for the other servers say what the part wins. Minutes long.
 * usage: held-out.ts; MEMBERS=n is the number of neighbours.
 */
import { WEIGHTS, type Weights } from "../../src/shared/search/weights.ts";
import {
  createRanker,
  hitAt5,
  labelledQueries,
  mrrAt5,
  type Outcome,
  outcomesOf,
  realTools,
} from "../../test/support/search-data.ts";
import { createRandom } from "../../test/unit/random.ts";
import { PARTS, withFields } from "./parts.ts";
import { worth } from "./worth.ts";

const MEMBERS = Number(process.env.MEMBERS ?? 40);
const FOLDS = 5;
/** Divisions of the servers into folds. */
const DIVISIONS = 20;
/** A single best neighbour is best by chance, so the mean of several counts. */
const CHOSEN = 5;
/** Weights that stay as they are: too few queries depend on them, or they are counts. */
const FIXED = new Set(["variantFloor", "minDf"]);

/** A part can also be there in another amount. */
const CHANGES: typeof PARTS = [
  ...PARTS,
  ["more for the server's name", (weights) => withFields(weights, { server: weights.field.server * 2 })],
];

const { next: random } = createRandom(7);
const around = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

function neighbour(): Weights {
  const change = (value: number, isShare: boolean): number =>
    isShare ? Math.min(1, Math.max(0, value + 0.12 * around())) : value * Math.exp(0.25 * around());
  const isShare = (name: string): boolean =>
    /lengthNorm|synonym|coverageBase|prefix|slip|literal|partOfJoined|joined/.test(name);
  const entries = Object.entries(WEIGHTS).map(([name, value]) => {
    if (FIXED.has(name)) return [name, value];
    if (typeof value === "number") return [name, change(value, isShare(name))];
    const inner = Object.entries(value).map(([key, one]) => [
      key,
      one === 0 ? 0 : change(one, isShare(name)),
    ]);
    return [name, Object.fromEntries(inner)];
  });
  return Object.fromEntries(entries) as Weights;
}

const tools = realTools();
const queries = labelledQueries();
const serversOf = new Map(
  queries.map((query) => [query, query.relevant.map((id) => id.split("/")[0] ?? "")]),
);
const measure = (weights: Weights): Outcome[] => outcomesOf(createRanker(tools, weights), queries);

/** Server -> fold, with about as many queries in each fold: the servers with many queries are dealt first. */
function divide(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [server = ""] of serversOf.values()) counts.set(server, (counts.get(server) ?? 0) + 1);
  const all = [...new Set([...serversOf.values()].flat())].map((name) => ({
    name,
    count: counts.get(name) ?? 0,
    order: (counts.get(name) ?? 0) > 20 ? -1 : random(),
  }));
  all.sort((a, b) => a.order - b.order || b.count - a.count);
  const loads = Array.from({ length: FOLDS }, () => 0);
  return new Map(
    all.map(({ name, count }) => {
      const fold = loads.indexOf(Math.min(...loads));
      loads[fold] = (loads[fold] ?? 0) + count;
      return [name, fold];
    }),
  );
}
const divisions = Array.from({ length: DIVISIONS }, divide);

const total = (list: readonly Outcome[]): number => list.reduce((sum, outcome) => sum + worth(outcome), 0);

/** The outcomes of queries for servers that had no part in the choice of the weights. */
function heldOut(measured: readonly (readonly Outcome[])[]): Outcome[] {
  return divisions.flatMap((foldOf) =>
    Array.from({ length: FOLDS }, (_, fold) => fold).flatMap((fold) => {
      const chose = ({ query }: Outcome): boolean =>
        serversOf.get(query)?.every((server) => foldOf.get(server) !== fold) ?? false;
      const isHeld = ({ query }: Outcome): boolean => foldOf.get(serversOf.get(query)?.[0] ?? "") === fold;
      const ordered = measured
        .map((list) => ({ list, score: total(list.filter(chose)) }))
        .sort((a, b) => b.score - a.score);
      return ordered.slice(0, CHOSEN).flatMap(({ list }) => list.filter(isHeld));
    }),
  );
}

const figures = (list: readonly Outcome[]): number[] => [
  hitAt5(list, "query"),
  hitAt5(list, "keyword"),
  mrrAt5(list, "query"),
  mrrAt5(list, "keyword"),
];
const members = [WEIGHTS, ...Array.from({ length: MEMBERS - 1 }, neighbour)];
const all = figures(heldOut(members.map(measure)));
console.log(`all parts, held out: ${all.map((value) => value.toFixed(1)).join(" / ")}`);
for (const [part, without] of CHANGES) {
  const held = figures(heldOut(members.map((weights) => measure(without(weights)))));
  const wins = held.map((value, at) => ((all[at] ?? 0) - value).toFixed(2)).join(" / ");
  console.log(`${part}, wins held out: ${wins}`);
}
