/** Owns: which calls of a tool go on, ask the user, or are refused, by the words and rules of `approve`. */
import { describe, expect, test } from "vitest";
import {
  type Approve,
  asksNothing,
  asRules,
  canBeAllowed,
  type JudgedTool,
  type SettingsApproval,
  verdictOn,
} from "../../../../../../workers/connection/config/entry/exposure.ts";

const tool = (name: string, over: Partial<JudgedTool> = {}): JudgedTool => ({
  server: "s",
  tool: name,
  prefix: "server",
  annotations: undefined,
  ...over,
});

const verdict = (
  judged: JudgedTool,
  approve?: Approve,
  settings: SettingsApproval = "never",
  too: Approve[] = [],
) => verdictOn(judged, { approve, approveToo: too }, settings);

const READS = { readOnlyHint: true };

describe("the words", () => {
  test.each([
    ["never", undefined, "allow"],
    ["never", { destructiveHint: true }, "allow"],
    ["always", READS, "ask"],
    ["destructive", READS, "allow"],
    ["destructive", undefined, "ask"],
    ["destructive", {}, "ask"],
    ["destructive", { destructiveHint: false }, "ask"],
    ["destructive", { readOnlyHint: true, destructiveHint: false }, "allow"],
    ["destructive", { readOnlyHint: true, destructiveHint: true }, "ask"],
    ["destructive", { readOnlyHint: "true" }, "ask"],
    ["destructive", { readOnlyHint: 1 }, "ask"],
  ] as const)("%s and hints %o -> %s", (word, annotations, expected) => {
    expect(verdict(tool("t", { annotations }), word)).toBe(expected);
    expect(verdict(tool("t", { annotations }), undefined, word)).toBe(expected);
  });

  test("a server's word counts in place of the word of the settings", () => {
    expect(verdict(tool("t"), "never", "always")).toBe("allow");
    expect(verdict(tool("t"), "always", "never")).toBe("ask");
  });
});

describe("rules", () => {
  const RULES: Approve = { "read_*": "allow", "delete_*": "deny", "*": "ask" };
  test.each([
    ["read_file", "allow"],
    ["delete_file", "deny"],
    ["write_file", "ask"],
  ])("%s -> %s, in any order of the rules", (name, expected) => {
    expect(verdict(tool(name), RULES)).toBe(expected);
    const reversed = Object.fromEntries(Object.entries(RULES).toReversed());
    expect(verdict(tool(name), reversed as Approve)).toBe(expected);
  });

  test.each<[Approve, string]>([
    [{ "delete_*": "deny", "delete_tmp_*": "allow" }, "allow"],
    [{ "delete_*": "allow", "delete_tmp_*": "deny" }, "deny"],
    [{ delete_tmp_x: "allow", "delete_tmp_*": "deny" }, "allow"],
    [{ delete_tmp_x: "deny", s__delete_tmp_x: "allow" }, "deny"],
    [{ s__delete_tmp_x: "allow", "*": "deny" }, "allow"],
    // Equally specific: the stricter one counts.
    [{ "delete_*": "allow", "*e_tmp_x": "deny" }, "deny"],
    [{ "*e_tmp_x": "deny", "delete_*": "allow" }, "deny"],
    [{ "*": "destructive" }, "ask"],
    [{ "get_*": "deny" }, "allow"],
    [{}, "allow"],
  ])("%o decides about delete_tmp_x -> %s", (rules, expected) => {
    expect(verdict(tool("delete_tmp_x"), rules)).toBe(expected);
  });

  test("a tool that no rule of its server fits -> the settings decide", () => {
    expect(verdict(tool("t"), { other: "allow" }, "always")).toBe("ask");
    expect(verdict(tool("t"), { other: "allow" }, { "*": "deny" })).toBe("deny");
  });

  test("a hint never changes what a rule allows, asks or denies", () => {
    for (const annotations of [READS, { destructiveHint: true }]) {
      expect(verdict(tool("t", { annotations }), { t: "allow" }, "always")).toBe("allow");
      expect(verdict(tool("t", { annotations }), { t: "ask" })).toBe("ask");
      expect(verdict(tool("t", { annotations }), { t: "deny" })).toBe("deny");
    }
  });

  test("a thousand rules with many stars and a long name -> decided at once", () => {
    const rules = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`${"*a".repeat(100)}*b${i}`, "deny" as const]),
    );
    expect(verdict(tool("a".repeat(1_000)), rules)).toBe("allow");
  });
});

describe("a tool whose name looks like that of another server's tool", () => {
  const settings: Approve = { "github__*": "allow", "*": "ask" };
  test.each([
    ["evil", "github__delete", "ask"],
    ["evil", "github..delete", "ask"],
    ["evil", "mcp__github__delete", "ask"],
    ["github", "delete", "allow"],
    ["github", "odd__name", "allow"],
    ["github-mcp", "delete", "allow"],
  ])("%s offers %s -> %s", (server, name, expected) => {
    for (const prefix of ["server", "none", "mcp", "short"] as const) {
      expect(verdict(tool(name, { server, prefix }), undefined, settings)).toBe(expected);
    }
  });

  test("a rule that asks or denies holds for such a name as well", () => {
    expect(verdict(tool("github__x", { server: "evil" }), undefined, { "github__*": "deny" })).toBe("deny");
  });
});

describe("files of a project", () => {
  test.each<[Approve | undefined, SettingsApproval, Approve[], string, boolean]>([
    ["never", "never", [], "allow", true],
    ["never", "never", ["always"], "ask", false],
    ["always", "never", ["never"], "ask", true],
    [{ t: "deny" }, "never", [{ t: "allow" }], "deny", true],
    [{ t: "allow" }, "never", [{ t: "ask" }, { t: "deny" }], "deny", false],
    ["never", ["never", "always"], [], "ask", false],
    [undefined, ["always", "never"], [], "ask", true],
    ["never", ["always", { "*": "deny" }], [], "deny", false],
  ])("%o, %o and the project's %o -> %s", (approve, settings, approveToo, expected, canAllow) => {
    expect(verdict(tool("t"), approve, settings, approveToo)).toBe(expected);
    expect(canBeAllowed(tool("t"), { approve, approveToo }, settings)).toBe(canAllow);
  });
});

test.each<[Approve | undefined, SettingsApproval, Approve[], boolean]>([
  [undefined, "never", [], true],
  ["never", "never", [], true],
  ["never", "always", [], false],
  [{}, "never", [], false],
  [undefined, "never", ["never"], false],
  [undefined, ["never", "never"], [], false],
])("asksNothing(%o, %o, %o) -> %s", (approve, settings, approveToo, expected) => {
  expect(asksNothing({ approve, approveToo }, settings)).toBe(expected);
});

test.each<[Approve | undefined, object]>([
  [undefined, {}],
  ["never", { "*": "allow" }],
  ["destructive", { "*": "destructive" }],
  ["always", { "*": "ask" }],
  [{ a: "deny" }, { a: "deny" }],
])("asRules(%o) -> rules that mean the same", (approve, rules) => {
  expect(asRules(approve)).toEqual(rules);
});

test.each([
  ["t", true],
  ["with space", true],
  ["*", false],
  ["delete_*", false],
  ["__proto__", false],
  ["x".repeat(257), false],
])("canBeAllowed, the tool %s -> %s", (name, expected) => {
  expect(canBeAllowed(tool(name), { approve: "always", approveToo: [] }, "always")).toBe(expected);
});

test("a rule for the tool under another of its names asks -> a rule under its own name would change nothing", () => {
  const server = { approve: { s__t: "ask" }, approveToo: [] } as const;
  expect(canBeAllowed(tool("t"), server, "never")).toBe(false);
});
