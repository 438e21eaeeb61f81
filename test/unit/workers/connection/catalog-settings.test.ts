/** Owns: which settings reach main, and what counts where a value is not known. */
import { expect, it } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../src/protocol/snapshot.ts";
import { catalogSettings } from "../../../../workers/connection/catalog-settings.ts";

it.each([
  [{}, {}],
  [{ search: "weighted" }, { search: "weighted" }],
  [
    { catalog: "off", proxyTool: true },
    { catalog: "off", proxyTool: true },
  ],
  [{ search: "fast", catalog: true, proxyTool: "yes" }, {}],
  [{ idleTimeout: 5, constructor: 1 }, {}],
])("catalogSettings(%j) -> the defaults with %j", (settings, own) => {
  expect(catalogSettings(settings)).toEqual({ ...DEFAULT_CATALOG_SETTINGS, ...own });
});
