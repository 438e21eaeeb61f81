/** Owns: what a model may write into ToolSearch. */
import { expect, it } from "vitest";
import { parseQuery } from "../../../src/search/query.ts";

it.each([
  ["read file", { kind: "keywords", terms: ["read", "file"] }],
  ["selected items", { kind: "keywords", terms: ["selected", "items"] }],
  ["please select: a", { kind: "keywords", terms: ["please", "select", "a"] }],
  ["select:fs__read", { kind: "select", names: ["fs__read"] }],
  ["select:a__b,c__d", { kind: "select", names: ["a__b", "c__d"] }],
  ["  SELECT: a__b ,  c__d\n e__f ", { kind: "select", names: ["a__b", "c__d", "e__f"] }],
  ["select:a__b,a__b", { kind: "select", names: ["a__b"] }],
  ["select:A__B", { kind: "select", names: ["A__B"] }],
  ["select:", { kind: "empty" }],
  ["select: , ,", { kind: "empty" }],
  ["", { kind: "empty" }],
  [" \n\t ", { kind: "empty" }],
  ["!?", { kind: "empty" }],
])("parseQuery: %j -> %j", (query, parsed) => {
  expect(parseQuery(query)).toEqual(parsed);
});
