/** Owns: which settings reach main. */
import { expect, it } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../../src/shared/protocol/catalog.ts";
import { catalogSettings } from "../../../../../workers/connection/catalog/settings.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../../../workers/connection/config/entry/settings.ts";

it.each<[Partial<Settings>, object]>([
  [{}, {}],
  [{ search: "weighted" }, { search: "weighted" }],
  [
    { catalog: "off", proxyTool: true },
    { catalog: "off", proxyTool: true },
  ],
  [{ autoAuth: true }, { autoAuth: true }],
  [{ idleTimeout: 5 }, {}],
])("catalogSettings(%j) -> the defaults with %j", (settings, own) => {
  expect(catalogSettings({ ...DEFAULT_SETTINGS, ...settings }, ["/a"])).toEqual({
    ...DEFAULT_CATALOG_SETTINGS,
    ...own,
    files: ["/a"],
  });
});
