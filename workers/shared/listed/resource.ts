/**
 * A resource or resource template as a server listed it or a cache file holds it, reduced to what is kept. Servers are
 * untrusted: a field of the wrong type is left out, and so is a resource without a usable URI.
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

/** The value if it is a text that is neither empty nor too long to read, else undefined. */
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

/** The usable items of a list, in order. If several have one URI, the first counts. */
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

/** Cuts the resources to the limit for one server. Templates come first, since each stands for many resources. */
export function boundResources({ resources, templates }: CachedResources): {
  known: CachedResources;
  /** Number of resources and templates that are left out. */
  leftOut: number;
} {
  const keptTemplates = templates.slice(0, LIMITS.resourcesPerServer);
  const kept = resources.slice(0, LIMITS.resourcesPerServer - keptTemplates.length);
  const leftOut = resources.length + templates.length - kept.length - keptTemplates.length;
  return { known: { resources: kept, templates: keptTemplates }, leftOut };
}
