/** Attacks by schemas of tools on the code that reads, repairs and checks schemas. */
import { callOf, searchOf } from "../support/arena.ts";
import { type Entry, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { answering, aTool, listOf } from "./answering.ts";

const withSchemas =
  (schemas: Record<string, unknown>) =>
  (place: Place): Promise<Entry> =>
    answering(place, {
      "tools/list": listOf(
        Object.entries(schemas).map(([name, inputSchema]) => aTool(name, { inputSchema })),
      ),
    });

const self = (count: number): unknown[] => Array.from({ length: count }, () => ({ $ref: "#" }));

/** Returns a schema of `count` properties and `count` parts that refer to each other. */
const references = (count: number): unknown => ({
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`p${i}`, { $ref: `#/allOf/${(i * 7) % count}` }]),
  ),
  allOf: Array.from({ length: count }, (_, i) => ({ $ref: `#/properties/p${(i * 3) % count}` })),
});

/** Returns a schema with two references on each level, so each level has twice as many nodes as the level above. */
const doubling = (depth: number): unknown => ({
  type: "object",
  properties: { a: { $ref: "#/$defs/d0" } },
  $defs: Object.fromEntries(
    Array.from({ length: depth }, (_, i) => [
      `d${i}`,
      i === depth - 1
        ? { type: "string" }
        : { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
    ]),
  ),
});

/** Returns a schema in which each part must be moved, and a list be rewritten, for providers to take the schema. */
const positions = (count: number): unknown => ({
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      [`p${i}`, { $ref: `#/properties/q${(i * 7) % count}/items/1` }],
      [`q${i}`, { type: "array", items: [{ $ref: "#" }, { const: i }] }],
    ]).flat(),
  ),
});

const object = (properties: Record<string, unknown>, more: Record<string, unknown> = {}): unknown => ({
  type: "object",
  properties,
  ...more,
});

/**
 * Patterns that backtrack, each with a text that makes the pattern backtrack. A description can ask the model for the
 * text.
 */
const PATTERNS = {
  nested: ["^(([a-z])+.)+$", `${"a".repeat(34)}!!`],
  twice: ["^(a|a)*$", `${"a".repeat(25)}!`],
  words: ["^(\\w+\\s?)*$", `${"a".repeat(25)}!`],
} as const;

const SETS: readonly [string, Record<string, unknown>][] = [
  ["60 references to itself in allOf", { work: { type: "object", allOf: self(60) } }],
  [
    "60 references to itself in anyOf and oneOf",
    { work: { type: "object", anyOf: self(60), oneOf: self(60) } },
  ],
  [
    "references to itself in nested lists",
    { work: { type: "object", allOf: [{ anyOf: [{ allOf: self(30) }, { oneOf: self(30) }] }, ...self(30)] } },
  ],
  ["8,000 references into 8,000 parts", { work: references(8_000) }],
  ["references that double on each of 40 levels", { work: doubling(40) }],
  [
    "1,500 references into lists by position, each of which holds the whole schema",
    { work: positions(1_500) },
  ],
];

const ROOTS: readonly Row[] = SETS.map(([what, schemas], at) => ({
  name: `a server whose schema has ${what}: the tools of other servers are found`,
  finding: "H1",
  // The first of these attacks is in mcp.json before the session starts.
  ...(at === 0 ? { alone: "home" as const } : {}),
  checks: SERVER_CHECKS,
  server: withSchemas(schemas),
}));

export const SCHEMAS: readonly Row[] = [
  ...ROOTS,
  ...Object.entries(PATTERNS).map(
    ([name, [pattern, text]]): Row => ({
      name: `a server whose schema has a pattern that backtracks (${name}), and an argument that makes it backtrack`,
      finding: "M2",
      checks: SERVER_CHECKS,
      server: withSchemas({ work: object({ token: { type: "string", pattern } }, { required: ["token"] }) }),
      calls: [{ tool: "work", args: { token: text } }],
    }),
  ),
  {
    name: "a server with patterns that backtrack in patternProperties, propertyNames and items",
    finding: "M2",
    checks: SERVER_CHECKS,
    server: withSchemas({
      keys: { type: "object", patternProperties: { [PATTERNS.nested[0]]: { type: "string" } } },
      names: { type: "object", propertyNames: { pattern: PATTERNS.nested[0] } },
      items: object({ list: { type: "array", items: { pattern: PATTERNS.twice[0] } } }),
    }),
    calls: [
      { tool: "keys", args: { [PATTERNS.nested[1]]: "x" } },
      { tool: "names", args: { [PATTERNS.nested[1]]: "x" } },
      { tool: "items", args: { list: [PATTERNS.twice[1]] } },
    ],
  },
  {
    name: "a server whose schemas refer to the network: nothing is fetched",
    finding: "own",
    checks: [...SERVER_CHECKS, "leaves"],
    server: (place) => {
      const url = `${place.canary.origin}/schema.json`;
      return answering(place, {
        "tools/list": listOf([
          aTool("work", {
            inputSchema: {
              $schema: url,
              $id: url,
              type: "object",
              properties: { a: { $ref: url } },
              allOf: [{ $ref: `${url}#/a` }],
            },
            outputSchema: { $schema: url, type: "object", $ref: url },
            icons: [{ src: `${place.canary.origin}/icon.png` }],
          }),
        ]),
      });
    },
    calls: [{ tool: "work", args: { a: 1 } }],
  },
  {
    name: "a server whose schemas have 20,000 properties, 100,000 values and a default of 1 MB",
    finding: "own",
    checks: SERVER_CHECKS,
    server: withSchemas({
      wide: object(
        Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`p${i}`, { type: "string" }])),
      ),
      many: object({ a: { enum: Array.from({ length: 100_000 }, (_, i) => `value ${i}`) } }),
      preset: object({
        a: { type: "string", default: "d".repeat(1_000_000), description: "w".repeat(1_000_000) },
      }),
    }),
    calls: [
      { tool: "wide", args: { p1: "x" } },
      { tool: "many", args: { a: "value 7" } },
      { tool: "preset" },
    ],
  },
  {
    name: "a server whose schemas have wrong roots, keywords and types",
    finding: "own",
    checks: SERVER_CHECKS,
    server: withSchemas({
      none: null,
      list: [],
      text: "object",
      number: 7,
      yes: true,
      never: false,
      array: { type: "array" },
      unknown: { type: "thing" },
      types: { type: ["object", "null", 7] },
      properties: { type: "object", properties: [1, 2] },
      required: { type: "object", required: "a" },
      reference: {
        type: "object",
        properties: { a: { $ref: 7 }, b: { $ref: "#/no/where" }, c: { $ref: "#/$defs/%ZZ" } },
      },
      loop: { type: "object", properties: { a: { $ref: "#/properties/b" }, b: { $ref: "#/properties/a" } } },
      proto: {
        type: "object",
        properties: { a: { $ref: "#/__proto__" }, b: { $ref: "#/constructor/prototype" } },
      },
      lengths: object({
        a: { type: "string", minLength: -1, maxLength: 1e300, multipleOf: 0, pattern: "(" },
      }),
      depth: { type: "object", not: { not: { not: {} } }, if: {}, else: 7 },
    }),
    act: async (arena) => {
      const { server } = arena.place;
      await arena.prompt(searchOf("does", server));
      for (const tool of [
        "none",
        "yes",
        "never",
        "types",
        "required",
        "reference",
        "loop",
        "proto",
        "lengths",
      ]) {
        await arena.prompt(
          searchOf(`select:${server}__${tool}`, server),
          callOf(`${server}__${tool}`, { a: "x" }),
        );
      }
    },
  },
  {
    name: "a server whose output schemas refer to themselves or accept nothing",
    finding: "own",
    checks: SERVER_CHECKS,
    server: (place) =>
      answering(place, {
        "tools/list": listOf([
          aTool("work", {
            outputSchema: { type: "object", allOf: self(40), properties: { a: { $ref: "#" } } },
          }),
          aTool("none", {
            outputSchema: { type: "object", not: {}, properties: { a: { pattern: PATTERNS.nested[0] } } },
          }),
        ]),
        "tools/call": JSON.stringify({ content: [], structuredContent: { a: PATTERNS.nested[1] } }),
      }),
    calls: [{ tool: "work" }, { tool: "none" }],
  },
];
