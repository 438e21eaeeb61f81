/** Owns: input schemas with accidents in them, and arguments for such schemas. */
import { mutateJson, type Random } from "../servers/mutations.ts";

const STRING = { type: "string" };

/** Sound schemas that hold every keyword that a repair reads. */
const SOUND = [
  {
    type: "object",
    properties: {
      a: { ...STRING, pattern: "^[a-z]+$", minLength: 1, maxLength: 9, format: "date", default: "x" },
      b: { type: "array", items: { $ref: "#/$defs/node" }, minItems: 1, uniqueItems: true, contains: STRING },
      c: {
        anyOf: [STRING, { type: "number", minimum: 0, exclusiveMaximum: 9, multipleOf: 2 }, { type: "null" }],
      },
      d: { enum: ["x", 1, null], description: "One of three." },
    },
    required: ["a"],
    additionalProperties: false,
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] } },
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    oneOf: [
      { type: "object", properties: { kind: { const: "a" }, a: STRING }, required: ["kind"] },
      { type: "object", properties: { kind: { const: "b" }, b: { not: STRING } }, required: ["kind"] },
    ],
    patternProperties: { "^x-": STRING },
    propertyNames: { pattern: "^[a-z]" },
    dependentRequired: { a: ["b"] },
    dependentSchemas: { a: { properties: { b: STRING } } },
    if: { properties: { kind: { const: "a" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: ["a"] },
    else: { required: ["b"] },
  },
  {
    type: ["object", "null"],
    allOf: [{ $ref: "#/definitions/base" }, { properties: { b: { type: "integer" } } }],
    definitions: {
      base: { type: "object", properties: { a: STRING, b: { prefixItems: [STRING], items: false } } },
    },
    unevaluatedProperties: { type: "boolean" },
    minProperties: 1,
  },
] as const;

const WORDS = [
  ...["#", "#/$defs/node", "#/properties/a", "#/nowhere", "#/definitions/base", "#/properties/b/items", "x"],
  ...["(a+)+$", "^(([a-z])+.)+$", "[", "(?<n>a)\\k<n>", "object", "array", "integer", "string"],
] as const;
const KEYS = [
  ...[
    "$ref",
    "$dynamicRef",
    "pattern",
    "type",
    "items",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "properties",
    "enum",
  ],
  ...["required", "$id", "$anchor", "additionalProperties", "minimum", "maxLength", "const", "if", "format"],
] as const;

/** Sets a random keyword to a word with a meaning, so that the accidents are not only noise. */
function twist(value: unknown, random: Random): void {
  if (typeof value !== "object" || value === null) return;
  const inner = Object.values(value).filter((part) => typeof part === "object" && part !== null);
  if (inner.length > 0 && random.below(4) > 0) {
    twist(inner[random.below(inner.length)], random);
    return;
  }
  const key = KEYS[random.below(KEYS.length)] ?? "type";
  const word = WORDS[random.below(WORDS.length)] ?? "x";
  const values = [
    word,
    [word],
    { $ref: word },
    [{ $ref: word }, { type: word }],
    { [word]: { pattern: word } },
  ];
  Reflect.set(value, key, values[random.below(values.length)]);
}

export function mutatedSchema(random: Random): unknown {
  const schema: unknown = structuredClone(SOUND[random.below(SOUND.length)]);
  for (let rounds = random.below(4); rounds > 0; rounds--) twist(schema, random);
  return random.below(4) === 0 ? schema : mutateJson(schema, random);
}

/** Arguments that a model may pass; some hold a text that makes slow patterns run very long. */
export const argumentsFor = (random: Random): unknown => {
  const texts = ["x", "a", `${"a".repeat(60)}!!`];
  const text = texts[random.below(texts.length)];
  const all = [
    {},
    { a: text },
    { a: text, b: [{ next: { next: text } }], c: 4, d: null },
    { kind: text, b: 1 },
  ];
  return all[random.below(all.length)];
};
