/**
 * Makes a tool's schemas fit for hosts and providers: the root of an input schema is one object, and nothing
 * in it keeps a host from compiling it. What a sound schema means is not changed; what had to be left out is
 * told. Pure.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { isCheckedFast, recursiveReferences } from "./effort.ts";
import { holdsReference } from "./loosen.ts";
import { type Repair, repairBelow } from "./nodes.ts";
import { declareParameters } from "./parameter-names.ts";
import { objectRoot } from "./root.ts";
import { isWithin, type Size, sizeOf } from "./size.ts";

export { cleanSchema } from "./clean.ts";
export { moveReferences } from "./move-references.ts";

export type { Repair } from "./nodes.ts";

type Schema = Record<string, unknown>;

/**
 * What one declared schema may have. The largest of 2,000 real tools has 231 values and 8 KB; this much would
 * fill a third of a model's context, and takes a host 0.1 s to compile.
 */
const LARGEST: Size = { nodes: 10_000, chars: 256 * 1024 };
/** A repaired schema may have that many times what the server wrote, and some words of ours. */
const GROWTH = 3;
const SPARE: Size = { nodes: 100, chars: 8 * 1024 };

export interface RepairedSchema {
  schema: Schema;
  /** Each kind once. */
  repairs: Repair[];
}

export interface RepairedInputSchema extends RepairedSchema {
  /** Parameters that the schema takes and does not declare, in words for the tool's description. */
  undeclared?: string;
}

function limitFor(raw: unknown): Size {
  const { nodes, chars } = sizeOf(raw, LARGEST);
  return {
    nodes: Math.min(LARGEST.nodes, GROWTH * nodes + SPARE.nodes),
    chars: Math.min(LARGEST.chars, GROWTH * chars + SPARE.chars),
  };
}

/** Without references that would make a host check a value for very long: recursive ones first, else all. */
function withBoundedEffort(schema: Schema, note: (repair: Repair) => void): Schema {
  const isFast = (candidate: Schema): boolean => !holdsReference(candidate) || isCheckedFast(candidate);
  if (isFast(schema)) return schema;
  const flat = repairBelow(schema, note, recursiveReferences(schema));
  return isFast(flat) ? flat : repairBelow(flat, note, () => true);
}

/** MCP 2025-11-25, server/tools: `inputSchema` is a JSON Schema of type object. Anything else takes any object. */
export function repairInputSchema(raw: unknown): RepairedInputSchema {
  const repairs = new Set<Repair>();
  const note = (repair: Repair): void => {
    repairs.add(repair);
  };
  const limit = limitFor(raw);
  const root = repairBelow(objectRoot(raw, note, limit), note);
  const { schema: declared, undeclared } = declareParameters(root);
  if (undeclared !== undefined) note("name");
  // References may lead to what is no longer declared.
  const named = undeclared === undefined ? root : repairBelow(declared, note);
  const schema = withBoundedEffort(named, note);
  if (!isWithin(schema, limit)) {
    note("size");
    return { schema: { type: "object", properties: {} }, repairs: [...repairs] };
  }
  return { schema, repairs: [...repairs], ...(undeclared === undefined ? {} : { undeclared }) };
}

/** Undefined for what is no schema object. Its root may be of any type. No host checks a result against it. */
export function repairOutputSchema(raw: unknown): RepairedSchema | undefined {
  if (!isObject(raw)) return undefined;
  const repairs = new Set<Repair>();
  const schema = repairBelow(raw, (repair) => repairs.add(repair));
  if (isWithin(schema, limitFor(raw))) return { schema, repairs: [...repairs] };
  return { schema: {}, repairs: [...repairs.add("size")] };
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
  slow: "patterns that could take a host very long were moved to descriptions, the server checks them",
  choice: "what depends on a part that was left out was loosened",
  depth: "what lies too deep was left out",
  size: "what is too big to declare takes any value",
  effort: "references and unions that could take a host very long to check were left out",
};

const SHOWN_TOOLS = 5;

/** One line for the log. `tools`: whose schemas needed the repair. */
export function repairLine(server: string, repair: Repair, tools: readonly string[]): string {
  const shown = tools.slice(0, SHOWN_TOOLS).join(", ");
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `${server}: schemas repaired, ${WORDS[repair]}: ${shown}${more}`;
}
