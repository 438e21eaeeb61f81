/** Queries that a model may write for ToolSearch. */
import { expect, it } from "vitest";
import { parseRequest } from "../../../../src/shared/search/search.ts";

it.each([
  ["read file", { kind: "words", text: "read file" }],
  ["selected items", { kind: "words", text: "selected items" }],
  ["please select: a", { kind: "words", text: "please select: a" }],
  ["天气预报", { kind: "words", text: "天气预报" }],
  ["select:fs__read", { kind: "select", names: ["fs__read"] }],
  ["select:a__b,c__d", { kind: "select", names: ["a__b", "c__d"] }],
  ["  SELECT: a__b ,  c__d\n e__f ", { kind: "select", names: ["a__b", "c__d", "e__f"] }],
  ["select:a__b,a__b", { kind: "select", names: ["a__b"] }],
  ["select:A__B", { kind: "select", names: ["A__B"] }],
  ["select:", { kind: "empty" }],
  ["select: , ,", { kind: "empty" }],
  ["select:--,__", { kind: "empty" }],
  ["", { kind: "empty" }],
  [" \n\t ", { kind: "empty" }],
  ["!?", { kind: "empty" }],
])("parseRequest: %j -> %j", (query, parsed) => {
  expect(parseRequest(query)).toEqual(parsed);
});
