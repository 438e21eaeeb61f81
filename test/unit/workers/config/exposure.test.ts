import { expect, test } from "vitest";
import { exposureOf, matchesPattern, toExposure } from "../../../../workers/connection/config/exposure.ts";
import { editDistance, nearestKey } from "../../../../workers/connection/config/suggest.ts";
import { definition } from "./support.ts";

test.each([
  ["direct", "direct"],
  ["deferred", "search"],
  ["codemode", "search"],
  ["codemode-deferred", "search"],
  ["hidden", "hidden"],
] as const)("Pi's exposure %s -> %s", (written, ours) => {
  expect(toExposure(written)).toBe(ours);
});

test.each([
  ["get_*", "get_issue", true],
  ["get_*", "forget_x", false],
  ["*", "", true],
  ["*_issue", "get_issue", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["aa*aa", "aaa", false],
  ["exact", "exact", true],
  ["get.*", "get_x", false],
])("pattern %s on %s -> %s", (pattern, tool, fits) => {
  expect(matchesPattern(pattern, tool)).toBe(fits);
});

test("a hostile pattern is matched in linear time", () => {
  expect(matchesPattern(`${"*a".repeat(5_000)}*b`, "a".repeat(20_000))).toBe(false);
});

test.each([
  [{}, "get", undefined, "search"],
  [{}, "get", true, "direct"],
  [{}, "get", ["g*"], "direct"],
  [{ directTools: false }, "get", true, "search"],
  [{ directTools: true }, "get", false, "direct"],
  [{ directTools: ["get"] }, "get", false, "direct"],
  [{ directTools: ["get"] }, "set", true, "search"],
  [{ exposure: "direct" }, "get", false, "direct"],
  [{ exposure: "hidden", directTools: true }, "get", true, "hidden"],
  [{ exposure: "hidden", directTools: ["get"] }, "get", true, "direct"],
  [{ exposure: "hidden", toolExposure: { "g*": "codemode" } }, "get", false, "search"],
  [{ toolExposure: { "*": "hidden", get: "direct" } }, "get", false, "direct"],
  [{ toolExposure: { "g*": "direct", "ge*": "hidden" } }, "get", false, "direct"],
  [{ excludeTools: ["g*"], directTools: true, toolExposure: { get: "direct" } }, "get", true, "hidden"],
  [{ includeTools: ["s*"] }, "get", true, "hidden"],
  [{ includeTools: ["g*"] }, "get", true, "direct"],
  [{ toolExposure: {} }, "constructor", false, "search"],
] as const)("%o: %s with settings %o -> %s", (entry, tool, settings, verdict) => {
  const direct = Array.isArray(settings) ? [...settings] : (settings as boolean | undefined);
  expect(exposureOf(tool, definition("a", { command: "x", ...entry }), direct)).toBe(verdict);
});

test.each([
  ["lifecyle", "lifecycle"],
  ["LifeCycle", "lifecycle"],
  ["idle_timeout", "idleTimeout"],
  ["comand", "command"],
  ["dierctTools", "directTools"],
  ["serverUrl", "url"],
  ["xyz", undefined],
  ["x".repeat(100_000), undefined],
])("nearest key of %s -> %s", (key, near) => {
  expect(nearestKey(key, ["lifecycle", "idleTimeout", "command", "directTools", "url"])).toBe(near);
});

test.each([
  ["", "abc", 3],
  ["abc", "abc", 0],
  ["abc", "acb", 1],
  ["kitten", "sitting", 3],
])("edits from %s to %s: %i", (a, b, edits) => {
  expect(editDistance(a, b)).toBe(edits);
});
