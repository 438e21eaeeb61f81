/**
 * Owns: the search for better weights of the ranking by hill climbing, one weight at a time; the current weights come
 * from this search. One pass takes minutes.
 * usage: tune.ts [--folds | --sources] [--prior]; PASSES=n limits the passes.
 * --folds climbs on four fifths of the queries and measures on the rest; --sources leaves out one source at a
 * time; --prior starts from neutral weights instead of the current ones.
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
import { worth } from "./worth.ts";

/** Weights by path, for example `field.name`. */
type Flat = Readonly<Record<string, number>>;
type Filter = (outcome: Outcome) => boolean;

const FOLDS = 5;
const PASSES = Number(process.env.PASSES ?? 2);
/** A smaller gain is noise. */
const GAIN = 0.02;
/** Weights that stay fixed, because too few queries depend on them. */
const FIXED = new Set(["variantFloor", "prefix", "field.keywords", "lengthNorm.keywords"]);
const SHARES = /lengthNorm|coverageBase|prefix|literal|partOfJoined|synonym|joined/;

/** Neutral weights from the outside folder ../shared/search. All others are the current ones, tuned on every query. */
const PRIOR: Weights = {
  ...WEIGHTS,
  field: {
    name: 3,
    keywords: 3,
    server: 1,
    lead: 0.5,
    description: 0.5,
    paramName: 0.5,
    paramText: 0.25,
    serverText: 0.4,
  },
  lengthNorm: {
    name: 0.5,
    keywords: 0,
    server: 0,
    lead: 0.5,
    description: 0.5,
    paramName: 0.5,
    paramText: 0.5,
    serverText: 0.5,
  },
  synonym: { same: 0.4, noun: 0.4, translation: 0.4 },
  minDf: 1,
  joined: 1,
  partOfJoined: 1,
  literal: 1,
  repeat: 0,
  slip: 0.45,
  actionFit: 0.1,
  actionClash: 0.1,
};

function flatten(weights: Weights): Flat {
  const flat: Record<string, number> = {};
  for (const [key, value] of Object.entries(weights)) {
    if (typeof value === "number") flat[key] = value;
    else for (const [inner, number] of Object.entries(value)) flat[`${key}.${inner}`] = number;
  }
  return flat;
}

function unflatten(flat: Flat): Weights {
  const weights: Record<string, number | Record<string, number>> = {};
  for (const [path, value] of Object.entries(flat)) {
    const [key = "", inner] = path.split(".");
    const group = weights[key];
    if (inner === undefined) weights[key] = value;
    else weights[key] = { ...(typeof group === "object" ? group : {}), [inner]: value };
  }
  return weights as unknown as Weights;
}

const tools = realTools();
const queries = labelledQueries();
const known = new Map<string, Outcome[]>();

function measure(flat: Flat): Outcome[] {
  const key = JSON.stringify(flat);
  const found = known.get(key) ?? outcomesOf(createRanker(tools, unflatten(flat)), queries);
  known.set(key, found);
  return found;
}

const objective = (list: readonly Outcome[]): number =>
  (100 * list.reduce((sum, outcome) => sum + worth(outcome), 0)) / list.length;

function neighbours(path: string, value: number): number[] {
  const round = (number: number): number => Number(number.toFixed(3));
  if (!SHARES.test(path)) return value === 0 ? [0.1, 0.3] : [value * 0.75, value * 1.35].map(round);
  const within = [value - 0.15, value + 0.15].map((number) => round(Math.min(1, Math.max(0, number))));
  return within.filter((number) => number !== value);
}

function climb(start: Flat, counts: Filter): Flat {
  let flat = start;
  let best = objective(measure(flat).filter(counts));
  for (let pass = 0; pass < PASSES; pass++) {
    const before = best;
    for (const path of Object.keys(flat).filter((candidate) => !FIXED.has(candidate))) {
      for (const value of neighbours(path, flat[path]!)) {
        const next = { ...flat, [path]: value };
        const score = objective(measure(next).filter(counts));
        if (score <= best + GAIN) continue;
        [best, flat] = [score, next];
        break;
      }
    }
    if (best === before) break;
  }
  return flat;
}

const figures = (list: readonly Outcome[]): string =>
  [hitAt5(list, "query"), hitAt5(list, "keyword"), mrrAt5(list, "query"), mrrAt5(list, "keyword")]
    .map((value) => value.toFixed(1))
    .join(" / ");

/** Leaves out each part in turn: climbs on the other queries and measures on the part. */
function heldBack(start: Flat, parts: readonly { name: string; holds: Filter }[]): void {
  const held = parts.flatMap(({ name, holds }) => {
    const tuned = measure(climb(start, (outcome) => !holds(outcome))).filter(holds);
    console.log(`${name}: ${figures(tuned)}, as they stand ${figures(measure(start).filter(holds))}`);
    return tuned;
  });
  console.log(`all that was held back: ${figures(held)}`);
}

const start = flatten(process.argv.includes("--prior") ? PRIOR : WEIGHTS);
if (process.argv.includes("--folds")) {
  const foldOf = new Map(queries.map((query, at) => [query, (at * 7_919) % FOLDS]));
  const folds = Array.from({ length: FOLDS }, (_, fold) => ({
    name: `fold ${fold}`,
    holds: ({ query }: Outcome) => foldOf.get(query) === fold,
  }));
  heldBack(start, folds);
} else if (process.argv.includes("--sources")) {
  const sources = [...new Set(queries.map(({ source }) => source))];
  heldBack(
    start,
    sources.map((name) => ({ name, holds: ({ query }: Outcome) => query.source === name })),
  );
} else {
  const flat = climb(start, () => true);
  console.log(figures(measure(flat)));
  console.log(JSON.stringify(flat, null, 2));
}
