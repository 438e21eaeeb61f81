/**
 * One schema's own keywords before and beside their repair: forms of older drafts are rewritten, and patterns that the
 * host does not get are told in words. Pure. Called by nodes.ts.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { hasFlagLimits, withNumericLimits } from "./keywords.ts";
import type { Patterns } from "./patterns/patterns.ts";
import type { Repair } from "./repairs.ts";

type Schema = Record<string, unknown>;

/** Replaces what only another draft reads as it is meant, and drops a `$ref` in the place of `properties`. */
export function rewritten(node: Schema, repaired: (repair: Repair) => void): Schema {
  let schema = node;
  if (hasFlagLimits(schema)) {
    repaired("value");
    schema = withNumericLimits(schema);
  }
  if (isObject(schema.properties) && typeof schema.properties.$ref === "string") {
    repaired("reference");
    const { $ref: _reference, ...properties } = schema.properties;
    schema = { ...schema, properties };
    // The properties behind that reference are unknown, so a closed schema would refuse them.
    for (const key of ["additionalProperties", "unevaluatedProperties"]) {
      if (schema[key] === false) delete schema[key];
    }
  }
  return schema;
}

/** Sentences for the description: the patterns of the schema that only the server checks. */
export function patternTexts(
  patterns: Patterns,
  { pattern, patternProperties, propertyNames }: Schema,
): string[] {
  const names = isObject(patternProperties) ? Object.keys(patternProperties) : [];
  const ofNames = isObject(propertyNames) ? propertyNames.pattern : undefined;
  const sentence = (source: unknown, words: string): string[] => {
    if (typeof source !== "string" || patterns.judge(source) !== "slow") return [];
    const shown = patterns.show(source);
    return shown === undefined ? [] : [`${words} ${shown}.`];
  };
  return [
    ...sentence(pattern, "Must match the pattern"),
    ...sentence(ofNames, "Names must match the pattern"),
    ...names.flatMap((name) => sentence(name, "Takes names that match the pattern")),
  ];
}
