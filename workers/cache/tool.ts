/**
 * A tool as a server listed it or a cache file holds it, reduced to what is kept and made safe to handle.
 * Servers are untrusted: a field of the wrong type is left out, a schema too deep or too big to encode is
 * replaced by one that takes any object, and what has no usable name is no tool.
 */

/** MCP 2025-11-25, server/tools, reduced. */
export interface CachedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
}

/** Its keys: what else a cache file holds of a tool belongs to other adapters. */
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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a JSON value stays within depth and size. Walks without recursion: depth is what it guards. */
export function isBounded(value: unknown): boolean {
  let level: unknown[] = [value];
  let nodes = 0;
  let chars = 0;
  for (let depth = 0; level.length > 0; depth++) {
    nodes += level.length;
    if (depth > SCHEMA_DEPTH || nodes > SCHEMA_NODES) return false;
    const next: unknown[] = [];
    for (const node of level) {
      if (typeof node === "string") chars += node.length;
      if (typeof node !== "object" || node === null) continue;
      for (const child of Object.values(node)) next.push(child);
    }
    if (chars > SCHEMA_CHARS) return false;
    level = next;
  }
  return true;
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Undefined for what is no tool. */
export function normalizeTool(raw: unknown): CachedTool | undefined {
  if (!isObject(raw)) return undefined;
  const name = text(raw.name);
  // U+0000 separates the columns of a snapshot, and no server can mean it in a name.
  if (name === undefined || name.length > NAME_CHARS || name.includes("\u0000")) return undefined;
  const tool: CachedTool = { name };
  const title = text(raw.title);
  const description = text(raw.description);
  if (title !== undefined) tool.title = title;
  if (description !== undefined) tool.description = description;
  if (isObject(raw.inputSchema) && isBounded(raw.inputSchema)) tool.inputSchema = raw.inputSchema;
  if (isObject(raw.outputSchema) && isBounded(raw.outputSchema)) tool.outputSchema = raw.outputSchema;
  if (isObject(raw.annotations) && isBounded(raw.annotations)) tool.annotations = raw.annotations;
  return tool;
}

/** Names of the tools of a list whose schemas are too deep or too big to be kept. */
export const unboundedTools = (raw: unknown): string[] =>
  (Array.isArray(raw) ? raw : [])
    .filter((tool) => isObject(tool) && !(isBounded(tool.inputSchema) && isBounded(tool.outputSchema)))
    .map((tool) => String(tool.name));

/** The tools of a list, in order; of several of one name the first. */
export function normalizeTools(raw: unknown): CachedTool[] {
  const tools = new Map<string, CachedTool>();
  for (const item of Array.isArray(raw) ? raw : []) {
    const tool = normalizeTool(item);
    if (tool && !tools.has(tool.name)) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}
