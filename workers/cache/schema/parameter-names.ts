/**
 * Keeps parameters whose names providers refuse out of a tool's schema. Anthropic's API, also behind Bedrock, refuses a
 * whole request over one name in the `properties` of a tool's root that does not match `^[a-zA-Z0-9_.-]{1,64}$` (400,
 * "Property keys should match pattern"); deeper names are free. The tool's description names such parameters instead,
 * and the schema takes them without declaring them. Pure.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { PARAMETER_NAME } from "../../shared/listed/parameter-name.ts";

type Schema = Record<string, unknown>;

const SHOWN = 20;
/** A longer name is not shown: nobody would write it out. */
const NAME_CHARS = 200;

/** Keywords that would forbid or judge the parameters that are no longer declared. */
const JUDGES_OTHERS = ["additionalProperties", "unevaluatedProperties"];

export interface DeclaredSchema {
  schema: Schema;
  /** A sentence for the description of the tool; absent if every parameter is declared. */
  undeclared?: string;
}

/** For example `"filter[name]" (string, required)`. */
function describe(name: string, schema: unknown, isRequired: boolean): string {
  const type = isObject(schema) && typeof schema.type === "string" ? [schema.type] : [];
  const words = [...type, ...(isRequired ? ["required"] : [])];
  return JSON.stringify(name) + (words.length > 0 ? ` (${words.join(", ")})` : "");
}

/** Moves parameters with refused names out of the schema. `root`: a repaired input schema. */
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
  const shown = names.filter((name) => name.length <= NAME_CHARS).slice(0, SHOWN);
  const words = shown.map((name) => describe(name, properties[name], required.includes(name)));
  if (shown.length < names.length) words.push(`${names.length - shown.length} more`);
  return { schema: Object.fromEntries(entries), undeclared: `Also takes ${words.join(", ")}.` };
}
