/**
 * Owns: generated MCP tools that look like real ones: names, descriptions and schemas of 1 to 6 parameters, about 0.9
 * KB each as JSON, near the median of real catalogs. The same seed gives the same tools.
 * Must not: depend on data outside the repository.
 * Called by: scenarios, for servers with any number of tools and in place of a missing real catalog.
 */

/** A tool as `tools/list` gives it. */
export interface SyntheticTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  annotations: { readOnlyHint: boolean };
}

const VERBS = "get list create update delete search find send read write export import run check".split(" ");
const AREAS =
  "issue repository branch page document file table row message channel user event calendar order invoice customer metric dashboard alert job container image bucket queue secret contact route ticket comment review release build test".split(
    " ",
  );
const ASPECTS =
  "status history summary details members settings permissions labels metadata content changes statistics".split(
    " ",
  );
const KEYS =
  "id name query path limit cursor owner project since until format state labels tags priority verbose timezone filter".split(
    " ",
  );
const PHRASES = [
  "Supports pagination through a cursor.",
  "Returns an array of objects with identifiers and timestamps.",
  "Fails if the caller lacks the needed permission.",
  "Use this before changing anything, to see the current state.",
  "Dates are ISO 8601 and in UTC unless a time zone is given.",
  "Results are sorted by last change, newest first.",
];

type Random = () => number;

/** mulberry32 is small, varies text well enough and gives the same numbers on every machine. */
function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

function property(random: Random, key: string, area: string): Record<string, unknown> {
  const description = `The ${key} of the ${area} to work on. ${pick(random, PHRASES)}`;
  const kind = random();
  if (kind < 0.55) return { type: "string", description };
  if (kind < 0.7) return { type: "integer", minimum: 1, maximum: 100, default: 20, description };
  if (kind < 0.8) return { type: "boolean", default: false, description };
  if (kind < 0.9) return { type: "string", enum: ["open", "closed", "all"], description };
  return { type: "array", items: { type: "string" }, description };
}

function inputSchema(random: Random, area: string): Record<string, unknown> {
  const count = 1 + Math.floor(random() * 6);
  const keys = [...new Set(Array.from({ length: count }, () => pick(random, KEYS)))];
  return {
    type: "object",
    properties: Object.fromEntries(keys.map((key) => [key, property(random, key, area)])),
    required: keys.slice(0, 2),
    additionalProperties: false,
    $schema: "http://json-schema.org/draft-07/schema#",
  };
}

/** `count` tools with different names. */
export function syntheticTools(count: number, seed: number): SyntheticTool[] {
  const random = createRandom(seed);
  const used = new Set<string>();
  return Array.from({ length: count }, (_, index) => {
    const [verb, area, aspect] = [pick(random, VERBS), pick(random, AREAS), pick(random, ASPECTS)];
    const plain = `${verb}_${area}_${aspect}`;
    const name = used.has(plain) ? `${plain}_${index}` : plain;
    used.add(name);
    const sentences = [pick(random, PHRASES), pick(random, PHRASES)];
    const start = verb.charAt(0).toUpperCase() + verb.slice(1);
    return {
      name,
      description: `${start} the ${aspect} of one ${area} or of several. ${sentences.join(" ")}`,
      inputSchema: inputSchema(random, area),
      annotations: { readOnlyHint: ["get", "list", "search", "find", "read", "check"].includes(verb) },
    };
  });
}

/** `count` queries: the first three to six words of a description, about as long as a person's query. */
export const syntheticQueries = (count: number): string[] =>
  syntheticTools(count, 2).map(({ description }, index) =>
    description
      .split(" ")
      .slice(0, 3 + (index % 4))
      .join(" "),
  );

const TASK_WORDS = 200;
const TASKS = 200;

/** Texts of 200 words, as if a model wrote its whole task into the query: each joins queries that follow each other. */
export function wholeTasks(queries: readonly string[]): string[] {
  const words = queries.flatMap((query) => query.split(/\s+/));
  const step = Math.max(1, Math.floor((words.length - TASK_WORDS) / TASKS));
  return Array.from({ length: TASKS }, (_, at) => words.slice(at * step, at * step + TASK_WORDS).join(" "));
}
