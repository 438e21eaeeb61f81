/**
 * A resource or resource template as a server listed it or a cache file holds it, reduced to what is kept.
 * Servers are untrusted: a field of the wrong type is left out, and what has no usable URI is none.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

interface Described {
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** MCP 2025-11-25, server/resources, reduced. */
export type CachedResource = Described & { uri: string };
export type CachedTemplate = Described & { uriTemplate: string };

export interface CachedResources {
  resources: CachedResource[];
  templates: CachedTemplate[];
}

const TEXT_CHARS = 10_000;

/** A text that is one, and not longer than anybody would read. */
export const shortText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= TEXT_CHARS ? value : undefined;

function describe(raw: Record<string, unknown>, uri: string): Described {
  const described: Described = { name: shortText(raw.name) ?? uri };
  for (const key of ["title", "description", "mimeType"] as const) {
    const value = shortText(raw[key]);
    if (value !== undefined) described[key] = value;
  }
  return described;
}

/** The items of a list that are usable, in order; of several of one key the first. */
function normalize<T>(raw: unknown, key: "uri" | "uriTemplate"): T[] {
  const found = new Map<string, T>();
  for (const item of Array.isArray(raw) ? raw : []) {
    const uri = isObject(item) ? shortText(item[key]) : undefined;
    if (uri === undefined || found.has(uri)) continue;
    found.set(uri, { [key]: uri, ...describe(item, uri) } as T);
  }
  return [...found.values()];
}

export const normalizeResources = (raw: unknown): CachedResource[] => normalize(raw, "uri");
export const normalizeTemplates = (raw: unknown): CachedTemplate[] => normalize(raw, "uriTemplate");

/** Within the limit for one server; templates first, since each stands for many resources. */
export function boundResources({ resources, templates }: CachedResources): {
  known: CachedResources;
  /** How many are not. */
  leftOut: number;
} {
  const keptTemplates = templates.slice(0, LIMITS.resourcesPerServer);
  const kept = resources.slice(0, LIMITS.resourcesPerServer - keptTemplates.length);
  const leftOut = resources.length + templates.length - kept.length - keptTemplates.length;
  return { known: { resources: kept, templates: keptTemplates }, leftOut };
}
