/** Owns: the output guard at its limits: the kept text, the notice, the stored file. */
import { open, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  DEFAULT_GUARD,
  guardForTool,
  guardFrom,
  type Settings,
} from "../../../../../workers/connection/config/entry/settings.ts";
import { createResultStore } from "../../../../../workers/connection/results/store.ts";
import { imageOf, pathIn, randomNumbers, shape, storedText, tempFolder, textOf } from "./support.ts";

const one = (text: string, more: object = {}) => ({ content: [{ type: "text", text }], ...more });
const small = { maxBytes: 2_000, maxLines: 20 };
const NOTICE =
  /\[\.\.\. ([\d,]+) bytes of ([\d,]+) bytes(?: \(([\d,]+) lines? of ([\d,]+)\))? left out here\. Full text: (\/.*)\]/;

describe("limits", () => {
  test.each([
    ["bytes: exactly at the limit", "x".repeat(51_200), false],
    ["bytes: one over", "x".repeat(51_201), true],
    ["bytes of two-byte characters: at the limit", "ä".repeat(25_600), false],
    ["bytes of two-byte characters: one over", `${"ä".repeat(25_600)}x`, true],
    ["lines: exactly at the limit", Array(2_000).fill("x").join("\n"), false],
    ["lines: at the limit, ended by a newline", "x\n".repeat(2_000), false],
    ["lines: one over", "x\n".repeat(2_001), true],
    ["lines: CRLF at the limit", "x\r\n".repeat(2_000), false],
    ["lines: CRLF one over", "x\r\n".repeat(2_001), true],
    ["nothing but newlines", "\n".repeat(2_001), true],
  ])("%s", async (_name, text, cut) => {
    const result = await shape(one(text));
    expect(result.storedAt !== undefined).toBe(cut);
    if (cut) expect(await storedText(textOf(result))).toBe(text);
    else expect(textOf(result)).toBe(text);
    const { shown = 0 } = result.bytes ?? {};
    expect(shown).toBeLessThanOrEqual(DEFAULT_GUARD.maxBytes);
  });

  test("texts of one result -> counted together, with the newline between them", async () => {
    const content = (a: number, b: number) => ({
      content: [
        { type: "text", text: "a".repeat(a) },
        { type: "text", text: "b".repeat(b) },
      ],
    });
    expect(await shape(content(25_600, 25_599))).not.toHaveProperty("storedAt");
    const over = await shape(content(25_600, 25_600));
    expect(await storedText(textOf(over))).toBe(`${"a".repeat(25_600)}\n${"b".repeat(25_600)}`);
  });

  test.each<[(Settings["outputGuard"] | undefined)[], unknown]>([
    [[], DEFAULT_GUARD],
    [[undefined], DEFAULT_GUARD],
    [[false], false],
    [[{ maxBytes: 10 }], { maxBytes: 10, maxLines: 2_000 }],
    [[{ maxBytes: 10 }, { maxLines: 5 }], { maxBytes: 10, maxLines: 5 }],
    [[false, { maxLines: 5 }], { maxBytes: 51_200, maxLines: 5 }],
    [[{ maxBytes: 10 }, false], false],
  ])("settings %j -> %j", (settings, expected) => {
    expect(guardFrom(...settings)).toEqual(expected);
  });

  test.each<[number, (Settings["outputGuard"] | undefined)[], unknown]>([
    [200_000, [{}], { maxBytes: 200_000, maxLines: 200_000 }],
    [10_000, [{}], { maxBytes: 10_000, maxLines: 2_000 }],
    [200_000, [{ maxBytes: 20_000 }], { maxBytes: 20_000, maxLines: 200_000 }],
    [200_000, [{ maxLines: 100 }], { maxBytes: 200_000, maxLines: 100 }],
    [200_000, [{}, { maxBytes: 60_000, maxLines: 50 }], { maxBytes: 60_000, maxLines: 50 }],
    [10_000, [{ maxBytes: 90_000 }], { maxBytes: 90_000, maxLines: 2_000 }],
    [10_000, [false], false],
    [200_000, [false, { maxLines: 5 }], { maxBytes: 200_000, maxLines: 5 }],
  ])("a server that names %i bytes, settings %j -> %j", (bytes, settings, expected) => {
    expect(guardForTool(bytes, ...settings)).toEqual(expected);
  });

  test("a text of 500,000 bytes in 60,000 lines of a server that names as many -> whole", async () => {
    const text = `${"12345678"}\n`.repeat(55_000);
    expect(textOf(await shape(one(text), { guard: guardForTool(500_000, {}) }))).toBe(text);
    const over = await shape(one(`${text}${text}`), { guard: guardForTool(500_000, {}) });
    expect(over.bytes?.shown).toBeLessThanOrEqual(500_000);
    expect(over.storedAt).toBeDefined();
  });

  test("false -> nothing is changed", async () => {
    const text = "x\n".repeat(100_000);
    expect(textOf(await shape(one(text), { guard: false }))).toBe(text);
  });
});

describe("start and end", () => {
  test("a long text -> whole lines of both ends, and how much is missing", async () => {
    const lines = Array.from({ length: 1_000 }, (_, i) => `line ${i}`);
    const text = textOf(await shape(one(lines.join("\n")), { guard: small }));
    const shown = text.split("\n");
    const at = shown.findIndex((line) => line.startsWith("[..."));
    const [, missing, bytes, missingLines, all] = NOTICE.exec(text) ?? [];
    expect(shown.slice(0, at)).toEqual(lines.slice(0, at));
    expect(shown.slice(at + 1)).toEqual(lines.slice(1_000 - (shown.length - at - 1)));
    expect([bytes, all]).toEqual(["8,889", "1,000"]);
    expect(Number(missingLines?.replace(",", ""))).toBe(1_000 - (shown.length - 1));
    const kept = Buffer.byteLength(shown.filter((_, i) => i !== at).join("\n"));
    expect(Number(missing?.replace(",", ""))).toBe(8_889 - kept);
    expect(shown.length).toBeLessThanOrEqual(small.maxLines);
  });

  test("CRLF -> no line keeps half of its line end", async () => {
    const text = textOf(await shape(one("line\r\n".repeat(1_000)), { guard: small }));
    const [head = "", tail = ""] = text.split(NOTICE.exec(text)?.[0] ?? "?");
    expect(head).toMatch(/^(line\r\n)+line\n$/);
    expect(tail).toMatch(/^\n(line\r\n)+$/);
  });

  test.each([
    ["no newline at all", "x".repeat(5_000)],
    ["a surrogate pair at every cut", "😀".repeat(2_000)],
    ["surrogate pairs, shifted by one", `x${"😀".repeat(2_000)}x`],
    ["three-byte characters", "日".repeat(3_000)],
    ["half pairs", "\ud83d".repeat(3_000)],
    ["one long line after a short one", `short\n${"x".repeat(5_000)}`],
    ["a short line after a long one", `${"x".repeat(5_000)}\nshort`],
    ["a JSON string", JSON.stringify("x".repeat(5_000))],
    ["broken JSON", `[${"1,".repeat(3_000)}`],
    ["JSON lines", `{"a":"${"b".repeat(100)}"}\n`.repeat(60)],
  ])("%s -> within the limit, well formed, never empty", async (_name, text) => {
    const shown = textOf(await shape(one(text), { guard: small }));
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(small.maxBytes);
    expect(shown.isWellFormed()).toBe(true);
    const [head = "", tail = ""] = shown.split(NOTICE.exec(shown)?.[0] ?? "?");
    expect(head.length).toBeGreaterThan(200);
    expect(tail.length).toBeGreaterThan(200);
    expect(text.toWellFormed().startsWith(head.slice(0, -1))).toBe(true);
    expect(text.toWellFormed().endsWith(tail.slice(1))).toBe(true);
    expect(await storedText(shown)).toBe(text.toWellFormed());
  });

  test.each([
    ["lines", "a line of text\n".repeat(5_000)],
    ["JSON", JSON.stringify(Array.from({ length: 5_000 }, (_, id) => ({ id, text: "x".repeat(300) })))],
  ])(
    "%s of ASCII -> what is shown is ASCII too, so that V8 keeps one byte a character",
    async (_name, text) => {
      const shown = textOf(await shape(one(text), { guard: small }));
      expect(shown.length).toBeLessThan(text.length);
      expect(shown).toMatch(/^[\n -~]*$/);
    },
  );

  test.each([1, 10, 100, 600])("a limit of %i bytes -> something is shown", async (maxBytes) => {
    const shown = textOf(await shape(one("word ".repeat(1_000)), { guard: { maxBytes, maxLines: 1 } }));
    expect(shown).toMatch(/^w[^[]*\n\[\.\.\. /);
  });

  test("images between the texts -> kept", async () => {
    const image = { type: "image", mimeType: "image/png", data: imageOf.png(1, 1) };
    const long = { type: "text", text: "x".repeat(3_000) };
    const { content } = await shape({ content: [image, long, image, long, image] }, { guard: small });
    expect(content.map(({ type }) => type)).toEqual(["image", "text", "image", "text", "image"]);
  });

  test("a failed result -> bounded, too", async () => {
    const result = await shape(one("x".repeat(100_000), { isError: true }));
    expect(result).toMatchObject({ isError: true, storedAt: expect.stringMatching(/\.txt$/) });
    expect(textOf(result).length).toBeLessThan(51_200);
  });

  test("any text at any limit -> bounded, well formed, with the same start and end", async () => {
    const random = randomNumbers(7);
    const alphabet = ["a", "b ", "\n", "\r\n", "ä", "日", "😀", "\ud83d", "word ", '{"k":1}'];
    for (let run = 0; run < 300; run++) {
      const pieces = Math.floor(random() * 400);
      const text = Array.from(
        { length: pieces },
        () => alphabet[Math.floor(random() * alphabet.length)],
      ).join("");
      const guard = { maxBytes: 520 + Math.floor(random() * 600), maxLines: 5 + Math.floor(random() * 60) };
      const shown = textOf(
        await shape(one(text), { guard, store: { save: async () => ({ problem: "none" }) } }),
      );
      if (text === "") continue;
      expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(guard.maxBytes);
      const notice = shown.indexOf("[... ");
      if (notice === -1) {
        expect(shown).toBe(text.toWellFormed());
        continue;
      }
      const head = shown.slice(0, Math.max(0, notice - 1));
      const tail = shown.slice(shown.indexOf("]", notice) + 2);
      expect(text.toWellFormed().startsWith(head)).toBe(true);
      expect(text.toWellFormed().endsWith(tail)).toBe(true);
      expect(head.length + tail.length).toBeLessThan(text.length);
    }
  });
});

describe("one long line of JSON", () => {
  const wide = {
    total: 4_000,
    note: 'quote " and \\',
    items: Array.from({ length: 4_000 }, (_, id) => ({ id, name: `item ${id}` })),
  };

  test("an object with a long array -> keys, array lengths and first items", async () => {
    const result = await shape(one(JSON.stringify(wide)));
    const lines = textOf(result).split("\n");
    expect(lines[0]).toMatch(
      /^\[[\d,]+ bytes of JSON in 1 line, shown by its structure\. Full text: \/.*\.json\]$/,
    );
    expect(lines.slice(1, 9)).toEqual([
      "object, 3 keys",
      '  "total": 4000',
      '  "note": "quote \\" and \\\\"',
      '  "items": array, 4,000 items',
      "    - object, 2 keys",
      '      "id": 0',
      '      "name": "item 0"',
      "    - object, 2 keys",
    ]);
    expect(lines.at(-1)).toBe("    ... 3,995 more");
    expect(await storedText(textOf(result))).toBe(JSON.stringify(wide));
  });

  test.each<[string, string, RegExp]>([
    [
      "one huge string",
      JSON.stringify({ a: "é😀".repeat(40_000) }),
      /"a": "(é😀)+é?\.\.\." \(120,000 characters\)$/,
    ],
    ["a string of escapes", JSON.stringify({ a: '"\\'.repeat(40_000) }), /"a": "(\\"\\\\)+(\\")?\.\.\." \(/],
    ["numbers only", JSON.stringify(Array(40_000).fill(-1.5e-7)), /array, 40,000 items\n {2}- -1\.5e-7\n/],
    [
      "many keys",
      JSON.stringify(Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`k${i}`, i]))),
      /object, 9,000 keys\n[\s\S]*\.\.\. 8,950 more$/,
    ],
    [
      "nested 10,000 deep",
      `${'{"a":['.repeat(10_000)}1${"]}".repeat(10_000)}`,
      /^\[.*\]\nobject, 1 key\n {2}"a": array, 1 item\n/,
    ],
    ["arrays nested 100,000 deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, /array, 1 item$/],
    ["white space around", ` \n[${"true, ".repeat(20_000)}null] \n`, /array, 20,001 items\n {2}- true\n/],
    [
      "empty members",
      `{"a":{},"b":[],"c":"${"x".repeat(60_000)}"}`,
      /"a": object, 0 keys\n {2}"b": array, 0 items\n/,
    ],
  ])("%s", async (_name, text, expected) => {
    const shown = textOf(await shape(one(text)));
    expect(shown).toMatch(expected);
    expect(shown).toMatch(/^\[.* shown by its structure/);
    expect(shown.isWellFormed()).toBe(true);
    expect(shown.length).toBeLessThan(12_000);
  });

  test.each([
    ["cut off", `{"a":"${"x".repeat(60_000)}`],
    ["two documents", `[${"1,".repeat(30_000)}1] [2]`],
    ["no comma", `[${"1 ".repeat(30_000)}]`],
    ["a key without quotes", `{a:"${"x".repeat(60_000)}"}`],
    ["closed too often", `{"a":"${"x".repeat(60_000)}"}}`],
  ])("%s, which is not JSON -> start and end", async (_name, text) => {
    expect(textOf(await shape(one(text)))).toMatch(NOTICE);
  });
});

describe("JSON beside other text", () => {
  const rows = Array.from({ length: 4_000 }, (_, id) => ({ id, name: `item ${id}` }));
  const json = JSON.stringify({ rows });
  const row = JSON.stringify({ id: 1, text: "x".repeat(1_200) });

  test.each<[string, string, RegExp]>([
    ["words before it", `Result: ${json}`, /^Result:\n\[121,\d{3} bytes of JSON in 1 line, shown by/],
    [
      "words with brackets before it",
      `[info] {ok} here: ${json}`,
      /^\[info\] \{ok\} here:\n\[[\d,]+ bytes of JSON in 1 line, shown by its structure\. Full text: .*\.txt\]\nobject, 1 key/,
    ],
    [
      "JSON lines",
      `${row}\n`.repeat(100),
      /^\[[\d,]+ bytes of JSON in 100 lines, 100 values, the first shown by its structure\. Full text: .*\.jsonl\]\nobject, 2 keys\n {2}"id": 1\n/,
    ],
  ])("%s -> its structure", async (_name, value, expected) => {
    const shown = textOf(await shape(one(value)));
    expect(shown).toMatch(expected);
    expect(await storedText(shown)).toBe(value);
  });

  test.each([
    ["more words than a label", `${"word ".repeat(50)}${json}`],
    ["words behind it", `${json} and so on`],
    ["lines of which one is no JSON", `${`${row}\n`.repeat(60)}oops ${row}`],
    ["JSON lines that are short", '{"id":1}\n'.repeat(10_000)],
  ])("%s -> start and end", async (_name, value) => {
    expect(textOf(await shape(one(value)))).toMatch(NOTICE);
  });

  test("two long texts of JSON in one result -> both structures, one file", async () => {
    const texts = [json, "and", json].map((text) => ({ type: "text", text }));
    const shown = textOf(await shape({ content: texts }));
    expect(shown.match(/^\[[\d,]+ bytes of JSON in 1 line, shown by its structure\./gm)).toHaveLength(2);
    expect(shown.match(/Full text: /g)).toHaveLength(1);
    expect(shown).toContain("\nand\n");
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(51_200);
    expect(await storedText(shown)).toBe(`${json}\nand\n${json}`);
  });

  test("a long text and one that fits -> the structure of the long one only", async () => {
    const texts = [JSON.stringify({ a: "x".repeat(2_000) }), json].map((text) => ({ type: "text", text }));
    const shown = textOf(await shape({ content: texts }));
    expect(shown.startsWith('{"a":"xxx')).toBe(true);
    expect(shown.match(/shown by its structure/g)).toHaveLength(1);
  });

  test("beside a long text of prose -> start and end", async () => {
    const texts = ["a word\n".repeat(10_000), json].map((text) => ({ type: "text", text }));
    expect(textOf(await shape({ content: texts }))).toMatch(NOTICE);
  });
});

describe("bytes before shaping", () => {
  const audio = Buffer.alloc(3_000).toString("base64");
  test.each<[string, unknown, number, number]>([
    ["text", { type: "text", text: "ä" }, 2, 0],
    ["audio", { type: "audio", data: audio, mimeType: "audio/wav" }, audio.length, 0],
    ["a blob", { type: "resource", resource: { uri: "a:b", blob: audio } }, audio.length + 3, 0],
    ["embedded text", { type: "resource", resource: { uri: "a:b", text: "xy" } }, 5, 0],
    ["an image that is not sent", { type: "image", data: audio }, audio.length, 0],
    ["a link", { type: "resource_link", uri: "a:b", name: "x", description: "yz" }, 6, 0],
    ["nothing that can be read", null, 0, 0],
    ["a long text", { type: "text", text: "x".repeat(200_000) }, 200_000, 148_000],
  ])(
    "%s -> bytes from the server, and the text among them that was left out",
    async (_name, block, received, saved) => {
      const { bytes } = await shape({ content: [block] });
      expect(bytes?.received).toBe(received);
      expect(bytes?.savedText).toBeGreaterThanOrEqual(saved);
      expect(bytes?.savedText).toBeLessThanOrEqual(saved === 0 ? 0 : received);
    },
  );
});

describe("the file of the full text", () => {
  test("a text that is cut -> a private file in a private folder of the session", async () => {
    const root = await tempFolder();
    const store = createResultStore({ root });
    const first = pathIn(textOf(await shape(one("x".repeat(60_000)), { store })));
    const second = pathIn(textOf(await shape(one("y".repeat(60_000)), { store })));
    expect(dirname(first)).toBe(dirname(second));
    expect((await stat(first)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(first))).mode & 0o777).toBe(0o700);
    expect(dirname(dirname(first))).toBe(root);
  });

  test("a full disk -> the preview says so, and no part of a file stays", async () => {
    const root = await tempFolder();
    // A device that fails each write as a full disk does.
    const store = createResultStore({ root, create: () => open("/dev/full", "w") });
    const result = await shape(one("line\n".repeat(20_000)), { store });
    expect(textOf(result)).toMatch(
      /^line\nline\n[\s\S]*The full text could not be stored: ENOSPC[\s\S]*line\n$/,
    );
    expect(result).not.toHaveProperty("storedAt");
    expect(await readdir(root, { recursive: true })).toHaveLength(1);
  });

  test("a folder that cannot be made -> the same, for binary content, too", async () => {
    const root = join(pathIn(textOf(await shape(one("x".repeat(60_000))))), "below-a-file");
    const store = createResultStore({ root });
    expect(textOf(await shape(one("x".repeat(60_000)), { store }))).toContain("could not be stored: ENOTDIR");
    const audio = { type: "audio", mimeType: "audio/wav", data: "AAAA" };
    expect(textOf(await shape({ content: [audio] }, { store }))).toMatch(
      /^\[Audio content: audio\/wav\] Could not be saved: ENOTDIR.*\(audio\/wav, 3 B\)\.$/,
    );
  });
});
