/** Owns: names of parameters that providers refuse. */
import { describe, expect, it, test } from "vitest";
import { repairInputSchema } from "../../../../../workers/cache/schema/schema.ts";

type Schema = Record<string, unknown>;
const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });

describe("repairInputSchema: names of parameters", () => {
  const LONGEST = "k".repeat(64);
  it.each(["", "a b", "filter[id]", "$top", "é", "a/b", `${LONGEST}k`])(
    "%j, which Anthropic refuses -> taken, not declared, told",
    (name) => {
      const raw = object(
        { [name]: STRING, b: STRING },
        { required: [name, "b"], additionalProperties: false },
      );
      expect(repairInputSchema(raw)).toEqual({
        schema: object({ b: STRING }, { required: ["b"] }),
        repairs: ["name"],
        undeclared: `Also takes ${JSON.stringify(name)} (string, required).`,
      });
    },
  );

  test("names that it takes, and any deeper one -> declared", () => {
    const schema = object({ [LONGEST]: STRING, "x.y-z_1": object({ "": STRING, "a b": STRING }) });
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });

  test("what judged the others goes, and references to one that is not declared", () => {
    const raw = object(
      { "a b": { type: ["string", "null"] }, c: { $ref: "#/properties/a b" } },
      { additionalProperties: STRING, unevaluatedProperties: false },
    );
    expect(repairInputSchema(raw)).toEqual({
      schema: object({ c: {} }),
      repairs: ["name", "reference"],
      undeclared: 'Also takes "a b".',
    });
  });

  test("many, and one that nobody would write -> the first 20, counted", () => {
    const names = ["x ".repeat(1_000), ...Array.from({ length: 30 }, (_, i) => `p ${i}`)];
    const { undeclared } = repairInputSchema(object(Object.fromEntries(names.map((name) => [name, true]))));
    expect(undeclared).toMatch(/^Also takes "p 0", "p 1", .*"p 19", 11 more\.$/);
  });
});
