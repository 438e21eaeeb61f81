/**
 * Entry of the cache worker: the tasks that the connection worker's piscina pool runs. Each task is
 * whole in itself; the thread keeps no state and may be stopped after any of them.
 */
export { hashDefinitions } from "./cache/hash.ts";
export { readCache } from "./cache/metadata-cache.ts";
export { publish } from "./cache/publish.ts";
