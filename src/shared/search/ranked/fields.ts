/**
 * Owns which texts of a tool are searched, and how much of each. A server controls all of them, so every walk and every
 * text is bounded. Called by build/scan.ts.
 */
import { isObject } from "../../protocol/is-object.ts";
import type { FieldName } from "./weights.ts";

export type SearchTool = {
  readonly server: string;
  readonly name: string;
  /** Name that the model calls, if it is not `mcp__server__name`. */
  readonly fullName?: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  /** Title and instructions of the server. */
  readonly serverDescription?: string;
};

const maxDepth = 4;
const maxNodes = 300;
const maxEnumValues = 12;
const maxEnumLength = 40;
const maxNameCharacters = 256;
const maxTextCharacters = 4_000;
const maxSchemaCharacters = 3_000;

export function toolFields(tool: SearchTool): Record<FieldName, string> {
  const schema = schemaTexts(tool.inputSchema);
  return {
    name: text(tool.name, maxNameCharacters),
    server: text(tool.server, maxNameCharacters),
    lead: lead(text(tool.description, 300)),
    description: text(tool.description, maxTextCharacters),
    paramName: schema.names.join(" "),
    paramText: schema.texts.join(" "),
    serverText: text(tool.serverDescription, 600),
  };
}

function text(value: unknown, maxCharacters: number): string {
  return typeof value === "string" ? value.slice(0, maxCharacters) : "";
}

type SchemaTexts = { names: string[]; texts: string[] };
type Visit = { node: unknown; depth: number };

/** Names and texts of a schema, breadth first, so that the bound cuts the deepest parameters and never the tool's own. */
function schemaTexts(schema: unknown): SchemaTexts {
  const found: SchemaTexts = { names: [], texts: [] };
  let budget = maxSchemaCharacters;
  const queue: Visit[] = [{ node: schema, depth: 0 }];
  const keep = (into: string[], value: unknown, maxCharacters: number): void => {
    if (typeof value !== "string" || budget <= 0) return;
    const kept = value.slice(0, Math.min(maxCharacters, budget));
    budget -= kept.length;
    into.push(kept);
  };
  for (let at = 0; at < queue.length && at < maxNodes && budget > 0; at++) {
    const { node, depth } = queue[at]!;
    if (!isObject(node)) continue;
    if (depth > 0) keep(found.texts, node.description, 400);
    for (const value of list(node.enum, maxEnumValues)) {
      if (typeof value === "string" && value.length <= maxEnumLength) keep(found.texts, value, maxEnumLength);
    }
    if (depth >= maxDepth) continue;
    const properties = node.properties;
    if (isObject(properties)) {
      for (const name of Object.keys(properties).slice(0, maxNodes)) {
        keep(found.names, name, 60);
        queue.push({ node: properties[name], depth: depth + 1 });
      }
    }
    for (const child of [
      node.items,
      ...list(node.anyOf, 8),
      ...list(node.oneOf, 8),
      ...list(node.allOf, 8),
    ]) {
      if (isObject(child)) queue.push({ node: child, depth: depth + 1 });
    }
  }
  return found;
}

function list(value: unknown, max: number): unknown[] {
  return Array.isArray(value) ? value.slice(0, max) : [];
}

/** The first sentence, which says what a tool does. */
function lead(description: string): string {
  return (
    /^[\s\S]{12,}?(?:[.!?](?=\s)|[\u3002\uff01\uff1f\n]|$)/u.exec(description.trim())?.[0] ?? description
  );
}
