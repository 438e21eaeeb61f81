/** Owns: `key=value` words as the arguments of a call, by the tool's schema, and the error of each wrong word. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readArguments } from "../../../src/cli/arguments/arguments.ts";
import { EXIT, Failure } from "../../../src/cli/console/failure.ts";
import { tempFolder } from "../temp-folder.ts";

const SCHEMA = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    share: { type: "number" },
    deep: { type: "boolean" },
    sort: { enum: ["asc", "desc", 3] },
    tags: { type: "array", items: { type: "string" } },
    ids: { type: "array", items: { type: "integer" } },
    either: { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }] },
    listed: { type: ["string", "boolean"] },
    maybeList: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }] },
    box: {
      type: "object",
      properties: { left: { type: "integer" }, inner: { $ref: "#/$defs/inner" } },
      additionalProperties: false,
    },
    free: { type: "object" },
    anything: {},
    "a.b": { type: "string" },
    pointed: { $ref: "#/$defs/number" },
    round: { $ref: "#/$defs/round" },
  },
  $defs: {
    number: { type: "number" },
    inner: { type: "object", properties: { on: { type: "boolean" } } },
    round: { $ref: "#/$defs/round" },
  },
};
const input = { stdin: async () => Buffer.from('{"text": "from stdin"}') };

const read = (words: readonly string[], json?: string, schema: Record<string, unknown> = SCHEMA) =>
  readArguments("do_it", schema, { words, json, input });

async function refusal(
  words: readonly string[],
  json?: string,
  schema?: Record<string, unknown>,
): Promise<string> {
  const failure = await read(words, json, schema).catch((error: unknown) => error);
  if (!(failure instanceof Failure)) throw new Error(`not refused: ${JSON.stringify(failure)}`);
  expect(failure.exitCode).toBe(EXIT.usage);
  return `${failure.message} ${failure.remedy ?? ""}`.trim();
}

describe("words that fit", () => {
  test.each<[string[], unknown]>([
    [["text=two words"], { text: "two words" }],
    [["text="], { text: "" }],
    [["text=a=b"], { text: "a=b" }],
    [["text=12"], { text: "12" }],
    [["text=[1]"], { text: "[1]" }],
    [["count=-3", "share=1.5e3"], { count: -3, share: 1500 }],
    [["deep=true"], { deep: true }],
    [["sort=desc"], { sort: "desc" }],
    [["sort=3"], { sort: 3 }],
    [["tags=a"], { tags: ["a"] }],
    [["tags=a", "tags=b"], { tags: ["a", "b"] }],
    [['tags=["a","b"]'], { tags: ["a", "b"] }],
    [["tags=[a"], { tags: ["[a"] }],
    [["ids=1", "ids=2"], { ids: [1, 2] }],
    [["either=7"], { either: 7 }],
    [["either=null"], { either: null }],
    [["either=x"], { either: "x" }],
    [["listed=true"], { listed: true }],
    [["listed=yes"], { listed: "yes" }],
    [["maybeList=a"], { maybeList: ["a"] }],
    [["box.left=1", "box.inner.on=false"], { box: { left: 1, inner: { on: false } } }],
    [['box={"left":1}'], { box: { left: 1 } }],
    [["free.x.y=1"], { free: { x: { y: "1" } } }],
    [["anything=1"], { anything: "1" }],
    [["anything:=1"], { anything: 1 }],
    [["tags:=[]"], { tags: [] }],
    [["a.b=c"], { "a.b": "c" }],
    [["pointed=2"], { pointed: 2 }],
    [["round=x"], { round: "x" }],
  ])("%j", async (words, args) => {
    expect(await read(words)).toEqual(args);
  });

  const numbers = { type: "array", items: { type: "integer" } };
  const left = { type: "object", properties: { left: { type: "integer" } } };
  test.each<[object, string[], unknown]>([
    [{ anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }] }, ["v=null"], null],
    [{ anyOf: [numbers, { type: "null" }] }, ["v=null"], null],
    [{ anyOf: [numbers, { type: "null" }] }, ["v=1", "v=2"], [1, 2]],
    [{ ...numbers, type: ["array", "null"] }, ["v=null"], null],
    [{ anyOf: [{ const: "all" }, numbers] }, ["v=all"], "all"],
    [{ anyOf: [numbers, { enum: ["all"] }] }, ["v=all"], "all"],
    [{ anyOf: [{ type: "boolean" }, numbers] }, ["v=true"], true],
    [{ anyOf: [{ type: "boolean" }, numbers] }, ["v=1"], [1]],
    [{ anyOf: [numbers, { type: "string" }] }, ["v=1"], [1]],
    [{ anyOf: [numbers, { type: "string" }] }, ["v=a"], "a"],
    [{ anyOf: [{ type: "array", items: left }, { type: "string" }] }, ['v={"left":1}'], [{ left: 1 }]],
    [{ type: ["array", "string"], items: { enum: ["x", "y"] } }, ["v=x"], ["x"]],
    [{ anyOf: [numbers, { anyOf: [{ type: "number" }, { type: "null" }] }] }, ["v=7"], [7]],
    [
      { type: "object", additionalProperties: { type: "integer" }, oneOf: [{ required: ["x"] }] },
      ["v.x=1"],
      { x: 1 },
    ],
    [{ anyOf: [numbers, { type: "string" }] }, ["v=1", "v=2", "v=3"], [1, 2, 3]],
    [{ anyOf: [left, { type: "array", items: left }] }, ['v={"left":1}'], { left: 1 }],
    [
      { anyOf: [left, { type: "array", items: left }] },
      ['v={"left":1}', 'v={"left":2}'],
      [{ left: 1 }, { left: 2 }],
    ],
    [{ anyOf: [left, { type: "null" }] }, ["v.left=1"], { left: 1 }],
    [{ anyOf: [{ const: "none" }, left] }, ["v.left=1"], { left: 1 }],
    [{ anyOf: [left, { type: "object", properties: { on: {} } }] }, ["v.left=1"], { left: "1" }],
    [{ ...left, anyOf: [{ required: ["left"] }] }, ["v.left=1"], { left: 1 }],
  ])("%j: %j -> %j", async (v, words, value) => {
    expect(await read(words, undefined, { type: "object", properties: { v } })).toEqual({ v: value });
  });

  test("a schema without properties takes any name", async () => {
    expect(await read(["x=1"], undefined, { type: "object" })).toEqual({ x: "1" });
  });

  test("words count over the JSON", async () => {
    expect(await read(["count=2"], '{"count": 1, "text": "x"}')).toEqual({ count: 2, text: "x" });
  });

  test("JSON alone goes to the server as it is", async () => {
    expect(await read([], '{"unknown": 1}')).toEqual({ unknown: 1 });
  });

  test("stdin and files", async () => {
    const folder = await tempFolder();
    const file = join(folder, "text.json");
    await writeFile(file, '\ufeff{"text": "from a file"}');
    expect(await read([], "-")).toEqual({ text: "from stdin" });
    expect(await read([], `@${file}`)).toEqual({ text: "from a file" });
    await writeFile(file, "[1, 2]");
    expect(await read([`text=@${file}`, `ids:=@${file}`])).toEqual({ text: "[1, 2]", ids: [1, 2] });
  });
});

describe("words that do not fit -> the parameter, what it takes, the nearest name", () => {
  test.each<[string[], string]>([
    [["texd=1"], "do_it has no parameter texd. Did you mean text? It takes: text, count"],
    [["zzz=1"], "do_it has no parameter zzz. It takes: text"],
    [["count=1.5"], 'count takes a whole number, not "1.5".'],
    [["count=x"], 'count takes a whole number, not "x".'],
    [["count="], 'count takes a whole number, not "".'],
    [["count=1e999"], 'count takes a whole number, not "1e999", which would be sent as null.'],
    [["deep=yes"], 'deep takes true or false, not "yes".'],
    [["sort=up"], 'sort takes "asc" | "desc" | 3, not "up".'],
    [["ids=a"], 'An item of ids takes a whole number, not "a".'],
    [["text=a", "text=b"], "text is given twice, and it takes one value (string)."],
    [["tags=a", "tags:=[]"], "tags is given twice"],
    [["box=1"], 'box takes a JSON object, not "1".'],
    [["box.right=1"], "do_it has no parameter box.right. It takes: left, inner."],
    [["box.lift=1"], "Did you mean left?"],
    [["text.x=1"], "text takes a text, so nothing is within it."],
    [["free.x=1", "free.x.y=2"], "free.x is given as a value already."],
    [["free.__proto__.x=1"], '"free.__proto__.x" is not the name of a parameter.'],
    [["free..x=1"], '"free..x" is not the name of a parameter.'],
    [["text"], '"text" is not key=value.'],
    [["=1"], '"=1" is not key=value.'],
    [['{"text":"a=b"}'], "is not key=value. One JSON object goes with --args."],
    [["anything:={"], "anything is not JSON:"],
    [["text=@/no/such/file"], "text: there is no file /no/such/file."],
    [["text=@"], "text: the name of the file is missing behind @."],
    [["text=@/dev/zero"], "text: /dev/zero is not a regular file."],
  ])("%j", async (words, message) => {
    expect(await refusal(words)).toContain(message);
  });

  test.each<[object, string[], string]>([
    [
      {
        anyOf: [{ type: "object", properties: { left: {} }, additionalProperties: false }, { type: "null" }],
      },
      ["v.lefft=1"],
      "Did you mean left?",
    ],
    [
      { anyOf: [{ type: "integer" }, { type: "array", items: { type: "integer" } }] },
      ["v:=1", "v=2"],
      "v is given twice",
    ],
    [
      { anyOf: [{ type: "boolean" }, { type: "array", items: { type: "integer" } }] },
      ["v=true", "v=2"],
      'An item of v takes a whole number, not "true".',
    ],
  ])("%j: %j", async (v, words, message) => {
    expect(await refusal(words, undefined, { type: "object", properties: { v } })).toContain(message);
  });

  test("a required parameter is missing", async () => {
    const schema = { ...SCHEMA, required: ["text", "sort"] };
    expect(await refusal(["count=1"], undefined, schema)).toBe(
      'do_it needs text (string), sort ("asc" | "desc" | 3). Give them as text=…',
    );
    expect(await refusal([], undefined, { ...SCHEMA, required: ["text"] })).toContain(
      "do_it needs text (string)",
    );
  });

  test("JSON that is no object, or no JSON", async () => {
    expect(await refusal([], "[1]")).toContain("The arguments must be one JSON object");
    expect(await refusal([], "{")).toContain("The arguments are not JSON");
  });

  test("a folder, a file that is no text, more on stdin than the limit", async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, "sub"));
    await writeFile(join(folder, "bytes"), Buffer.from([0xff, 0xfe, 0x00]));
    expect(await refusal([`text=@${folder}/sub`])).toContain("is not a regular file");
    expect(await refusal([`text=@${folder}/bytes`])).toContain("is not UTF-8 text");
    const tooMuch = { words: [], json: "-", input: { stdin: async () => undefined } };
    await expect(readArguments("do_it", SCHEMA, tooMuch)).rejects.toThrow("stdin has more than 16 MB");
  });

  test("a hostile name of a parameter cannot act on the terminal", async () => {
    const schema = { type: "object", properties: { "\u001b[2Jevil\nline": { type: "string" } } };
    expect(await refusal(["x=1"], undefined, schema)).toContain("It takes: evil line.");
  });
});
