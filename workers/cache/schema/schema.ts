/**
 * Makes the schemas of a tool fit for hosts and providers: the root of an input schema is one object, and a host can
 * compile all of it. Owns every repair. Must not change what a sound schema means, or refuse a value that the server
 * takes. Reports each repair. Called by snapshot/prepare-tools.ts. Pure. To add a repair: a word in repairs.ts, its
 * sentence beside it, and the keyword's row in keywords.ts or its branch in nodes.ts.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { isCheckedFast, recursiveReferences } from "./effort.ts";
import { holdsReference } from "./loosen.ts";
import { repairBelow } from "./nodes.ts";
import { declareParameters } from "./parameter-names.ts";
import type { Repair } from "./repairs.ts";
import { objectRoot } from "./root.ts";
import { isWithin, type Size, sizeOf } from "./size.ts";

export { cleanSchema } from "./clean.ts";
export { moveReferences } from "./move-references.ts";

export { type Repair, repairLine } from "./repairs.ts";

type Schema = Record<string, unknown>;

/**
 * The largest schema that is declared. The largest of 2,000 real tools has 231 values and 8 KB; this much would fill a
 * third of a model's context, and takes a host 0.1 s to compile.
 */
const LARGEST: Size = { nodes: 10_000, chars: 256 * 1024 };
/** A repaired schema may be this many times as large as the server's, and `SPARE` larger for added sentences. */
const GROWTH = 3;
const SPARE: Size = { nodes: 100, chars: 8 * 1024 };

export interface RepairedSchema {
  schema: Schema;
  /** Each kind once. */
  repairs: Repair[];
}

export interface RepairedInputSchema extends RepairedSchema {
  /** A sentence for the tool's description: the parameters that the schema takes and does not declare. */
  undeclared?: string;
}

function limitFor(raw: unknown): Size {
  const { nodes, chars } = sizeOf(raw, LARGEST);
  return {
    nodes: Math.min(LARGEST.nodes, GROWTH * nodes + SPARE.nodes),
    chars: Math.min(LARGEST.chars, GROWTH * chars + SPARE.chars),
  };
}

/** Leaves out references with which a host would check a value for very long: recursive ones first, then all. */
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
  // References may lead to a parameter that is no longer declared.
  const named = undeclared === undefined ? root : repairBelow(declared, note);
  const schema = withBoundedEffort(named, note);
  if (!isWithin(schema, limit)) {
    note("size");
    return { schema: { type: "object", properties: {} }, repairs: [...repairs] };
  }
  return { schema, repairs: [...repairs], ...(undeclared === undefined ? {} : { undeclared }) };
}

/** Undefined for a value that is not an object. The root may have any type, and no host checks a result against it. */
export function repairOutputSchema(raw: unknown): RepairedSchema | undefined {
  if (!isObject(raw)) return undefined;
  const repairs = new Set<Repair>();
  const schema = repairBelow(raw, (repair) => repairs.add(repair));
  if (isWithin(schema, limitFor(raw))) return { schema, repairs: [...repairs] };
  return { schema: {}, repairs: [...repairs.add("size")] };
}

export const normalizeInputSchema = (schema: unknown): Schema => repairInputSchema(schema).schema;
