/** Owns: the model gets `structuredContent` once; a script gets the result as it is. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";
import { shape, textOf } from "./support.ts";

const value = { temperature: 22.5, tags: ["a", "b"] };
const json = JSON.stringify(value);
const texts = (...all: string[]) => all.map((text) => ({ type: "text", text }));

test.each<[string, unknown[], unknown, string]>([
  ["no text", [], value, json],
  ["the same text", texts(json), value, json],
  ["the same, indented", texts(JSON.stringify(value, null, 2)), value, JSON.stringify(value, null, 2)],
  [
    "the same in another order",
    texts('{"tags":["a","b"],"temperature":22.5}'),
    value,
    '{"tags":["a","b"],"temperature":22.5}',
  ],
  ["the same beside other text", texts("Weather:", json), value, `Weather:\n${json}`],
  ["other text", texts("It is warm."), value, `It is warm.\n${json}`],
  [
    "other JSON",
    texts('{"temperature":22.4,"tags":["a","b"]}'),
    value,
    `{"temperature":22.4,"tags":["a","b"]}\n${json}`,
  ],
  ["a wrapped string", texts("hello"), { result: "hello" }, "hello"],
  ["a wrapped number", texts("42"), { result: 42 }, "42"],
  ["a wrapped list in one text", texts("[1,2]"), { result: [1, 2] }, "[1,2]"],
  ["a wrapped list, text by text", texts("a", '{"b":1}'), { result: ["a", { b: 1 }] }, 'a\n{"b":1}'],
  ["an empty wrapped list", [], { result: [] }, '{"result":[]}'],
  ["a list", [], [1, 2], "[1,2]"],
  ["null", texts("x"), null, "x"],
  [
    "the same in an embedded resource",
    [{ type: "resource", resource: { uri: "a:b", mimeType: "application/json", text: json } }],
    value,
    `[Resource: a:b]\n${json}`,
  ],
  [
    "the same in a fenced block",
    texts(`Here it is:\n\`\`\`json\n${json}\n\`\`\`\n`),
    value,
    `Here it is:\n\`\`\`json\n${json}\n\`\`\`\n`,
  ],
  ["other JSON in a fenced block", texts("```json\n{}\n```"), value, `\`\`\`json\n{}\n\`\`\`\n${json}`],
  ["a wrapped text that is a fenced block", texts("```\nx\n```"), { result: "```\nx\n```" }, "```\nx\n```"],
])("beside %s", async (_name, content, structuredContent, expected) => {
  expect(textOf(await shape({ content, structuredContent }))).toBe(expected);
});

test.each<[string, Record<string, unknown>, unknown]>([
  ["all of it", { content: [], structuredContent: value }, { content: [], structuredContent: value }],
  ["without _meta", { content: [], _meta: { a: 1 }, other: 1 }, { content: [], other: 1 }],
  ["also of a failure", { content: [], isError: true }, { content: [], isError: true }],
  ["blocks as they came", { content: [{ type: "x", a: [1] }] }, { content: [{ type: "x", a: [1] }] }],
  ["with blocks, whatever came", { content: null }, { content: [] }],
])("a script that asks for the result -> gets it: %s", async (_name, result, expected) => {
  const { scriptResult } = await shape(result, { wantsStructured: true });
  expect(JSON.parse(Buffer.from(scriptResult ?? []).toString())).toEqual(expected);
});

test("a secret in a failure -> hidden from the script and the person; an answer stays as the server sent it", async () => {
  const content = texts('401 for "tok\\en"');
  const own = { ...content[0], annotations: { audience: ["user"] } };
  const options = { wantsStructured: true, redact: createRedactor({ values: ['"tok\\en"'], named: [] }) };
  for (const [isError, expected] of [
    [true, "401 for [redacted]"],
    [false, '401 for "tok\\en"'],
  ] as const) {
    const { scriptResult, forUser } = await shape({ content: [...content, own], isError }, options);
    expect(forUser).toBe(expected);
    const whole = JSON.parse(Buffer.from(scriptResult ?? []).toString()) as { content: unknown };
    expect(whole.content).toEqual([...texts(expected), { ...own, text: expected }]);
  }
});

test("nobody asks for the result -> it is not sent to the main thread", async () => {
  expect(await shape({ content: [], structuredContent: value })).not.toHaveProperty("scriptResult");
});

describe("a script gets a result that main can read in one turn, otherwise the path of its file", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id, name: "n", ok: true }));
  const distinct = (count: number) => Object.fromEntries(rows(count).map(({ id }) => [`key${id}`, id]));
  const screenshot = { type: "image", mimeType: "image/png", data: "A".repeat(3 * 1024 * 1024) };

  test.each<[string, Record<string, unknown>]>([
    ["a screenshot of 3 MB", { content: [screenshot] }],
    ["a text of 4 MB, all but the last bytes", { content: texts("x".repeat(4 * 1024 * 1024 - 2_000)) }],
    ["10,000 rows", { content: [], structuredContent: { rows: rows(10_000) } }],
    ["10,000 different keys", { content: [], structuredContent: distinct(10_000) }],
  ])("%s -> whole", async (_name, result) => {
    const { scriptResult, scriptProblem } = await shape(result, { wantsStructured: true });
    expect(scriptProblem).toBeUndefined();
    expect(JSON.parse(Buffer.from(scriptResult ?? []).toString())).toEqual(result);
  });

  test.each<[string, Record<string, unknown>]>([
    ["a text of 5 MB", { content: texts("x".repeat(5 * 1024 * 1024)) }],
    ["100,000 values", { content: [], structuredContent: { list: Array(100_000).fill(0) } }],
    ["100,000 empty objects", { content: [], structuredContent: { list: rows(100_000).map(() => ({})) } }],
    ["30,000 rows", { content: [], structuredContent: { rows: rows(30_000) } }],
    ["30,000 different keys", { content: [], structuredContent: distinct(30_000) }],
  ])("%s -> nothing of it, and the path of the file with all of it", async (_name, result) => {
    const { scriptResult, scriptProblem = "" } = await shape(result, { wantsStructured: true });
    expect(scriptResult).toBeUndefined();
    expect(scriptProblem).toMatch(
      /^server\/tool answered [\d.]+ [KM]B of JSON, which is too much for a script \(at most 4 MB/,
    );
    expect(scriptProblem).toMatch(/The call was carried out: /);
    const path = /All of it is in (\S+\.json)\. /.exec(scriptProblem)?.[1] ?? "";
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual(result);
  });

  test("the model -> gets its own part as before", async () => {
    const result = await shape({ content: texts("x".repeat(5 * 1024 * 1024)) });
    expect(result).not.toHaveProperty("scriptProblem");
    expect(textOf(result)).toContain("Full text: ");
  });
});

test("nested 10,000 deep -> a result arrives", async () => {
  const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`) as unknown;
  const result = await shape({ content: [], structuredContent: deep }, { wantsStructured: true });
  expect(textOf(result)).toMatch(
    /^\[60,001 bytes of JSON in 1 line, shown by its structure|^\[Structured content that/,
  );
});

test("a large text that repeats it -> sent once and stored once", async () => {
  const items = { items: Array.from({ length: 5_000 }, (_, i) => ({ id: i, name: `item ${i}` })) };
  const result = await shape({ content: texts(JSON.stringify(items)), structuredContent: items });
  expect(result.content).toHaveLength(1);
  expect(textOf(result)).toContain('"items": array, 5,000 items');
});
