/** The settings that main needs for its catalog. Pure. */
import type { CatalogSettings } from "../../../src/shared/protocol/catalog.ts";
import type { Settings } from "../config/entry/settings.ts";

/** `files`: the files that the configuration was read from. */
export const catalogSettings = (
  { search, catalog, proxyTool, autoAuth }: Settings,
  files: readonly string[],
): CatalogSettings => ({ search, catalog, proxyTool, autoAuth, files });
