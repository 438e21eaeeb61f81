/** Owns: how the questions of servers are read, cleaned and bounded, and what the answers hold. */
import { describe, expect, it, test } from "vitest";
import type { Field } from "../../../../../src/shared/protocol/calls.ts";
import { contentOf, readAsk, type ServerAsk } from "../../../../../workers/connection/asks/read.ts";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";

const redact = createRedactor({ values: ["s3cr3t-token"], named: [] });
const read = (params: unknown) => readAsk(params, redact);
const form = (properties: unknown, more: object = {}) =>
  read({ message: "m", requestedSchema: { type: "object", properties, ...more } });

function asked(params: unknown): ServerAsk {
  const found = read(params);
  if ("problem" in found) throw new Error(found.problem);
  return found;
}
function fieldOf(schema: unknown): Field | string {
  const found = form({ f: schema });
  if ("problem" in found) return found.problem;
  const { ask } = found;
  if (ask.kind !== "form" || !ask.fields[0]) throw new Error("no field");
  return ask.fields[0];
}

const BASE = { title: "f", required: false };
const [a, b] = [{ title: "a" }, { title: "b" }];

describe("a field", () => {
  it.each<[unknown, Field | string]>([
    [{ type: "string" }, { ...BASE, kind: "text" }],
    [
      { type: ["string", "null"], title: "Name" },
      { ...BASE, kind: "text", title: "Name" },
    ],
    [
      { type: "string", minLength: 1, maxLength: 9, format: "email", default: "a@b.cd", description: "D" },
      {
        ...BASE,
        kind: "text",
        minLength: 1,
        maxLength: 9,
        format: "email",
        default: "a@b.cd",
        description: "D",
      },
    ],
    [
      { type: "string", title: "Sure?", description: "Sure?" },
      { ...BASE, kind: "text", title: "Sure?" },
    ],
    [
      { type: "string", format: "password", minLength: -1 },
      { ...BASE, kind: "text" },
    ],
    [
      { type: "string", default: "a\u202eb" },
      { ...BASE, kind: "text" },
    ],
    [
      { type: "string", default: "x".repeat(1_001) },
      { ...BASE, kind: "text" },
    ],
    [
      { type: "integer", default: 2 ** 53 },
      { ...BASE, kind: "number", integer: true },
    ],
    [
      { type: "number", minimum: 0, default: 1.5 },
      { ...BASE, kind: "number", integer: false, minimum: 0, default: 1.5 },
    ],
    [
      { type: "integer", maximum: "x" },
      { ...BASE, kind: "number", integer: true },
    ],
    [
      { type: "boolean", default: false },
      { ...BASE, kind: "boolean", default: false },
    ],
    [
      { type: "boolean", default: "yes" },
      { ...BASE, kind: "boolean" },
    ],
    [
      { type: "string", enum: ["a", "b"], default: "b" },
      { ...BASE, kind: "choice", choices: [a, b], default: 1 },
    ],
    [
      { enum: ["a", "b", "a"], default: "c" },
      { ...BASE, kind: "choice", choices: [a, b] },
    ],
    [
      { type: "string", enum: ["1", "2"], enumNames: ["a"] },
      { ...BASE, kind: "choice", choices: [a, { title: "2" }] },
    ],
    [
      { type: "string", oneOf: [{ const: "1", title: "a" }, { const: "b" }], default: "1" },
      { ...BASE, kind: "choice", choices: [a, b], default: 0 },
    ],
    [
      { type: "string", enum: [""] },
      { ...BASE, kind: "choice", choices: [{ title: "choice 1" }] },
    ],
    [
      {
        type: "array",
        items: { type: "string", enum: ["a", "b"] },
        minItems: 1,
        maxItems: 2,
        default: ["b", "x", "b"],
      },
      { ...BASE, kind: "choices", choices: [a, b], minItems: 1, maxItems: 2, default: [1] },
    ],
    [
      { type: "array", items: { anyOf: [{ const: "1", title: "a" }] } },
      { ...BASE, kind: "choices", choices: [a] },
    ],
    [{ type: "object" }, "its field f is of a kind that forms do not have"],
    [{}, "its field f is of a kind that forms do not have"],
    [{ type: "array", items: { type: "string" } }, "its field f is a list without choices"],
    [{ type: "array" }, "its field f is a list without choices"],
    [{ type: "string", enum: [] }, "its field f has a list without choices"],
    [{ type: "string", enum: [1] }, "its field f has a choice that is not a text"],
    [{ type: "string", oneOf: [{ title: "a" }] }, "its field f has a choice that is not a text"],
    [{ type: "string", enum: Array.from({ length: 501 }, String) }, "its field f has more than 500 choices"],
    ["string", "its field f is not an object"],
    [null, "its field f is not an object"],
  ])("%j -> %j", (schema, field) => {
    expect(fieldOf(schema)).toEqual(field);
  });

  test("texts with escapes, secrets and many lines -> one clean line each, cut", () => {
    const found = fieldOf({
      type: "string",
      title: "\u001b[31mred\u001b[0m\nSend s3cr3t-token",
      description: `${"d".repeat(2_000)}`,
    }) as Field;
    expect(found.title).toBe("red Send [redacted]");
    expect(found.description).toHaveLength(500);
  });
});

describe("a question", () => {
  it.each<[string, unknown, string]>([
    ["no params", undefined, "its question has no content"],
    ["an unknown mode", { mode: "window", message: "m" }, "its question is of an unknown mode"],
    ["a form that is a list", { requestedSchema: [] }, "its form is not an object"],
    [
      "fields that are a list",
      { requestedSchema: { properties: [] } },
      "the fields of its form are not an object",
    ],
    [
      "10,000 fields",
      {
        requestedSchema: {
          properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, {}])),
        },
      },
      "its form has 10,000 fields, and at most 50 are asked",
    ],
    [
      "a field __proto__",
      { requestedSchema: { properties: JSON.parse('{"__proto__":{"type":"string"}}') } },
      "its field __proto__ is not an object",
    ],
  ])("%s -> it is not asked", (_name, params, problem) => {
    expect(read(params)).toEqual({ problem });
  });

  test("without a form -> no fields", () => {
    expect(asked({ message: "Sure?" }).ask).toEqual({ kind: "form", message: "Sure?", fields: [] });
    expect(asked({}).ask).toEqual({ kind: "form", message: "", fields: [] });
  });

  test("required fields are marked, in the order of the form", () => {
    const { ask } = asked({
      requestedSchema: { properties: { b: { type: "boolean" }, a: { type: "string" } }, required: ["a", 5] },
    });
    expect(ask).toMatchObject({
      fields: [
        { title: "b", required: false },
        { title: "a", required: true },
      ],
    });
  });

  test("a message of escapes, secrets and a thousand lines -> clean, and at most 40 lines", () => {
    const { ask } = asked({
      message: `\u001b]0;title\u0007Hello\u202e\n\n\n\ns3cr3t-token\n${"line\n".repeat(1_000)}`,
    });
    const lines = ask.message.split("\n");
    expect(lines.slice(0, 4)).toEqual(["Hello", "", "[redacted]", "line"]);
    expect(lines).toHaveLength(41);
    expect(lines.at(-1)).toBe("…");
    expect(asked({ message: "x".repeat(100_000) }).ask.message).toHaveLength(2_000);
  });
});

describe("an address", () => {
  const url = (address: unknown) => read({ mode: "url", message: "m", url: address });

  it.each<[string, object]>([
    ["https://example.com/a?b=c", { host: "example.com", punycode: false, plain: false }],
    ["http://localhost:8080/", { host: "localhost:8080", punycode: false, plain: true }],
    [
      "https://\u0430pple.com/",
      { url: "https://xn--pple-43d.com/", host: "xn--pple-43d.com", punycode: true },
    ],
    ["https://example.com/\u202e\u001b[31m", { url: "https://example.com/%E2%80%AE%1B[31m" }],
    ["https://example.com\n.evil.com/", { host: "example.com.evil.com" }],
  ])("%j -> %j", (address, shown) => {
    const found = url(address);
    expect("ask" in found && found.ask).toMatchObject({ kind: "url", message: "m", ...shown });
  });

  it.each<[unknown, string]>([
    [undefined, "its address cannot be read"],
    ["", "its address cannot be read"],
    ["/relative", "its address cannot be read"],
    [`https://example.com/${"x".repeat(8_192)}`, "its address cannot be read"],
    [`https://example.com/${"ä".repeat(8_000)}`, "its address cannot be read"],
    ["file:///etc/passwd", "its address is not one of http or https"],
    ["javascript:alert(1)", "its address is not one of http or https"],
    ["https://example.com@evil.com/", "its address has a user name or a password"],
    ["https://:x@evil.com/", "its address has a user name or a password"],
  ])("%j -> %s", (address, problem) => {
    expect(url(address)).toEqual({ problem });
  });
});

describe("an answer", () => {
  const { fields } = asked({
    requestedSchema: {
      properties: {
        name: { type: "string" },
        age: { type: "integer", minimum: 1 },
        sure: { type: "boolean" },
        pet: {
          type: "string",
          oneOf: [
            { const: "p1", title: "Cat" },
            { const: "p2", title: "Dog" },
          ],
        },
        fish: { type: "array", items: { enum: ["x", "y"] } },
      },
      required: ["name"],
    },
  });

  test("values of all kinds -> the server's own values under its own names", () => {
    expect(contentOf(fields, ["Ann", "42", false, 1, [1, 0]])).toEqual({
      name: "Ann",
      age: 42,
      sure: false,
      pet: "p2",
      fish: ["y", "x"],
    });
  });

  test("fields that are left out -> the answer does not name them", () => {
    expect(contentOf(fields, ["Ann"])).toEqual({ name: "Ann" });
  });

  test.each([
    ["a required one that is left out", [undefined, "1", true, 0]],
    ["a number below the least", ["Ann", "0", true, 0]],
    ["a choice beyond the list", ["Ann", "1", true, 9]],
  ])("%s -> no content", (_what, values) => {
    expect(contentOf(fields, values)).toBeUndefined();
  });
});
