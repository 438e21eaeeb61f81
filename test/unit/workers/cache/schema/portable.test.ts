/** Input schemas that some provider refuses: each is declared in a form that every provider takes. */
import { expect, it, test } from "vitest";
import { isObject } from "../../../../../src/shared/protocol/values.ts";
import { isTakenEverywhere } from "../../../../../workers/cache/schema/engines.ts";
import type { Repair } from "../../../../../workers/cache/schema/keywords.ts";
import { cleanSchema, repairInputSchema } from "../../../../../workers/cache/schema/schema.ts";
import { randomFor } from "../../../../hostile/servers/mutations.ts";
import { mutatedSchema } from "../../../../hostile/support/mutated-schema.ts";
import { amount, repeats } from "../../../../support/long.ts";

type Schema = Record<string, unknown>;

const ANYTHING = { description: "Any value." };
const STRING = { type: "string" };
const NUMBER = { type: "number" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });
const list = (rest: Schema): Schema => ({ type: "array", ...rest });
const ref = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
/** The schema of the only property `a`, with these definitions. */
const inside = (a: unknown, $defs?: Schema): Schema => object({ a }, $defs ? { $defs } : {});

const rows = (table: readonly (readonly [string, Schema, Schema, Repair[]])[]): void => {
  it.each(table)("%s", (_name, raw, schema, repairs) => {
    const before = structuredClone(raw);
    expect(repairInputSchema(raw)).toEqual({ schema, repairs });
    expect(raw).toEqual(before);
    // The words in a description stand there once, also for a schema that is read back from a cache.
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
    expect(refusals(schema)).toEqual([]);
  });
};

/**
 * What a provider would refuse, by the rules of docs/schemas.md: written anew, and as its own check, so that a slip of the
 * repair does not hide itself.
 */
function refusals(root: Schema): string[] {
  const found: string[] = [];
  const definitions = isObject(root.$defs) ? root.$defs : {};
  const visit = (schema: unknown, at: string): void => {
    const refuse = (why: string): void => {
      found.push(`${at}: ${why}`);
    };
    if (!isObject(schema) || Object.keys(schema).length === 0) {
      refuse("no object that says something");
      return;
    }
    const types = [schema.type].flat();
    if (typeof schema.$ref === "string") {
      const name = /^#\/\$defs\/([A-Za-z0-9_.-]{1,64})$/.exec(schema.$ref)?.[1];
      if (name === undefined || !Object.hasOwn(definitions, name)) refuse(`a reference to ${schema.$ref}`);
      const others = Object.keys(schema).filter((key) => !["$ref", "description", "default"].includes(key));
      if (others.length > 0) refuse(`${others.join()} beside a $ref`);
    }
    if (types.includes("array") && !isObject(schema.items)) refuse("a list without items");
    for (const key of ["prefixItems", "additionalItems", "definitions", "$dynamicRef", "$recursiveRef"]) {
      if (Object.hasOwn(schema, key)) refuse(key);
    }
    if (at !== "" && Object.hasOwn(schema, "$defs")) refuse("$defs below the root");
    if (schema.type !== undefined && (schema.anyOf !== undefined || schema.oneOf !== undefined)) {
      refuse("a type beside a union");
    }
    if (typeof schema.pattern === "string" && !/^\^.+\$$/.test(schema.pattern)) refuse("an open pattern");
    if (typeof schema.pattern === "string" && /\(\?[^:]|\\[a-mo-qs-zA-Z0-9]/.test(schema.pattern)) {
      refuse(`the pattern ${schema.pattern}`);
    }
    for (const [key, limit] of [
      ["minLength", 2_000],
      ["maxLength", 2_000],
      ["minItems", 500],
      ["maxItems", 500],
    ] as const) {
      if ((schema[key] as number) >= limit) refuse(`${key} of ${schema[key]}`);
    }
    const properties = isObject(schema.properties) ? schema.properties : {};
    if (types.includes("object") || isObject(schema.properties)) {
      for (const name of [schema.required ?? []].flat() as string[]) {
        if (!Object.hasOwn(properties, name)) refuse(`${name} is required and unknown`);
      }
    }
    for (const [name, below] of Object.entries(properties)) visit(below, `${at}/properties/${name}`);
    if (schema.items !== undefined) visit(schema.items, `${at}/items`);
    if (isObject(schema.additionalProperties))
      visit(schema.additionalProperties, `${at}/additionalProperties`);
    for (const key of ["anyOf", "oneOf"] as const) {
      for (const [i, part] of ((schema[key] as unknown[]) ?? []).entries()) visit(part, `${at}/${key}/${i}`);
    }
  };
  visit(root, "");
  for (const [name, schema] of Object.entries(definitions)) visit(schema, `$defs/${name}`);
  return found;
}

rows([
  ["a list without items (OpenAI)", inside(list({})), inside(list({ items: ANYTHING })), []],
  [
    "a list or null, a list in a union",
    object({ a: { type: ["array", "null"] }, b: { anyOf: [list({}), STRING] } }),
    object({
      a: { type: ["array", "null"], items: ANYTHING },
      b: { anyOf: [list({ items: ANYTHING }), STRING] },
    }),
    [],
  ],
  ["a list of anything", inside(list({ items: {} })), inside(list({ items: ANYTHING })), []],
  [
    "positions of one kind (Anthropic)",
    inside(list({ items: [NUMBER, NUMBER], minItems: 2, maxItems: 2 })),
    inside(list({ items: NUMBER, minItems: 2, maxItems: 2 })),
    ["tuple"],
  ],
  [
    "positions of two kinds, no further ones",
    inside(list({ description: "A pair.", items: [STRING, NUMBER], additionalItems: false })),
    inside(
      list({
        items: { anyOf: [STRING, NUMBER] },
        maxItems: 2,
        description: "A pair. By position: string, number.",
      }),
    ),
    ["tuple"],
  ],
  [
    "positions, and anything behind them",
    inside(list({ items: [STRING, NUMBER] })),
    inside(list({ items: ANYTHING, description: "By position: string, number." })),
    ["tuple"],
  ],
  [
    "positions of 2020-12 with names, and numbers behind them",
    inside(
      list({
        prefixItems: [
          { ...NUMBER, title: "lon" },
          { ...NUMBER, description: "Latitude" },
        ],
        items: STRING,
      }),
    ),
    inside(
      list({
        items: { anyOf: [NUMBER, STRING] },
        description: "By position: number (lon), number (Latitude), then string.",
      }),
    ),
    ["tuple"],
  ],
  [
    "a list that is empty",
    inside(list({ items: false })),
    inside(list({ items: ANYTHING, maxItems: 0 })),
    ["tuple"],
  ],
  [
    "a reference to a position",
    object({
      a: list({ items: [STRING, object({ n: NUMBER })], maxItems: 2 }),
      b: { $ref: "#/properties/a/items/1" },
    }),
    object(
      {
        a: list({
          items: { anyOf: [STRING, ref("a")] },
          maxItems: 2,
          description: "By position: string, a.",
        }),
        b: ref("a"),
      },
      { $defs: { a: object({ n: NUMBER }) } },
    ),
    ["tuple"],
  ],
  [
    "anything and nothing as schemas (llama.cpp)",
    object({
      a: true,
      b: false,
      c: {},
      d: { anyOf: [true, STRING] },
      e: { type: "object", additionalProperties: {} },
    }),
    object({
      a: ANYTHING,
      b: { not: {} },
      c: ANYTHING,
      d: { anyOf: [ANYTHING, STRING] },
      e: { type: "object", additionalProperties: true },
    }),
    [],
  ],
  [
    "large limits (llama.cpp)",
    object({ a: { ...STRING, minLength: 1, maxLength: 2_000 }, b: list({ items: STRING, maxItems: 1_000 }) }),
    object({
      a: { ...STRING, minLength: 1, description: "At most 2000 characters." },
      b: list({ items: STRING, description: "At most 1000 items." }),
    }),
    ["count"],
  ],
  [
    "patterns (llama.cpp, OpenAI)",
    object({ a: { ...STRING, pattern: "[a-z]" }, b: { ...STRING, pattern: "^[a-z0-9-]{1,9}$" } }),
    object({
      a: { ...STRING, description: "Must match /[a-z]/." },
      b: { ...STRING, pattern: "^[a-z0-9-]{1,9}$" },
    }),
    ["engine"],
  ],
  [
    "patterns of names",
    inside({ patternProperties: { "^x-\\d": STRING, "^(?!y)": STRING }, additionalProperties: false }),
    inside({ patternProperties: { "^x-\\d": STRING }, description: "Takes names that match /^(?!y)/." }),
    ["engine", "choice"],
  ],
]);

rows([
  [
    "references elsewhere than into $defs, as zod writes them (Gemini, Moonshot)",
    object({ a: object({ n: NUMBER }), b: list({ items: { $ref: "#/properties/a" } }) }),
    object({ a: ref("a"), b: list({ items: ref("a") }) }, { $defs: { a: object({ n: NUMBER }) } }),
    [],
  ],
  [
    "definitions, one of them without a reference",
    object(
      { a: { $ref: "#/definitions/P" } },
      { definitions: { P: object({ p: { $ref: "#/definitions/P" } }), Q: STRING } },
    ),
    inside(ref("P"), { P: object({ p: ref("P") }) }),
    [],
  ],
  [
    "schemas of OpenAPI, which Anthropic does not get",
    object({ a: { $ref: "#/components/schemas/Pet" } }, { components: { schemas: { Pet: STRING } } }),
    inside(ref("Pet"), { Pet: STRING }),
    [],
  ],
  [
    "definitions deep inside, and two of one name",
    object(
      { a: { $defs: { x: STRING }, ...ref("x") }, b: { $ref: "#/properties/a/$defs/x" } },
      { $defs: { x: NUMBER } },
    ),
    object({ a: ref("x"), b: ref("x2") }, { $defs: { x: NUMBER, x2: STRING } }),
    [],
  ],
  [
    "the root (llama.cpp)",
    object({ name: STRING, children: list({ items: { $ref: "#" } }) }, { $schema: "x" }),
    object(
      { name: STRING, children: list({ items: ref("root") }) },
      { $schema: "x", $defs: { root: object({ name: STRING, children: list({ items: ref("root") }) }) } },
    ),
    [],
  ],
  [
    "a title beside it, and a type (Gemini, Moonshot)",
    object(
      { a: { ...ref("x"), title: "A", description: "An x." }, b: { ...ref("x"), type: "string" } },
      { $defs: { x: STRING } },
    ),
    object({ a: { ...ref("x"), description: "An x." }, b: ref("x") }, { $defs: { x: STRING } }),
    ["beside"],
  ],
  [
    "a dynamic one, as a static one",
    inside({ $dynamicRef: "#x" }, { x: { $dynamicAnchor: "x", ...STRING } }),
    inside(ref("x"), { x: { $dynamicAnchor: "x", ...STRING } }),
    [],
  ],
  [
    "to true and false",
    object({ a: ref("t"), b: ref("f") }, { $defs: { t: true, f: false } }),
    object({ a: ref("t"), b: ref("f") }, { $defs: { t: ANYTHING, f: { not: {} } } }),
    [],
  ],
  [
    "a circle of required parameters (Gemini)",
    inside(ref("x"), { x: object({ v: STRING, next: ref("x") }, { required: ["v", "next"] }) }),
    inside(ref("x"), { x: object({ v: STRING, next: ref("x") }, { required: ["v"] }) }),
    ["circle"],
  ],
  [
    "a circle of required parameters in one alternative",
    inside(ref("x"), {
      x: {
        oneOf: [
          object({ not: object({ of: ref("x") }, { required: ["of"] }) }, { required: ["not"] }),
          object({ field: STRING }, { required: ["field"] }),
        ],
      },
    }),
    inside(ref("x"), {
      x: {
        anyOf: [
          object({ not: object({ of: ref("x") }) }, { required: ["not"] }),
          object({ field: STRING }, { required: ["field"] }),
        ],
      },
    }),
    ["circle", "choice"],
  ],
  [
    "circles with a way out",
    inside(ref("x"), {
      x: object(
        { next: { anyOf: [ref("x"), { type: "null" }] }, all: list({ items: ref("x") }) },
        { required: ["next", "all"] },
      ),
    }),
    inside(ref("x"), {
      x: object(
        { next: { anyOf: [ref("x"), { type: "null" }] }, all: list({ items: ref("x") }) },
        { required: ["next", "all"] },
      ),
    }),
    [],
  ],
]);

rows([
  [
    "a type beside a union (Moonshot)",
    inside({
      type: "string",
      description: "An address.",
      anyOf: [{ format: "ipv4" }, { ...STRING, minLength: 9 }, {}],
    }),
    inside({
      description: "An address.",
      anyOf: [{ ...STRING, format: "ipv4" }, { ...STRING, minLength: 9 }, STRING],
    }),
    [],
  ],
  [
    "types of both",
    inside({ type: ["string", "number"], anyOf: [{ type: ["string", "null"] }, { type: "integer" }] }),
    inside({ anyOf: [STRING, { type: "integer" }] }),
    [],
  ],
  [
    "a type that a part contradicts",
    inside({ type: "string", oneOf: [STRING, NUMBER] }),
    inside({ oneOf: [STRING, NUMBER] }),
    ["type"],
  ],
  [
    "a union in a union",
    inside({ type: "object", anyOf: [{ oneOf: [{ minProperties: 1 }, object({ b: STRING })] }] }),
    inside({ anyOf: [{ oneOf: [{ type: "object", minProperties: 1 }, object({ b: STRING })] }] }),
    [],
  ],
  [
    "a choice of required parameters",
    object({
      a: object(
        { x: STRING, y: STRING, z: STRING },
        { anyOf: [{ required: ["x"] }, { required: ["y", "z"] }] },
      ),
      b: object({ x: STRING, y: STRING }, { oneOf: [{ required: ["x"] }, { required: ["y"] }] }),
    }),
    object({
      a: object({ x: STRING, y: STRING, z: STRING }, { description: "Needs x, or y and z." }),
      b: object({ x: STRING, y: STRING }, { description: "Needs x, or else y." }),
    }),
    ["needs"],
  ],
  [
    "listed values without a type, or of another one (Moonshot)",
    object({
      a: { enum: ["x", "y"] },
      b: { enum: [1, 2.5, null] },
      c: { type: "string", enum: ["x", null] },
      d: { type: "string", enum: [1, 2] },
      e: { enum: ["x", 1] },
    }),
    object({
      a: { type: "string", enum: ["x", "y"] },
      b: { type: ["number", "null"], enum: [1, 2.5, null] },
      c: { type: "string", enum: ["x"] },
      d: { type: "integer", enum: [1, 2] },
      e: { enum: ["x", 1] },
    }),
    ["type"],
  ],
  [
    "required names without a schema (Gemini, Moonshot)",
    object({ a: object({ x: STRING }, { required: ["x", "y"] }) }, { required: ["a", "b"] }),
    object(
      { a: object({ x: STRING, y: ANYTHING }, { required: ["x", "y"] }), b: ANYTHING },
      { required: ["a", "b"] },
    ),
    [],
  ],
  [
    "required names that the schema excludes, or that no provider takes",
    object({ a: object({}, { required: ["y"], additionalProperties: false }) }, { required: ["b c"] }),
    object(
      { a: object({ y: ANYTHING }, { required: ["y"], additionalProperties: false }) },
      { required: [] },
    ),
    ["required"],
  ],
  [
    "around a part that takes more: not",
    inside({ not: list({ items: [STRING] }) }),
    inside(ANYTHING),
    ["tuple", "choice"],
  ],
  [
    "around a part that takes more: oneOf",
    inside({ oneOf: [list({ items: [STRING, NUMBER], maxItems: 2 }), list({ items: STRING })] }),
    inside({
      anyOf: [
        list({
          items: { anyOf: [STRING, NUMBER] },
          maxItems: 2,
          description: "By position: string, number.",
        }),
        list({ items: STRING }),
      ],
    }),
    ["tuple", "choice"],
  ],
]);

test("a list of many positions -> the first ten in words; of too many kinds -> anything", () => {
  const items = Array.from({ length: 300 }, (_, i) => ({ const: i }));
  const few = repairInputSchema(inside(list({ items: items.slice(0, 12), maxItems: 12 }))).schema;
  expect(few.properties).toMatchObject({
    a: { description: "By position: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …." },
  });
  const many = repairInputSchema(inside(list({ items, maxItems: 300 }))).schema;
  expect(many.properties).toMatchObject({ a: { items: ANYTHING } });
});

it.each([
  ...[
    "^[a-z0-9-]+$",
    "^[A-Z]{2,4}-[0-9]+$",
    "^(a|b)+c?$",
    "^(?:get|put)$",
    String.raw`^a\.b\\c$`,
    "^[^/]+$",
    "^.*$",
  ],
  ...[String.raw`^[\]a\-]$`, "^#[0-9a-f]{6}$", "^https?://[a-z]+$"],
])("the pattern %s -> taken", (source) => {
  expect(isTakenEverywhere(source, "value")).toBe(true);
});

it.each([
  ...["", "^$", "[a-z]+", "^a", "a$", "^a$|^b$", "^(^a)$", String.raw`^a\$`, "^a*?$", "^()$", "^(a|)$"],
  ...[
    String.raw`^\d+$`,
    String.raw`^\w$`,
    String.raw`^\s$`,
    String.raw`^\bx$`,
    String.raw`^[\d]$`,
    String.raw`^[\w.]$`,
  ],
  ...[
    "^(?=a)a$",
    "^(?!undefined$|null$)$",
    "^(?<=a)$",
    "^(?<year>a)$",
    String.raw`^\p{L}$`,
    String.raw`^[\p{L}]$`,
  ],
  ...["^[[]$", "^[a&&b]$", "^[+--]$", "^[]$", String.raw`^[\.]$`, String.raw`^\/$`, String.raw`^v\.?$`],
  ...["^é$", String.raw`^\u{1F600}$`, "^a{2000}$", "^a{1,2000}$", String.raw`^(a)\1$`],
])("the pattern %s -> refused", (source) => {
  expect(isTakenEverywhere(source, "value")).toBe(false);
});

it.each<[string, boolean]>([
  ...["^x-", "[a-z]", String.raw`^\d+$`, "^a|b$", String.raw`\bx`].map((source): [string, boolean] => [
    source,
    true,
  ]),
  ...["(?=a)", "(?<n>a)", String.raw`\p{L}`, "[[]", "[a&&b]", "a{2000}", String.raw`(a)\1`].map(
    (source): [string, boolean] => [source, false],
  ),
])("the pattern %s of names -> taken: %s", (source, isTaken) => {
  expect(isTakenEverywhere(source, "name")).toBe(isTaken);
});

const SEED = 20_261_127;
const MUTATIONS = repeats("SCHEMA_MUTATIONS", amount(300, 1_000));

test(`${MUTATIONS} schemas with accidents, seed ${SEED} -> none that a provider refuses, and a second repair changes nothing`, () => {
  for (let number = 0; number < MUTATIONS; number++) {
    const raw = mutatedSchema(randomFor(SEED, number));
    const { schema } = repairInputSchema(raw);
    expect(refusals(schema), JSON.stringify(raw)).toEqual([]);
    expect(JSON.stringify(repairInputSchema(schema).schema), JSON.stringify(raw)).toBe(
      JSON.stringify(schema),
    );
    // A schema with a hidden name is left out with its tool.
    expect(JSON.stringify(cleanSchema(schema) ?? {})).not.toMatch(/[^\\](?:\\\\)*\\ud/);
  }
});
