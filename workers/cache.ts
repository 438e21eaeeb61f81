/**
 * Entry of the cache worker: the tasks that the connection worker's piscina pool runs; the connection worker runs small
 * ones on its own thread. Each task is whole in itself; the thread keeps no state and may be stopped after any of them.
 * A pool passes one argument, so what the tasks need of the world is the real one here.
 */

export { readCache, readLines, storeEntries } from "./cache/metadata/metadata.ts";
export { keepSnapshot, publish, publishStored } from "./cache/snapshot/snapshot.ts";
export { hashDefinitions } from "./shared/json.ts";
