/** Finds a tool again in a newer catalog: by its server and its name there, because its name in Pi may change. */
import type { Catalog, CatalogTool } from "../../catalog/catalog.ts";

const identity = ({ server, tool }: CatalogTool): string => `${server.name}\u0000${tool}`;

const isSame = (a: CatalogTool, b: CatalogTool): boolean =>
  a.tool === b.tool && a.server.name === b.server.name;

const identities = new WeakMap<Catalog, Map<string, CatalogTool>>();

/** The same tool of the same server in this catalog; undefined if the catalog does not hold it. */
export function currentOf(catalog: Catalog, before: CatalogTool): CatalogTool | undefined {
  const named = catalog.get(before.name);
  if (named && isSame(named, before)) return named;
  let byIdentity = identities.get(catalog);
  if (!byIdentity) {
    byIdentity = new Map(catalog.tools.map((tool) => [identity(tool), tool]));
    identities.set(catalog, byIdentity);
  }
  return byIdentity.get(identity(before));
}

/** Whether the tool's server is gone, or has listed its tools without this one. A server that is down keeps its tools. */
export function isGone(tool: CatalogTool, catalog: Catalog): boolean {
  if (currentOf(catalog, tool)) return false;
  const server = catalog.servers.find(({ name }) => name === tool.server.name);
  return server === undefined || server.toolsKnown;
}
