/**
 * Finds tools in a catalog: by words, through the snapshot's index, and by a name as a model wrote it.
 * Loaded after Pi's first paint, since the ranker is as large as all that Pi needs before it.
 * Called by: the run.ts of ToolSearch, of the proxy tool and of unknown calls.
 */
export { hasTool, likelyHits, searchCatalog } from "./query.ts";
export { findServer, nearestTools, resolveTool, serverNames, serverOfName } from "./resolve.ts";
