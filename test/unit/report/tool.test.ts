/** Owns: the text of `/mcp tool`. */
import { expect, test } from "vitest";
import { renderTool, unknownToolText } from "../../../src/report/tool.ts";
import { makeTool } from "../make-catalog.ts";

const schema = { type: "object", properties: { path: { type: "string" } } };
const tool = makeTool({ tool: "read", schema });
const json = (value: unknown): string => JSON.stringify(value, undefined, 2);

test("a schema that needed no repair -> shown once", () => {
  expect(renderTool(tool, json(schema))).toBe(
    `srv__read\nServer: srv\nread it.\nParameters:\n  path (string)\nThe schema, as the server declares it:\n${json(schema)}`,
  );
});

test("a schema that was repaired -> shown as it came, and as the model gets it", () => {
  const declared = { ...schema, $schema: "https://json-schema.org/draft/2020-12/schema", if: true };
  const text = renderTool(tool, json(declared));
  expect(text).toContain(`\nThe schema as the server declares it:\n${json(declared)}\n`);
  expect(text.endsWith(`providers need:\n${json(schema)}`)).toBe(true);
});

test("no schema that could be kept -> said", () => {
  expect(renderTool(tool, undefined)).toContain(
    "\nThe schema as the server declares it:\nnone that could be kept\n",
  );
});

test("a long schema with escape sequences -> cut, and printable", () => {
  const text = renderTool(tool, `\u001b[2J\u202e${"x".repeat(100_000)}`);
  expect(text.length).toBeLessThan(21_000);
  expect([..."\u001b\u202e"].filter((char) => text.includes(char))).toEqual([]);
  const unknown = unknownToolText(`a\nb\u001b[2J${"x".repeat(1_000)}`);
  expect(unknown).toMatch(/^No tool named a b/);
  expect(unknown.length).toBeLessThan(300);
  expect(unknown).not.toContain("\u001b");
});
