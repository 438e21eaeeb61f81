/**
 * Makes a schema fit for a model to read. Texts are cleaned. Names and data cannot be changed, since the server
 * compares them: data with hidden characters is left out, and a schema with hidden characters in a name is not used at
 * all. Expects a repaired schema, whose depth is bounded. Pure.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { cleanText, cut } from "../../../src/shared/text/unprintable.ts";
import { MAPS } from "./keywords.ts";

/** Keywords whose values are data. JSON escapes characters that a terminal acts on, but not invisible ones. */
const DATA = new Set(["const", "default", "examples", "example", "enum", "pattern"]);

/** Matches the JSON of a schema in which no character can need a change. */
const PLAIN = /^(?:[ !#-[\]-~]|"|\\["\\/nt])*$/;

class HiddenName extends Error {}

function nameOf(name: string): string {
  if (cleanText(name) !== name) throw new HiddenName();
  return name;
}

function isSeen(value: unknown): boolean {
  const json = JSON.stringify(value);
  return cleanText(json) === json;
}

/** The data without invisible characters; undefined if nothing is left. */
function cleanData(key: string, value: unknown): unknown {
  if (key !== "enum" || !Array.isArray(value)) return isSeen(value) ? value : undefined;
  const seen = value.filter(isSeen);
  return seen.length > 0 ? seen : undefined;
}

function cleanValue(key: string, value: unknown): unknown {
  if (DATA.has(key)) return cleanData(key, value);
  if (typeof value === "string" && key.startsWith("$") && key !== "$comment") return nameOf(value);
  if (!MAPS.has(key) || !isObject(value)) return clean(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [nameOf(name), clean(inner)]));
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return cut(cleanText(value), LIMITS.descriptionChars);
  if (Array.isArray(value)) return value.map(clean);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [nameOf(key), cleanValue(key, inner)] as const)
      .filter(([, kept]) => kept !== undefined),
  );
}

/** The same object if nothing has to change; undefined if a name holds invisible characters. */
export function cleanSchema(schema: Record<string, unknown>): Record<string, unknown> | undefined {
  const json = JSON.stringify(schema);
  if (json.length <= LIMITS.descriptionChars && PLAIN.test(json)) return schema;
  try {
    return clean(schema) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof HiddenName) return undefined;
    throw error;
  }
}
