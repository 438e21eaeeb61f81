/** What main must know of the settings. Pure. */
import type { CatalogSettings } from "../../../src/shared/protocol/catalog.ts";
import type { Settings } from "../config/entry/settings.ts";

/** `files`: what the configuration was read from. */
export const catalogSettings = (
  { search, catalog, proxyTool }: Settings,
  files: readonly string[],
): CatalogSettings => ({ search, catalog, proxyTool, files });
