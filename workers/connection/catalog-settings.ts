/** What main must know of the settings. Pure. */
import type { CatalogSettings } from "../../src/protocol/snapshot.ts";
import type { Settings } from "./config/settings.ts";

export const catalogSettings = ({ search, catalog, proxyTool }: Settings): CatalogSettings => ({
  search,
  catalog,
  proxyTool,
});
