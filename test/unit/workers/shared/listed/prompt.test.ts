/** The part of an untrusted server's prompt that the metadata cache keeps. */
import { expect, it } from "vitest";
import { normalizePrompts } from "../../../../../workers/shared/listed.ts";

it.each<[string, unknown, unknown]>([
  ["no list", { prompts: [] }, []],
  ["not objects", [null, 1, "a", ["b"]], []],
  ["no name, an empty one, one of a megabyte", [{}, { name: "" }, { name: "x".repeat(1_000_000) }], []],
  [
    "of one name the first",
    [
      { name: "a", title: "1" },
      { name: "a", title: "2" },
    ],
    [{ name: "a", title: "1" }],
  ],
  ["fields of wrong types, unknown ones", [{ name: "a", title: 5, icons: [] }], [{ name: "a" }]],
  [
    "arguments, malformed ones among them",
    [{ name: "a", arguments: [{ name: "x", description: "d", required: false, y: 1 }, {}, 7] }],
    [{ name: "a", arguments: [{ name: "x", description: "d", required: false }] }],
  ],
  ["arguments that are no list", [{ name: "a", arguments: { x: 1 } }], [{ name: "a" }]],
  [
    "more arguments than anybody fills in",
    [{ name: "a", arguments: Array.from({ length: 60 }, (_, i) => ({ name: `x${i}` })) }],
    [{ name: "a", arguments: Array.from({ length: 50 }, (_, i) => ({ name: `x${i}` })) }],
  ],
])("%s", (_name, raw, expected) => {
  expect(normalizePrompts(raw)).toEqual(expected);
});
