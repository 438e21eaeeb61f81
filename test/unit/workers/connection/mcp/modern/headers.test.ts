/** Owns: which parameters of a tool are mirrored into headers, which annotations cost the tool, and how values are written. */
import { expect, test } from "vitest";
import {
  headerValue,
  MirroredHeaders,
  mirroredParameters,
  parameterHeaders,
  standardHeaders,
} from "../../../../../../workers/connection/mcp/modern/headers.ts";

test.each([
  ["us-west1", "us-west1"],
  ["", ""],
  ["a b", "a b"],
  ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
  [" padded ", "=?base64?IHBhZGRlZCA=?="],
  ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
  ["\tx", "=?base64?CXg=?="],
  ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
  ["=?base64?open", "=?base64?open"],
])("headerValue: %j -> %s", (text, value) => {
  expect(headerValue(text)).toBe(value);
});

const schema = (properties: object, more = {}) => ({ type: "object", properties, ...more });
const at = (header: unknown, type: unknown = "string") => ({ type, "x-mcp-header": header });

test.each<[string, unknown, string[][]]>([
  ["none", schema({ a: { type: "string" } }), []],
  [
    "one of each kind",
    schema({ a: at("A"), b: at("B", "integer"), c: at("C", "boolean") }),
    [["a"], ["b"], ["c"]],
  ],
  ["one that may be null", schema({ a: at("A", ["string", "null"]) }), [["a"]]],
  ["one of an object", schema({ a: schema({ b: at("B") }) }), [["a", "b"]]],
  ["a property of that name", schema({ "x-mcp-header": { type: "string" } }), []],
  ["data that look like one", schema({ a: { const: { "x-mcp-header": "A" } } }), []],
  ["no schema", undefined, []],
])("mirroredParameters: %s -> the paths", (_, given, paths) => {
  const found = mirroredParameters(given);
  expect("problem" in found ? found : found.map(({ path }) => path)).toEqual(paths);
});

test.each<[string, unknown]>([
  ["empty", schema({ a: at("") })],
  ["not a text", schema({ a: at(7) })],
  ["a space", schema({ a: at("My Region") })],
  ["a colon", schema({ a: at("Region:Primary") })],
  ["a line end", schema({ a: at("Region\r\nX: y") })],
  ["beyond ASCII", schema({ a: at("Région") })],
  ["an object", schema({ a: at("A", "object") })],
  ["a list", schema({ a: at("A", "array") })],
  ["null", schema({ a: at("A", "null") })],
  ["a number", schema({ a: at("A", "number") })],
  ["no type", schema({ a: { "x-mcp-header": "A" } })],
  ["the same name twice", schema({ a: at("A"), b: at("a") })],
  ["in items", schema({ a: { type: "array", items: at("A") } })],
  ["in anyOf", schema({ a: { anyOf: [at("A")] } })],
  ["in $defs", schema({}, { $defs: { a: at("A") } })],
  ["in if", schema({}, { if: schema({ a: at("A") }) })],
  ["at the root", { "x-mcp-header": "A", type: "string" }],
  [
    "more than a server needs",
    schema(Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`p${i}`, at(`P${i}`)]))),
  ],
])("mirroredParameters: %s -> the tool is left out", (_, given) => {
  expect(mirroredParameters(given)).toHaveProperty("problem");
});

test("parameterHeaders: null, absent and objects have no header; too long values -> none at all", () => {
  const mirrored = [..."abcd"].map((key) => ({ header: key.toUpperCase(), path: [key] }));
  expect(parameterHeaders(mirrored, { a: 7, b: null, c: { x: 1 } })).toEqual({ "mcp-param-A": "7" });
  expect(parameterHeaders(mirrored, { a: "x".repeat(13_000) })).toBeUndefined();
  expect(parameterHeaders([{ header: "P", path: ["__proto__"] }], {})).toEqual({});
});

test.each<[string, Record<string, unknown>, string | undefined]>([
  ["tools/call", { name: "t" }, "t"],
  ["prompts/get", { name: "p" }, "p"],
  ["resources/read", { uri: "file:///ä" }, "=?base64?ZmlsZTovLy/DpA==?="],
  ["tasks/get", { taskId: "1" }, "1"],
  ["tools/list", { name: "t" }, undefined],
])("standardHeaders: %s -> its name", (method, params, name) => {
  expect(standardHeaders({ method, params })).toEqual({
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(name === undefined ? {} : { "mcp-name": name }),
  });
});

test("MirroredHeaders: a list of tools -> those with a wrong annotation are left out, and the log is told of 20", () => {
  const notes: string[] = [];
  const headers = new MirroredHeaders();
  const wrong = Array.from({ length: 30 }, (_, i) => ({ name: `w${i}`, inputSchema: schema({ a: at("") }) }));
  const right = { name: "right", inputSchema: schema({ region: at("Region") }) };
  expect(headers.take([...wrong, right], (note) => notes.push(note))).toEqual([right]);
  expect(notes).toHaveLength(21);
  expect(notes[0]).toBe("its tool w0 is left out: its x-mcp-header is not a header's name");
  const call = { jsonrpc: "2.0" as const, id: 1, method: "tools/call" };
  expect(headers.of({ ...call, params: { name: "right", arguments: { region: "eu" } } })).toMatchObject({
    "mcp-param-Region": "eu",
  });
});
