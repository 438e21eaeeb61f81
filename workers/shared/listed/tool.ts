/**
 * A tool as a server listed it or a cache file holds it, reduced to what is kept and made safe to handle. Servers are
 * untrusted: a field of the wrong type is left out, and so is a schema that is too deep or too big to encode, which
 * then counts as one that takes any object. A text that is too long is cut. A tool without a usable name is left out.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { cut } from "../../../src/shared/text/unprintable.ts";

/** MCP 2025-11-25, server/tools, reduced. */
export interface CachedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
}

/** The keys of `CachedTool`. Other keys of a tool in a cache file belong to other adapters. */
export const TOOL_FIELDS: readonly string[] = [
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
] satisfies (keyof CachedTool)[];

const SCHEMA_DEPTH = 64;
const SCHEMA_NODES = 20_000;
const SCHEMA_CHARS = 512 * 1024;
const NAME_CHARS = 1_000;
const TITLE_CHARS = 1_000;
/** Five times as long as the index reads, and far longer than helps any model. */
const DESCRIPTION_CHARS = 20_000;
/** Counted for the digits of a number, or for a word of JSON. */
const SCALAR_CHARS = 8;

/** Whether a JSON value is within the limits of depth and size, keys included. Without recursion, because of the depth. */
export function isBounded(value: unknown): boolean {
  let level: unknown[] = [value];
  let nodes = 0;
  let chars = 0;
  for (let depth = 0; level.length > 0; depth++) {
    nodes += level.length;
    if (depth > SCHEMA_DEPTH || nodes > SCHEMA_NODES) return false;
    const next: unknown[] = [];
    for (const node of level) {
      if (Array.isArray(node)) {
        for (const child of node) next.push(child);
      } else if (typeof node === "object" && node !== null) {
        for (const key of Object.keys(node)) {
          chars += key.length;
          next.push((node as Record<string, unknown>)[key]);
        }
      } else {
        chars += typeof node === "string" ? node.length : SCALAR_CHARS;
      }
    }
    if (chars > SCHEMA_CHARS) return false;
    level = next;
  }
  return true;
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Undefined for a value that is not a tool. */
export function normalizeTool(raw: unknown): CachedTool | undefined {
  if (!isObject(raw)) return undefined;
  const name = text(raw.name);
  // U+0000 separates the columns of a snapshot, and no real name holds it.
  if (name === undefined || name.length > NAME_CHARS || name.includes("\u0000")) return undefined;
  const tool: CachedTool = { name };
  const title = text(raw.title);
  const description = text(raw.description);
  if (title !== undefined) tool.title = cut(title, TITLE_CHARS);
  if (description !== undefined) tool.description = cut(description, DESCRIPTION_CHARS);
  if (isObject(raw.inputSchema) && isBounded(raw.inputSchema)) tool.inputSchema = raw.inputSchema;
  if (isObject(raw.outputSchema) && isBounded(raw.outputSchema)) tool.outputSchema = raw.outputSchema;
  if (isObject(raw.annotations) && isBounded(raw.annotations)) tool.annotations = raw.annotations;
  return tool;
}

/** Names of the tools in a list whose schemas are too deep or too big to be kept. */
export const unboundedTools = (raw: unknown): string[] =>
  (Array.isArray(raw) ? raw : [])
    .filter((tool) => isObject(tool) && !(isBounded(tool.inputSchema) && isBounded(tool.outputSchema)))
    .map((tool) => String(tool.name));

/** The tools of a list, in order. If several have one name, the first counts. */
export function normalizeTools(raw: unknown): CachedTool[] {
  const tools = new Map<string, CachedTool>();
  for (const item of Array.isArray(raw) ? raw : []) {
    const tool = normalizeTool(item);
    if (tool && !tools.has(tool.name)) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}
