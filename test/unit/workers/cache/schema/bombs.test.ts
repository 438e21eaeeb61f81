/** Schemas that keep the cache worker busy or fill its memory: small results, and linear work. */
import { describe, expect, it, test } from "vitest";
import type { Repair } from "../../../../../workers/cache/schema/keywords.ts";
import { strongComponents } from "../../../../../workers/cache/schema/references.ts";
import { repairInputSchema, repairOutputSchema } from "../../../../../workers/cache/schema/schema.ts";
import { isBounded } from "../../../../../workers/shared/listed.ts";

type Schema = Record<string, unknown>;

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const map = (count: number, make: (i: number) => [string, unknown]): Schema =>
  Object.fromEntries(times(count, make));
const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });
const ref = (name: string): Schema => ({ $ref: `#/$defs/${name}` });

/** A chain of definitions: `a0` holds `part` with a reference to `a1`, and so on; the last one is `end`. */
const chain = (links: number, part: (next: Schema, i: number) => Schema, end: Schema): Schema => ({
  ...map(links, (i) => [`a${i}`, part(ref(`a${i + 1}`), i)]),
  [`a${links}`]: end,
});

const condition = (schema: Schema): Schema =>
  Object.fromEntries(["if", "then", "else"].map((key) => [key, schema]));

const nested = (depth: number, inner: unknown): unknown => {
  let schema = inner;
  for (let i = 0; i < depth; i++) schema = object({ [`a${i}`]: schema });
  return schema;
};

const self = (count: number): Schema[] => times(count, () => ({ $ref: "#" }));
const big = object(map(4_000, (i) => [`p${i}`, STRING]));
const either = (next: Schema, i: number): Schema => ({
  anyOf: [{ allOf: [next, object({ p: { const: i } })] }, { allOf: [next, object({ p: { const: -i } })] }],
});

/** Without limits each of these takes seconds to forever, or gigabytes. */
const BOMBS: [string, Schema, Repair[]][] = [
  ["allOf of the root, 60 times", object({}, { allOf: self(60) }), ["union"]],
  ["allOf of the root, 5,000 times", object({}, { allOf: self(5_000) }), ["union", "size"]],
  ["every union of the root", object({}, { allOf: self(60), anyOf: self(60), oneOf: self(60) }), ["union"]],
  [
    "2,000 references into 2,000 parts",
    object(
      map(2_000, (i) => [`p${i}`, ref(`x/allOf/${i}`)]),
      { $defs: { x: { allOf: times(2_000, () => STRING) } } },
    ),
    [],
  ],
  [
    "2,000 references to a schema of 2,000 references",
    object(
      map(2_000, (i) => [`p${i}`, ref("x")]),
      { $defs: { x: { allOf: times(2_000, (i) => ref(`y${i}`)) }, ...map(2_000, (i) => [`y${i}`, STRING]) } },
    ),
    ["effort"],
  ],
  [
    "doublings at the root",
    { ...ref("a0"), $defs: chain(500, (next) => ({ allOf: [next, next] }), object({ p: STRING })) },
    ["root", "union"],
  ],
  [
    "doublings of one property",
    { ...ref("a0"), $defs: chain(200, either, object({ p: STRING })) },
    ["root", "union"],
  ],
  [
    "doublings in a property",
    object({ a: ref("a0") }, { $defs: chain(60, (next) => ({ allOf: [next, next] }), STRING) }),
    ["effort"],
  ],
  [
    "doublings by conditions",
    object({ a: ref("a0") }, { $defs: chain(60, (next) => condition(next), STRING) }),
    ["effort", "choice"],
  ],
  [
    "doublings by dependencies",
    object(
      { a: ref("a0") },
      { $defs: chain(60, (next) => ({ dependentSchemas: { x: next }, dependencies: { x: next } }), STRING) },
    ),
    ["effort"],
  ],
  [
    "doublings by dynamic references",
    object(
      { a: { $dynamicRef: "#x0" } },
      {
        $defs: map(61, (i) => [
          `d${i}`,
          {
            $dynamicAnchor: `x${i}`,
            allOf: i === 60 ? [STRING] : times(2, () => ({ $dynamicRef: `#x${i + 1}` })),
          },
        ]),
      },
    ),
    ["effort"],
  ],
  [
    "6,000 references in a row at the root",
    { ...ref("a0"), $defs: chain(6_000, (next) => next, object({})) },
    ["root", "union", "size"],
  ],
  [
    "6,000 references in a row",
    object({ a: ref("a0") }, { $defs: chain(6_000, (next) => next, STRING) }),
    ["effort"],
  ],
  [
    "6,000 references in a ring",
    object({ a: ref("a0") }, { $defs: map(6_000, (i) => [`a${i}`, ref(`a${(i + 1) % 6_000}`)]) }),
    ["loop"],
  ],
  [
    "a long key that each reference would repeat",
    object(
      { a: { $ref: "/x" } },
      {
        $defs: {
          ["k".repeat(3_000)]: {
            $id: "/x",
            $defs: { y: STRING },
            ...object(map(3_000, (i) => [`a${i}`, ref("y")])),
          },
        },
      },
    ),
    [],
  ],
  [
    "a key of 300,000 characters that each reference would repeat",
    object(
      { a: { $ref: "/x" } },
      {
        $defs: {
          ["k".repeat(300_000)]: {
            $id: "/x",
            $defs: { y: STRING },
            ...object(map(3_000, (i) => [`a${i}`, ref("y")])),
          },
        },
      },
    ),
    ["reference"],
  ],
  [
    "the same 4,000 properties 1,900 times",
    object({}, { allOf: times(1_900, () => ref("b")), $defs: { b: big } }),
    ["union", "size"],
  ],
  [
    "a part of a part of a part, each at the root",
    {
      ...(nested(30, big) as Schema),
      allOf: times(30, (i) => ({ $ref: `#${times(i + 1, (j) => `/properties/a${29 - j}`).join("")}` })),
    },
    ["union", "size"],
  ],
  [
    "9,000 properties, all required",
    object(
      map(9_000, (i) => [`p${i}`, {}]),
      { required: times(9_000, (i) => `p${i}`) },
    ),
    ["size"],
  ],
  [
    "a root of 4,000 parameters that refers to itself",
    object({ ...map(4_000, (i) => [`p${i}`, STRING]), a: { $ref: "#" } }),
    ["size"],
  ],
  [
    "2,000 required names without a schema",
    object({}, { required: times(2_000, (i) => `p${i}`), additionalProperties: false }),
    ["required", "size"],
  ],
  [
    "a list of 4,000 positions",
    object({ a: { type: "array", items: times(4_000, (i) => ({ const: i })), additionalItems: false } }),
    ["tuple", "count"],
  ],
  [
    "lists by position in each other, each at every position",
    object(
      { a: ref("x0") },
      {
        $defs: map(40, (i) => [
          `x${i}`,
          { type: "array", prefixItems: times(40, (j) => ref(`x${j}`)), items: false },
        ]),
      },
    ),
    ["tuple", "effort"],
  ],
  [
    "1,500 definitions whose names differ in one character that is refused",
    object(
      map(1_500, (i) => [`p${i}`, { $ref: `#/$defs/a${"é".repeat(i % 50)}${i}`.replaceAll("é", "%C3%A9") }]),
      { $defs: map(1_500, (i) => [`a${"é".repeat(i % 50)}${i}`, STRING]) },
    ),
    [],
  ],
  ["15,000 values", object({ a: { enum: times(15_000, (i) => "x".repeat(30) + i) } }), ["size"]],
  [
    "a union of 1,000",
    object({ a: { anyOf: times(1_000, (i) => object({ [`k${i}`]: STRING })) } }),
    ["effort"],
  ],
];

/** The limit of a repaired schema: three times the input, and some sentences. */
const grown = (chars: number): number => 3 * chars + 10_000;

describe("repairInputSchema: a bomb", () => {
  it.each(BOMBS)("%s -> repaired at once, and not grown", (_name, raw, repairs) => {
    expect(isBounded(raw)).toBe(true);
    const before = JSON.stringify(raw);
    const repaired = repairInputSchema(raw);
    expect(repaired.repairs).toEqual(repairs);
    const { length } = JSON.stringify(repaired.schema);
    expect(length).toBeLessThan(grown(before.length));
    expect(length).toBeLessThan(300_000);
    expect(JSON.stringify(raw)).toBe(before);
    // The same as an output schema, whose root may be of any type.
    expect(JSON.stringify(repairOutputSchema(raw)?.schema).length).toBeLessThan(grown(before.length));
  });

  test("a schema beyond the budget takes any object, and the properties that were read stay", () => {
    const parts = times(3_000, (i) => object({ [`p${i}`]: STRING }, { required: ["p0"] }));
    const { schema, repairs } = repairInputSchema({ ...object({ own: STRING }), anyOf: parts });
    expect(repairs).toEqual(["union", "size"]);
    expect(Object.keys(schema.properties as Schema)).toContain("own");
    expect(schema).not.toHaveProperty("required");
    expect(schema).not.toHaveProperty("additionalProperties");
  });
});

test("strongComponents: two circles with a bridge and further nodes -> a group for each circle and each further node", () => {
  const nodes = times(8, (id) => ({ id }));
  const edges = [[1], [2], [0, 3], [4], [5], [3], [7], []];
  const groups = strongComponents(nodes, ({ id }) =>
    (edges[id] ?? []).map((to) => nodes[to] as { id: number }),
  );
  const groupOf = (id: number): number | undefined => groups.get(nodes[id] as { id: number });
  expect([groupOf(1), groupOf(2)]).toEqual([groupOf(0), groupOf(0)]);
  expect([groupOf(4), groupOf(5)]).toEqual([groupOf(3), groupOf(3)]);
  expect(new Set([0, 3, 6, 7].map(groupOf)).size).toBe(4);
});

test("strongComponents: 30,000 nodes in a row, then in a ring -> one group each, then one for all", () => {
  const nodes = times(30_000, (id) => ({ id }));
  const next = (closes: boolean) => (node: { id: number }) => {
    const to = nodes[node.id + 1] ?? (closes ? nodes[0] : undefined);
    return to ? [to] : [];
  };
  expect(new Set(strongComponents(nodes, next(false)).values()).size).toBe(30_000);
  expect(new Set(strongComponents(nodes, next(true)).values()).size).toBe(1);
});
