/** Owns: which file of a skill a model reads, which part of it, and what makes it another file than was listed. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { GuardLimits } from "../../../../../workers/connection/config/entry/settings.ts";
import { checkFile, type ExpectedFile } from "../../../../../workers/connection/skills/check.ts";

const SKILL = { server: "s", uri: "skill://a/SKILL.md", name: "a", content: "c" };
const HEAD = "[Head.]";
const GUARD: GuardLimits = { maxBytes: 50_000, maxLines: 2_000 };

const listed = (bytes: Buffer | string) => ({
  digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
  size: Buffer.byteLength(bytes),
});

const expected = (bytes: Buffer | string, over: Partial<ExpectedFile> = {}): ExpectedFile => ({
  uri: "skill://a/x",
  listed: listed(bytes),
  head: HEAD,
  line: 1,
  skill: SKILL,
  ...over,
});

const answer = (...contents: object[]) => ({
  content: contents.map((resource) => ({ type: "resource", resource })),
});
const text = (written: string) => answer({ uri: "skill://a/x", text: written });
const blob = (bytes: Buffer, mimeType?: string) =>
  answer({ uri: "skill://a/x", blob: bytes.toString("base64"), ...(mimeType ? { mimeType } : {}) });

type Given = Parameters<typeof checkFile>[0];
const check = (given: object, file: ExpectedFile, guard: GuardLimits | false = GUARD) =>
  checkFile(given as Given, file, guard);

async function problemOf(given: object, file: ExpectedFile): Promise<string | undefined> {
  const checked = await check(given, file);
  return "problem" in checked ? checked.problem : undefined;
}

/** The texts behind the head. */
async function textsOf(given: object, file: ExpectedFile, guard?: GuardLimits | false): Promise<string[]> {
  const checked = await check(given, file, guard);
  if ("problem" in checked) throw new Error(checked.problem);
  const [head, ...rest] = checked.content.map((block) => (block.type === "text" ? block.text : block.type));
  expect(head).toBe(HEAD);
  return rest;
}

describe("what it is compared with", () => {
  test.each<[string, string]>([
    ["plain text", "a\nb\n"],
    ["a byte order mark, which counts", "\uFEFFa"],
    ["the ends of lines of Windows, which stay", "a\r\nb\r\n"],
    ["other scripts", "ä 漢字 😀"],
    ["nothing", ""],
  ])("%s -> shown as it is", async (_, written) => {
    expect(await textsOf(text(written), expected(written))).toEqual([written]);
    expect(await textsOf(blob(Buffer.from(written)), expected(written))).toEqual([written]);
  });

  test.each<[string, string, string, RegExp]>([
    ["a byte more", "ab", "a", /it has 2 bytes in place of the 1 that were listed/],
    ["a byte less", "", "a", /it has 0 bytes/],
    ["as many other bytes", "b", "a", /its SHA-256 is not the one that was listed/],
    ["another form of the same letter", "e\u0301", "\u00e9a", /SHA-256/],
    ["no byte order mark", "a", "\uFEFFa", /it has 1 bytes/],
    ["other ends of lines", "a\nb", "a\r\nb", /it has 3 bytes/],
  ])("%s -> not used", async (_, came, was, problem) => {
    expect(await problemOf(text(came), expected(was))).toMatch(problem);
    expect(await problemOf(blob(Buffer.from(came)), expected(was))).toMatch(problem);
  });

  test("a half of a character, which UTF-8 cannot have -> not what was listed", async () => {
    expect(await problemOf(text("\ud800"), expected(Buffer.from([0xed, 0xa0, 0x80])))).toMatch(/SHA-256/);
  });

  test.each<[string, object]>([
    ["no content", {}],
    ["an empty list", { content: [] }],
    ["no list", { content: "a" }],
    ["null", { content: [null] }],
    ["a text of a tool", { content: [{ type: "text", text: "a" }] }],
    ["two files", answer({ text: "a" }, { text: "a" })],
    ["neither text nor blob", answer({ uri: "skill://a/x" })],
    ["a text that is a number", answer({ text: 1 })],
  ])("%s -> not one file", async (_, given) => {
    expect(await problemOf(given, expected("a"))).toBe("the server answered something else than one file");
  });

  test("a file of which nothing was listed -> shown, up to the size that a skill can have", async () => {
    const { listed: _, ...file } = expected("");
    expect(await textsOf(text("made anew"), file)).toEqual(["made anew"]);
    expect(await problemOf(text("x".repeat(LIMITS.skillBytes + 1)), file)).toMatch(/16,777,217 bytes/);
  });
});

describe("SKILL.md", () => {
  const frontmatter = { name: "a", description: "Does." };
  const written = "---\nname: a\ndescription: Does.\n---\n# A\n";
  const problem = (yaml: string, told: Record<string, unknown> = frontmatter) => {
    const changed = `---\n${yaml}\n---\n`;
    return problemOf(text(changed), expected(changed, { frontmatter: told }));
  };

  test("the frontmatter that was listed, in any order -> shown whole", async () => {
    expect(await textsOf(text(written), expected(written, { frontmatter }))).toEqual([written]);
    expect(await problem("description: Does.\nname: a")).toBeUndefined();
    expect(await problem("name: a\nn: 1\nl: [x]", { name: "a", l: ["x"], n: 1 })).toBeUndefined();
  });

  test.each<[string, string]>([
    ["another name", "name: b\ndescription: Does."],
    ["a field more", "name: a\ndescription: Does.\nallowed-tools: Bash"],
    ["a field less", "name: a"],
    ["a list for a text", "name: a\ndescription: [Does.]"],
    ["a name of the prototype", "name: a\ndescription: Does.\n__proto__: {}"],
  ])("%s -> not used", async (_, yaml) => {
    expect(await problem(yaml)).toBe("its frontmatter is not the one that was listed");
  });

  test("numbers and texts differ", async () => {
    const yaml = "name: a\ndescription: Does.\nv: 1";
    expect(await problem(yaml, { ...frontmatter, v: "1" })).toMatch(/not the one that was listed/);
    expect(await problem(yaml, { ...frontmatter, v: 1 })).toBeUndefined();
  });

  test("no frontmatter, no YAML, no text -> not used", async () => {
    expect(await problemOf(text("# A"), expected("# A", { frontmatter }))).toBe("it has no frontmatter");
    expect(await problem("name: *x")).toMatch(/not YAML/);
    const bytes = Buffer.from([0xff, 0xfe]);
    expect(await problemOf(blob(bytes), expected(bytes, { frontmatter }))).toBe("it is no UTF-8 text");
  });

  test("the fields of a nested SKILL.md do not count", async () => {
    const nested = "---\nname: other\nallowed-tools: Bash\n---\n";
    expect(await textsOf(text(nested), expected(nested))).toEqual([nested]);
  });

  test("8 MB -> checked, and its first part shown", async () => {
    const long = `${written}${"line\n".repeat(1_600_000)}`;
    const [part = "", note] = await textsOf(text(long), expected(long, { frontmatter }));
    expect(part.length).toBeLessThan(GUARD.maxBytes);
    expect(note).toMatch(/^\[Lines 1 to \d+ of 1600005\. Read on with "line": \d+\.\]$/);
  });
});

test("for a person -> the whole text as it came, and nothing else", async () => {
  const written = `${"line\n".repeat(5_000)}\u001b[31m\u202e`;
  expect(await check(text(written), expected(written, { forPerson: true }))).toEqual({
    content: [{ type: "text", text: written }],
  });
  expect(await problemOf(text("other"), expected(written, { forPerson: true }))).toBeDefined();
});

describe("bytes that are no text", () => {
  const png = Buffer.from("89504e470d0a1a0a0000", "hex");

  test("an image by its type -> the result that came, for whoever shows images", async () => {
    const given = blob(png, "image/png");
    expect(await check(given, expected(png))).toEqual({
      content: [{ type: "text", text: HEAD }],
      image: given,
    });
  });

  test("any other -> how many they are", async () => {
    expect(await textsOf(blob(png), expected(png))).toEqual(["[10 bytes that are no text.]"]);
    expect(await textsOf(text("a\u0000b"), expected("a\u0000b"))).toEqual(["[3 bytes that are no text.]"]);
  });

  test("an image that is text, such as SVG -> text", async () => {
    const svg = "<svg/>";
    const given = answer({ text: svg, mimeType: "image/svg+xml" });
    expect(await textsOf(given, expected(svg))).toEqual([svg]);
  });
});

describe("the part that is shown", () => {
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("");
  const few: GuardLimits = { maxBytes: 50_000, maxLines: 40 };

  test("more lines than the limit -> how to read on, until the end", async () => {
    const written = lines(50);
    const read = (line: number) => textsOf(text(written), expected(written, { line }), few);
    const [first = "", note] = await read(1);
    const shown = first.split("\n").length;
    expect(note).toBe(`[Lines 1 to ${shown} of 50. Read on with "line": ${shown + 1}.]`);
    const [, next] = await read(shown + 1);
    expect(next).toMatch(new RegExp(`^\\[Lines ${shown + 1} to `));
    const [last = "", end] = await read(45);
    expect(last.trimEnd().split("\n").at(-1)).toBe("line 50");
    expect(end).toBe("[Lines 45 to 50 of 50.]");
  });

  test.each([51, 52, 1_000, Number.MAX_SAFE_INTEGER])("line %d of 50 -> the last one", async (line) => {
    const written = lines(50);
    const [last = "", note] = await textsOf(text(written), expected(written, { line }), few);
    expect(last.trimEnd()).toBe("line 50");
    expect(note).toBe("[Lines 50 to 50 of 50.]");
  });

  test.each(["x", "漢", "😀"])(
    "a line of %s that is longer than the limit -> cut to its bytes, and said",
    async (letter) => {
      const written = `${letter.repeat(20_000)}\nend`;
      const [part = "", note] = await textsOf(text(written), expected(written), {
        maxBytes: 10_000,
        maxLines: 100,
      });
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(10_000);
      expect(Buffer.byteLength(part)).toBeGreaterThan(5_000);
      expect(part).toMatch(new RegExp(`^(?:${letter})+$`, "u"));
      expect(note).toBe(
        '[Lines 1 to 1 of 2. This line is too long to be shown whole. Read on with "line": 2.]',
      );
    },
  );

  test("no limit -> everything", async () => {
    const written = lines(10_000);
    expect(await textsOf(text(written), expected(written), false)).toEqual([written]);
  });

  test("a limit of a few bytes -> something is shown all the same", async () => {
    const written = lines(3);
    const [part] = await textsOf(text(written), expected(written), { maxBytes: 8, maxLines: 1 });
    expect(part).not.toBe("");
  });
});
