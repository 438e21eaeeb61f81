/**
 * The tools that Pi's main thread knows. Owns: the catalog that is made from a snapshot, the store that follows the
 * worker's events, the snapshot file that the factory reads, and walks over thousands of tools in slices.
 * Must not: know Pi, Pi's own form of a tool, or the runtime. Called by: session, tools, report, ui.
 * To add a field of a tool: shared/snapshot (contract, columns), then known.ts. Searching is catalog/search, whose code
 * is loaded later.
 */
export { snapshotIsOlder, snapshotWrittenAt } from "./file.ts";
export { holdsToolsOf } from "./holds-tools.ts";
export {
  type Catalog,
  type CatalogTool,
  eachTool,
  inputKeysOf,
  inputSchemaOf,
  NO_SCHEMAS,
  outputSchemaOf,
  sameDefinition,
} from "./known.ts";
export { createSlices, toolsOf } from "./slices.ts";
export { type CatalogStore, createCatalogStore } from "./store.ts";
