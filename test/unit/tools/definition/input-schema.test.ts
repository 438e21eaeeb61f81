/** Owns: input schemas that are decoded when somebody looks. */
import { describe, expect, test } from "vitest";
import { decode } from "../../../../src/shared/protocol/codec.ts";
import { lazyInputSchema } from "../../../../src/tools/definition/input-schema.ts";
import { makeTool } from "../../make-catalog.ts";

const PLAIN = {
  type: "object",
  properties: { path: { type: "string" }, n: { type: "integer", minimum: 1 } },
  required: ["path"],
  additionalProperties: false,
};

describe("lazyInputSchema", () => {
  const lazy = (): Record<string, unknown> => lazyInputSchema(makeTool({ tool: "t", schema: PLAIN }));

  test("JSON.stringify -> the bytes of the plain schema, in its order", () => {
    expect(JSON.stringify(lazy())).toBe(JSON.stringify(PLAIN));
  });

  test("spread -> an ordinary copy", () => {
    const copy = { ...lazy() };
    expect(copy).toEqual(PLAIN);
    expect(Object.getOwnPropertyDescriptor(copy, "type")?.value).toBe("object");
  });

  test("structuredClone -> the plain schema", () => {
    expect(structuredClone(lazy())).toEqual(PLAIN);
  });

  test("Object.keys and `in` -> the keys of the schema", () => {
    expect(Object.keys(lazy())).toEqual(Object.keys(PLAIN));
    expect("required" in lazy()).toBe(true);
    expect("title" in lazy()).toBe(false);
  });

  test("one key read twice -> the same object", () => {
    const schema = lazy();
    expect(schema.properties).toBe(schema.properties);
  });

  test("broken bytes -> no throw before a value is read", () => {
    const tool = makeTool({ tool: "t", schema: PLAIN });
    const schemas = {
      ...tool.schemas,
      decoded: () => decode(Uint8Array.of(0x81)) as Record<string, unknown>,
    };
    const schema = lazyInputSchema({ ...tool, schemas });
    expect(Object.keys(schema)).toEqual(Object.keys(PLAIN));
    expect(schema.type).toBe("object");
    expect(() => schema.properties).toThrow();
  });
});
