/**
 * Makes a tool's schemas fit for hosts and providers: the root of an input schema is one object, and nothing
 * in it keeps a host from compiling it. What a sound schema means is not changed; what had to be left out is
 * told. Pure.
 */

import { isObject } from "../../src/protocol/is-object.ts";
import { declareParameters } from "./schema-names.ts";
import { type Repair, repairBelow } from "./schema-nodes.ts";
import { objectRoot } from "./schema-root.ts";

export type { Repair } from "./schema-nodes.ts";

type Schema = Record<string, unknown>;

export interface RepairedSchema {
  schema: Schema;
  /** Each kind once. */
  repairs: Repair[];
}

export interface RepairedInputSchema extends RepairedSchema {
  /** Parameters that the schema takes and does not declare, in words for the tool's description. */
  undeclared?: string;
}

/** MCP 2025-11-25, server/tools: `inputSchema` is a JSON Schema of type object. Anything else takes any object. */
export function repairInputSchema(raw: unknown): RepairedInputSchema {
  const repairs = new Set<Repair>();
  const note = (repair: Repair): void => {
    repairs.add(repair);
  };
  const root = repairBelow(objectRoot(raw, note), note);
  const declared = declareParameters(root);
  if (declared.undeclared === undefined) return { schema: root, repairs: [...repairs] };
  note("name");
  // References may lead to what is no longer declared.
  const schema = repairBelow(declared.schema, note);
  return { schema, repairs: [...repairs], undeclared: declared.undeclared };
}

/** Undefined for what is no schema object. Its root may be of any type. */
export function repairOutputSchema(raw: unknown): RepairedSchema | undefined {
  if (!isObject(raw)) return undefined;
  const repairs = new Set<Repair>();
  const schema = repairBelow(raw, (repair) => repairs.add(repair));
  return { schema, repairs: [...repairs] };
}

export const normalizeInputSchema = (schema: unknown): Schema => repairInputSchema(schema).schema;

const WORDS: Record<Repair, string> = {
  root: "the root was no object schema",
  union: "a union at the root was merged into one object",
  reference: "a $ref that leads nowhere was left out",
  loop: "a $ref that leads back to itself was left out",
  pattern: "a pattern that is no regular expression was left out",
  keyword: "a keyword with a value that it cannot have was left out",
  value: "a value was rewritten as its keyword takes it",
  schema: "what stands for a schema and is none was replaced by one that takes anything",
  name: "parameters with names that providers refuse were moved to the description",
  depth: "what lies too deep was left out",
};

const SHOWN_TOOLS = 5;

/** One line for the log. `tools`: whose schemas needed the repair. */
export function repairLine(server: string, repair: Repair, tools: readonly string[]): string {
  const shown = tools.slice(0, SHOWN_TOOLS).join(", ");
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `${server}: schemas repaired, ${WORDS[repair]}: ${shown}${more}`;
}
