/**
 * Names of a tool's parameters as providers take them. Anthropic's API, also behind Bedrock, refuses a whole
 * request over one name in the `properties` of a tool's root that is no `^[a-zA-Z0-9_.-]{1,64}$` (400,
 * "Property keys should match pattern"); deeper names are free. So such parameters are told in the tool's
 * description instead, and the schema takes them without declaring them. Pure.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { PARAMETER_NAME } from "../../shared/listed/parameter-name.ts";

type Schema = Record<string, unknown>;

const SHOWN = 20;
/** A longer name is left untold: nobody would write it out. */
const NAME_CHARS = 200;

/** They would forbid, or judge, what is no longer declared. */
const JUDGES_OTHERS = ["additionalProperties", "unevaluatedProperties"];

export interface DeclaredSchema {
  schema: Schema;
  /** For the description of the tool; undefined where every parameter is declared. */
  undeclared?: string;
}

/** `"filter[name]" (string, required)`. */
function tell(name: string, schema: unknown, isRequired: boolean): string {
  const type = isObject(schema) && typeof schema.type === "string" ? [schema.type] : [];
  const words = [...type, ...(isRequired ? ["required"] : [])];
  return JSON.stringify(name) + (words.length > 0 ? ` (${words.join(", ")})` : "");
}

/** `root`: a repaired input schema. */
export function declareParameters(root: Schema): DeclaredSchema {
  const properties = isObject(root.properties) ? root.properties : {};
  const names = Object.keys(properties).filter((name) => !PARAMETER_NAME.test(name));
  if (names.length === 0) return { schema: root };
  const hidden = new Set(names);
  const required = Array.isArray(root.required) ? (root.required as string[]) : [];
  const entries = Object.entries(root).flatMap(([key, value]): [string, unknown][] => {
    if (key === "properties") {
      return [[key, Object.fromEntries(Object.entries(properties).filter(([name]) => !hidden.has(name)))]];
    }
    if (key === "required") return [[key, required.filter((name) => !hidden.has(name))]];
    return JUDGES_OTHERS.includes(key) ? [] : [[key, value]];
  });
  const told = names.filter((name) => name.length <= NAME_CHARS).slice(0, SHOWN);
  const words = told.map((name) => tell(name, properties[name], required.includes(name)));
  if (told.length < names.length) words.push(`${names.length - told.length} more`);
  return { schema: Object.fromEntries(entries), undeclared: `Also takes ${words.join(", ")}.` };
}
