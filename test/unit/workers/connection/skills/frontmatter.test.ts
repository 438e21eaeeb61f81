/** Owns: which frontmatter is read, as what values, and what no text of a server can do to the reader. */
import { describe, expect, test } from "vitest";
import { readFrontmatter } from "../../../../../workers/connection/skills/frontmatter.ts";
import { bombOf } from "../../../../support/yaml-bomb.ts";

const fenced = (yaml: string): string => `---\n${yaml}\n---\n# Text\n`;
const fieldsOf = async (yaml: string): Promise<unknown> => {
  const read = await readFrontmatter(fenced(yaml));
  return "value" in read ? read.value : read.problem;
};

const NO_YAML = "its frontmatter is not YAML that a skill can have";
const NONE = "it has no frontmatter";
const TOO_LONG = "its frontmatter is too long";
const NO_FIELDS = "its frontmatter is no list of fields";

describe("where it stands", () => {
  test.each<[string, string]>([
    ["line feeds", "---\nname: a\n---\ntext"],
    ["the ends of lines of Windows", "---\r\nname: a\r\n---\r\ntext"],
    ["a byte order mark", "\uFEFF---\nname: a\n---\n"],
    ["blanks behind the marks", "--- \nname: a\n---\t\ntext"],
    ["no text behind it", "---\nname: a\n---"],
  ])("%s -> read", async (_, text) => {
    expect(await readFrontmatter(text)).toEqual({ value: { name: "a" } });
  });

  test.each<[string, string]>([
    ["none", "# Text"],
    ["an empty file", ""],
    ["not closed", "---\nname: a\n"],
    ["a line before it", "\n---\nname: a\n---\n"],
    ["another mark", "+++\nname: a\n+++\n"],
    ["a mark that goes on", "---\nname: a\n----\n"],
    ["a mark that is indented", "---\nname: a\n ---\n"],
    ["closed behind the limit", `---\nname: a\n${"#".repeat(70_000)}\n---\n`],
    ["a megabyte that never closes", `---\n${"a: b\n".repeat(200_000)}`],
    ["a megabyte of blanks behind the mark", `---${" ".repeat(1_000_000)}\nname: a\n---\n`],
    ["many marks that are not closed", `---\n${"---   x\n".repeat(9_000)}`],
  ])("%s -> none", async (_, text) => {
    expect(await readFrontmatter(text)).toEqual({ problem: NONE });
  });

  test("the first mark ends it, also within a text of several lines", async () => {
    expect(await readFrontmatter("---\nname: a\n---\nb: c\n---\n")).toEqual({ value: { name: "a" } });
  });
});

test("words and dates stay the text that JSON has for them; numbers, null and booleans do not", async () => {
  expect(
    await fieldsOf("a: yes\nb: no\nc: on\nd: 2024-01-02\ne: 12:30\nf: 1.0\ng: true\nh: null\ni: ~\nj:"),
  ).toEqual({
    ...{ a: "yes", b: "no", c: "on", d: "2024-01-02", e: "12:30" },
    ...{ f: 1, g: true, h: null, i: null, j: null },
  });
});

test("lists, nested fields and long texts, as skills have them", async () => {
  expect(
    await fieldsOf(
      "allowed-tools: [Bash, 'Read(*)']\nmetadata:\n  a: b\nx: |\n  one\n  two\ny: >-\n  one\n  two",
    ),
  ).toEqual({
    "allowed-tools": ["Bash", "Read(*)"],
    metadata: { a: "b" },
    x: "one\ntwo\n",
    y: "one two",
  });
});

describe("what no skill needs", () => {
  test.each<[string, string]>([
    ["an alias", "a: &x 1\nb: *x"],
    ["a merge", "a: &x {b: 1}\nc:\n  <<: *x"],
    ["an alias of itself", "a: &x [*x]"],
    ["a bomb of aliases", bombOf(9)],
    ["a function", "a: !!js/function 'function () { throw 1 }'"],
    ["a pattern", "a: !!js/regexp /x/"],
    ["undefined", "a: !!js/undefined ''"],
    ["a type of Python", "a: !!python/object/apply:os.system ['id']"],
    ["a tag of its own", "a: !evil x"],
    ["one key twice", "name: a\nname: b"],
    ["tabs before a field", "a:\n\tb: 1"],
    ["two documents", "a: 1\n...\nb: 2"],
    ["no YAML", "a: [1, 2"],
    ["nothing but a comment", "# name: a"],
    ["10,000 nested lists", `a: ${"[".repeat(10_000)}${"]".repeat(10_000)}`],
    ["10,000 nested fields in a line", `a: ${"{a: ".repeat(10_000)}1${"}".repeat(10_000)}`],
    ["a control character", "a: x\u0000y"],
  ])("%s -> refused", async (_, yaml) => {
    expect(await fieldsOf(yaml)).toBe(NO_YAML);
  });

  test.each<[string, string, string]>([
    ["a text", "just words", NO_FIELDS],
    ["a list", "- a\n- b", NO_FIELDS],
    ["17 levels", `a: ${"[".repeat(17)}${"]".repeat(17)}`, TOO_LONG],
    ["3,000 values", `a: [${"1,".repeat(3_000)}]`, TOO_LONG],
  ])("%s -> refused", async (_, yaml, problem) => {
    expect(await fieldsOf(yaml)).toBe(problem);
  });

  test("fields of a prototype -> plain fields, and no object gets them", async () => {
    const value = await fieldsOf("__proto__:\n  polluted: true\nconstructor:\n  prototype: {polluted: true}");
    expect(Object.keys(value as object)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
