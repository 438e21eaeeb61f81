/** What main must know of the settings, taken from what the files say: a value that is not known counts as absent. */
import { type CatalogSettings, DEFAULT_CATALOG_SETTINGS } from "../../src/protocol/snapshot.ts";

const CHOICES = {
  search: ["ranked", "weighted"],
  catalog: ["tools", "servers", "off"],
  proxyTool: [true, false],
} as const satisfies { [K in keyof CatalogSettings]: readonly CatalogSettings[K][] };

export function catalogSettings(settings: { readonly [key: string]: unknown }): CatalogSettings {
  const known = Object.entries(CHOICES).filter(([key, choices]) =>
    (choices as readonly unknown[]).includes(settings[key]),
  );
  return { ...DEFAULT_CATALOG_SETTINGS, ...Object.fromEntries(known.map(([key]) => [key, settings[key]])) };
}
