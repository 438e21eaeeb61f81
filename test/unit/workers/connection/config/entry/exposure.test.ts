import { expect, test } from "vitest";
import { nameTools, type ToolPrefix } from "../../../../../../src/shared/naming.ts";
import {
  exposureOf,
  matchesPattern,
  namesInRules,
  toExposure,
} from "../../../../../../workers/connection/config/entry/exposure.ts";
import { nearestKey } from "../../../../../../workers/connection/config/entry/mistakes.ts";
import { definition } from "../support.ts";

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

const LONG = `long_${"x".repeat(195)}`;

/** The exposure of a tool of the server `my-srv` under this rule. */
const verdictOf = (entry: Record<string, unknown>, tool: string, prefix: ToolPrefix = "server"): string =>
  exposureOf(
    tool,
    definition("my-srv", { command: "x", ...entry }),
    false,
    namesInRules("my-srv", tool, prefix),
  );

test.each<[string, ToolPrefix]>([
  ["plain", "server"],
  ["my.dotted", "short"],
  ["read", "none"],
  [LONG, "server"],
  [LONG, "short"],
  [LONG, "none"],
  [LONG, "mcp"],
])("the name of %.10s in Pi with toolPrefix %s -> every rule can use it", (tool, prefix) => {
  const [name = ""] = nameTools([{ server: "my-srv", tool, prefix }]).names;
  expect(name.length).toBeLessThanOrEqual(64);
  expect(verdictOf({ excludeTools: [name] }, tool, prefix)).toBe("hidden");
  expect(verdictOf({ excludeTools: [`${name.slice(0, -3)}*`] }, tool, prefix)).toBe("hidden");
  expect(verdictOf({ includeTools: [name] }, tool, prefix)).toBe("search");
  expect(verdictOf({ toolExposure: { "*": "hidden", [name]: "direct" } }, tool, prefix)).toBe("direct");
  expect(verdictOf({ directTools: [name] }, tool, prefix)).toBe("direct");
});

test.each<[string, ToolPrefix]>([
  ["a.b", "server"],
  ["a.b", "none"],
  ["a.b", "mcp"],
  [LONG, "none"],
])(
  "the name of %.10s where another tool wanted it too, toolPrefix %s -> meant, by no pattern",
  (tool, prefix) => {
    // The second has the same name, but for what a name cannot hold.
    const others = [tool, tool.replace(".", "_")].map((name) => ({ server: "my_srv", tool: name, prefix }));
    const [name = ""] = nameTools([{ server: "my-srv", tool, prefix }, ...others]).names;
    expect(verdictOf({ excludeTools: [name] }, tool, prefix)).toBe("hidden");
    expect(verdictOf({ toolExposure: { "*": "hidden", [name]: "direct" } }, tool, prefix)).toBe("direct");
  },
);

test("a pattern that fits a hash by chance -> does not count", () => {
  const names = nameTools([
    { server: "my-srv", tool: "a.b" },
    { server: "my-srv", tool: "a_b" },
  ]).names;
  expect(names[0]).toMatch(/^my_srv__a_b_\w{6}$/);
  expect(verdictOf({ excludeTools: [`*${names[0]?.slice(-6)}`] }, "a.b")).toBe("search");
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
