/** Names of parameters that providers refuse. */
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

  test("accepted names, and any name deeper in the schema -> declared", () => {
    const schema = object({ [LONGEST]: STRING, "x.y-z_1": object({ "": STRING, "a b": STRING }) });
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });

  test("keywords that judge other properties, and references to an undeclared one -> left out", () => {
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

  test("many names, and one too long to write -> the first 20, and a count of the rest", () => {
    const names = ["x ".repeat(1_000), ...Array.from({ length: 30 }, (_, i) => `p ${i}`)];
    const { undeclared } = repairInputSchema(object(Object.fromEntries(names.map((name) => [name, true]))));
    expect(undeclared).toMatch(/^Also takes "p 0", "p 1", .*"p 19", 11 more\.$/);
  });
});
