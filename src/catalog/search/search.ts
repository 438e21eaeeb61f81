/**
 * Finds tools in a catalog. Owns: the search by words through the snapshot's index, and the way from a name as a model
 * wrote it to a tool. Must not: load or describe tools. Called by: the run.ts of ToolSearch, of the proxy tool and of
 * unknown calls. Loaded after Pi's first paint, because the ranker is as large as everything that Pi needs before it.
 * To accept another spelling of a name: resolve.ts for servers, shared/search for tools.
 */
export { type CatalogHit, hasTool, likelyHits, searchCatalog } from "./query.ts";
export {
  findServer,
  nearestServer,
  nearestTools,
  resolveTool,
  serverNames,
  serverOfName,
} from "./resolve.ts";
