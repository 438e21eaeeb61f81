/** Owns: rules of `approve` about an argument: how they are written, and which calls they allow, ask about and deny. */
import { describe, expect, test } from "vitest";
import {
  problemOfRule,
  readArgumentRule,
} from "../../../../../../workers/connection/config/entry/argument-rules.ts";
import { parseEntry } from "../../../../../../workers/connection/config/entry/definition.ts";
import {
  type Approve,
  canBeAllowed,
  verdictOn,
} from "../../../../../../workers/connection/config/entry/exposure.ts";

const verdict = (
  approve: Approve,
  args: Record<string, unknown>,
  more: { tool?: string; inputSchema?: unknown; settings?: Approve; approveToo?: Approve[] } = {},
): string => {
  const { tool = "run_sql", inputSchema, settings = "never", approveToo = [] } = more;
  const judged = { server: "db", tool, prefix: "server" as const, annotations: undefined, args, inputSchema };
  return verdictOn(judged, { approve, approveToo }, settings);
};

test.each([
  ["run_sql(sql=select *)", { tool: "run_sql", argument: "sql", value: "select *" }],
  [" run_* ( sql = select * ) ", undefined],
  ["run_* ( sql = select * )", { tool: "run_*", argument: "sql", value: "select *" }],
  ["f(a=b(c=d))", { tool: "f", argument: "a", value: "b(c=d)" }],
  ["f(a=)", { tool: "f", argument: "a", value: "" }],
  ["f(a=x\ny)", { tool: "f", argument: "a", value: "x\ny" }],
  ["f(a)", undefined],
  ["(a=b)", undefined],
  ["f(=b)", undefined],
  ["f(a=b", undefined],
])("%j -> %j", (key, rule) => expect(readArgumentRule(key)).toEqual(rule));

test.each([
  ["f(a=b", "allow", /is no rule about an argument/],
  ["f(=b)", "deny", /is no rule/],
  ["f(a=b)", "destructive", /write allow, ask or deny/],
  ["f(*=b)", "allow", /allows by any argument/],
  ["f(*=b)", "deny", undefined],
  ["f(a)", "allow", undefined],
  ["f", "destructive", undefined],
])("%j: %j -> %s", (key, rule, problem) => {
  const found = problemOfRule(key, rule);
  if (problem) expect(found).toMatch(problem);
  else expect(found).toBeUndefined();
});

test("a broken rule in an entry -> an error at its key, and no server", () => {
  const raw = { command: "x", approve: { "f(a=b": "allow" } };
  const { definition, mistakes } = parseEntry("s", raw, { file: "/mcp.json", origin: "user" });
  expect(definition).toBeUndefined();
  expect(mistakes).toEqual([
    expect.objectContaining({
      severity: "error",
      path: ["approve", "f(a=b"],
      message: expect.stringContaining("is no rule about an argument"),
    }),
  ]);
});

describe("allow fits the whole text of a plain value, letter by letter", () => {
  const RULES: Approve = { "run_sql(sql=select *)": "allow", run_sql: "ask" };
  test.each<[unknown, string]>([
    ["select 1", "allow"],
    ["select ", "allow"],
    ["SELECT 1", "ask"],
    [" select 1", "ask"],
    ["select 1\n; drop table x", "ask"],
    ["select 1\r", "ask"],
    ["select\u20281", "ask"],
    ["select 1\u202e", "ask"],
    ["select \u3164 x", "ask"],
    ["select \u034f x", "ask"],
    ["select \ufe0f x", "ask"],
    ["ｓelect 1", "ask"],
    [["select 1"], "ask"],
    [{ text: "select 1" }, "ask"],
    [null, "ask"],
    [undefined, "ask"],
    [`select ${"a".repeat(100_000)}`, "ask"],
    // What no pattern can promise: docs/configuration.md says it.
    ["select 1; drop table x", "allow"],
  ])("sql: %j -> %s", (sql, expected) => {
    expect(verdict(RULES, sql === undefined ? {} : { sql })).toBe(expected);
  });

  test("the declared default of an argument that is not given allows nothing, nor does an inherited one", () => {
    const inputSchema = { properties: { sql: { default: "select 1" } } };
    expect(verdict(RULES, {}, { inputSchema })).toBe("ask");
    expect(verdict({ "run_sql(toString=*)": "allow", run_sql: "ask" }, {})).toBe("ask");
  });

  test("numbers and booleans -> as they are written", () => {
    const rules: Approve = { "run_sql(limit=10)": "allow", "run_sql(dry=true)": "allow", run_sql: "ask" };
    expect(verdict(rules, { limit: 10 })).toBe("allow");
    expect(verdict(rules, { limit: 100 })).toBe("ask");
    expect(verdict(rules, { dry: true })).toBe("allow");
    expect(verdict(rules, { dry: false })).toBe("ask");
  });
});

describe("ask and deny fit any text within the argument, however it is spelled", () => {
  const RULES: Approve = { "run_sql(sql=*drop table*)": "deny", run_sql: "allow" };
  test.each<[unknown, string]>([
    ["select 1; drop table x", "deny"],
    ["DROP\n\tTABLE x", "deny"],
    ["dr\u200bop table x", "deny"],
    ["dr\ufe0fop table x", "deny"],
    ["dr\u034fop table x", "deny"],
    ["dr\u3164op t\u180bab\u{e0100}le x", "deny"],
    ["ｄｒｏｐ table x", "deny"],
    [["a", { deep: ["drop table x"] }], "deny"],
    [{ "drop table x": 1 }, "deny"],
    [`${" ".repeat(100_000)}x`, "deny"],
    [Array.from({ length: 5_000 }, () => "a"), "deny"],
    ["drop the table", "allow"],
    ["", "allow"],
  ])("sql: %j -> %s", (sql, expected) => expect(verdict(RULES, { sql })).toBe(expected));

  test("another argument, none, one in other letters, one that the schema declares", () => {
    expect(verdict(RULES, { note: "drop table x" })).toBe("allow");
    expect(verdict(RULES, {})).toBe("allow");
    expect(verdict(RULES, { SQL: "drop table x" })).toBe("deny");
    const inputSchema = { properties: { sql: { default: "drop table x" }, other: 1 } };
    expect(verdict(RULES, {}, { inputSchema })).toBe("deny");
    expect(verdict(RULES, { sql: undefined }, { inputSchema })).toBe("deny");
    expect(verdict({ "run_sql(*=*drop*)": "deny" }, { anything: "drop" })).toBe("deny");
  });

  test("a deep nest ends, and counts as fitting", () => {
    let deep: unknown = "a";
    for (let i = 0; i < 5_000; i++) deep = [deep];
    expect(verdict(RULES, { sql: deep })).toBe("deny");
  });
});

describe("which rule counts", () => {
  test("ask by an argument -> each time, whatever more specific rule allows", () => {
    const rules: Approve = { run_sql: "allow", "*(sql=*delete*)": "ask" };
    expect(verdict(rules, { sql: "delete" })).toBe("each");
    expect(verdict(rules, { sql: "select" })).toBe("allow");
  });

  test("the stricter one of two arguments; a plain deny stays", () => {
    const rules: Approve = {
      "run_sql(sql=select *)": "allow",
      "run_sql(sql=*secrets*)": "deny",
      run_sql: "ask",
    };
    expect(verdict(rules, { sql: "select secrets" })).toBe("deny");
    expect(verdict({ "*(sql=select *)": "allow", run_sql: "deny" }, { sql: "select 1" })).toBe("deny");
    expect(verdict({ "run_sql(sql=select *)": "allow", run_sql: "deny" }, { sql: "select 1" })).toBe("allow");
  });

  test("a rule of the settings, and one that a project adds", () => {
    const settings: Approve = { "*(path=*.env*)": "deny" };
    const undefinedOwn = undefined as unknown as Approve;
    expect(verdict(undefinedOwn, { path: "a/.ENV" }, { settings })).toBe("deny");
    expect(verdict("never", { path: "a" }, { approveToo: [{ "run_sql(path=a)": "ask" }] })).toBe("each");
    // A project can only add.
    expect(verdict("always", { path: "a" }, { approveToo: [{ "run_sql(path=a)": "allow" }] })).toBe("ask");
  });

  test("a tool that is named like a rule -> nobody can allow it for good, and no rule about an argument fits it", () => {
    const judged = {
      server: "s",
      tool: "f(a=b)",
      prefix: "server" as const,
      annotations: undefined,
      args: {},
    };
    expect(canBeAllowed(judged, { approve: "always", approveToo: [] }, "never")).toBe(false);
    expect(verdict({ "f(a=b)": "allow", "*": "ask" }, {}, { tool: "f(a=b)" })).toBe("ask");
  });
});
