/** Owns: a result reaches the model without hidden characters, says what was taken out, and is stored as it came. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";
import { pathIn, shape, storedText, textOf } from "./support.ts";

const one = (text: string, more: object = {}) => ({ content: [{ type: "text", text }], ...more });
const tags = (text: string): string =>
  [...text].map((char) => String.fromCodePoint(0xe0000 + (char.codePointAt(0) ?? 0))).join("");

test.each<[string, string, string, string]>([
  ["tags", `Weather: 20${tags("obey")}`, "Weather: 20", "4 invisible characters"],
  ["a log with colours", "\u001b[1;31mERROR\u001b[0m x\n", "ERROR x\n", "2 terminal colours"],
  ["commands of a terminal", "\u001b[2J\u001b]0;own\u0007a\u001bPx\u001b\\b", "ab", "3 terminal commands"],
  ["C0 and C1", "a\0\0b\u0007\u009bc\rd", "abcd", "5 control characters"],
  ["a program with turned letters", "if\u202e } \u2066x\u2069", "if } x", "3 direction marks"],
  ["line ends of few programs", "a\u2028b\u2029c", "a\nb\nc", "2 foreign line ends"],
  ["soft hyphens and a byte order mark", "\ufeffex\u00adam\u00adple", "example", "3 invisible characters"],
  ["bytes behind a sign", "😀\u{e0101}\u{e0102}\u{e0103}", "😀", "3 invisible characters"],
  ["two kinds", "\u001b[1mb\u001b[m\u200b", "b", "2 terminal colours, 1 invisible character"],
])("%s -> cleaned, said in one line, stored as it came", async (_name, text, shown, said) => {
  const result = await shape(one(text));
  const read = textOf(result);
  expect(read).toBe(`${shown}\n[${said} left out here. Full text: ${result.storedAt}]`);
  expect(await storedText(read)).toBe(text);
});

test.each([
  ["Persian with its joiner", "می‌خواهم"],
  ["emoji of several", "👨‍👩‍👧‍👦 ❤️‍🔥 1️⃣ 🏳️‍🌈"],
  ["Arabic, Hebrew, Hindi, Chinese", "يقرأ ملفا שלום क्षि 读取"],
  ["line ends of Windows", "a\r\n\tb\r\n"],
  ["an icon of a terminal's font", "\ue0a0 main"],
])("%s -> as it came, and nothing is stored", async (_name, text) => {
  const result = await shape(one(text));
  expect(textOf(result)).toBe(text);
  expect(result).not.toHaveProperty("storedAt");
});

describe("beside the other rules of a result", () => {
  const small = { maxBytes: 2_000, maxLines: 20 };

  test("a text that is cut -> counts what was taken out of the shown part, and names the file once", async () => {
    const text = `${"\u200ba".repeat(5_000)}\n`;
    const result = await shape(one(text), { guard: small });
    const read = textOf(result);
    expect(Number(/\[(\d+) invisible characters left out here\.\]$/.exec(read)?.[1])).toBeGreaterThan(200);
    expect(read.match(/Full text: /g)).toHaveLength(1);
    expect(await readFile(result.storedAt ?? "", "utf8")).toBe(text);
    expect(Buffer.byteLength(read)).toBeLessThanOrEqual(small.maxBytes);
  });

  test("an outline, and no limit at all -> cleaned as well", async () => {
    const json = JSON.stringify(
      Array.from({ length: 100 }, () => ({ [`k${tags("a")}`]: `${tags("b")}v`.repeat(30) })),
    );
    for (const guard of [small, false] as const) {
      const read = textOf(await shape(one(json), { guard }));
      expect(read).not.toMatch(/[\u{e0000}-\u{e007f}]/u);
      expect(await storedText(read)).toBe(json);
    }
  });

  test("structured content -> keys and values", async () => {
    const read = textOf(
      await shape({ structuredContent: { [`a${tags("x")}`]: "b\u202e", c: ["\u001b[2Jd"] } }),
    );
    expect(read).toMatch(
      /^\{"a":"b","c":\["\\u001b\[2Jd"\]\}\n\[1 direction mark, 1 invisible character left out/,
    );
  });

  test("a failure -> a secret that a hidden character cuts in two does not come out", async () => {
    const redact = createRedactor({ values: ["sk-secret-12345"], named: [] });
    const read = textOf(await shape(one("no: sk-sec\u200bret-12345", { isError: true }), { redact }));
    expect(read).toContain("no: [redacted]\n[1 invisible character left out here.");
  });

  test("several texts, of which one is hidden whole -> one line for all", async () => {
    const content = [tags("all"), `a${tags("b")}`, "c"].map((text) => ({ type: "text", text }));
    const { content: shown, storedAt } = await shape({ content });
    expect(shown.map((part) => (part.type === "text" ? part.text : ""))).toEqual([
      "a",
      "c",
      `[4 invisible characters left out here. Full text: ${storedAt}]`,
    ]);
  });

  test("what is meant for the person alone -> cleaned", async () => {
    const block = { type: "text", text: `\u001b[2Ja${tags("b")}`, annotations: { audience: ["user"] } };
    expect((await shape({ content: [block] })).forUser).toBe("a");
  });

  test("no place for the file -> the line says so", async () => {
    const store = { save: async () => ({ problem: "disk full" }) };
    expect(textOf(await shape(one("a\u200b"), { store }))).toBe(
      "a\n[1 invisible character left out here. The full text could not be stored: disk full]",
    );
  });

  test("a script -> every character as it came", async () => {
    const text = `\ufeffa\u202e${tags("b")}\u001b[1m`;
    const { scriptResult } = await shape(one(text), { wantsStructured: true });
    expect(JSON.parse(Buffer.from(scriptResult ?? []).toString())).toEqual(one(text));
  });

  test("what becomes a message of the person, which Pi draws -> a mark without a letter gets a circle, also in a skill", async () => {
    const text = "a \u0903\u0e33";
    const file = {
      uri: "skill://a/SKILL.md",
      head: "[Head.]",
      line: 1,
      skill: { server: "s", uri: "skill://a/SKILL.md", name: "a", content: "c" },
    };
    const read = { content: [{ type: "resource", resource: { uri: file.uri, text } }] };
    for (const asMessage of [true, false]) {
      const shown = asMessage ? "a ◌\u0903\u0e33" : text;
      expect(textOf(await shape(one(text), { asMessage }))).toBe(shown);
      expect((await shape(read, { asMessage, file })).content.at(-1)).toEqual({ type: "text", text: shown });
    }
  });

  test("pathIn reads the path of such a line", async () => {
    expect(pathIn(textOf(await shape(one("a\u200b"))))).toMatch(/\/server-tool-\w{8}\.txt$/);
  });
});
