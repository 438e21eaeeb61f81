import { describe, expect, test } from "vitest";
import { buildIndex } from "../../../../../src/shared/search/build.ts";
import {
  findTerm,
  openIndex,
  prefixRange,
  stringAt,
  writeIndex,
} from "../../../../../src/shared/search/index-format.ts";
import { searchIndex } from "../../../../../src/shared/search/ranked.ts";
import { catalog } from "../catalog.ts";

const bytes = buildIndex(catalog);

describe("openIndex", () => {
  test("makes views of the given buffer and copies nothing", () => {
    const index = openIndex(bytes);
    for (const value of Object.values(index))
      if (ArrayBuffer.isView(value)) expect(value.buffer).toBe(bytes.buffer);
  });

  test("an opened index that is written again -> the same bytes", () =>
    expect(writeIndex(openIndex(bytes))).toEqual(bytes));

  test.each([[0], [4], [8], [1], [2], [3]])("reads an index that starts %i bytes into a buffer", (offset) => {
    const larger = new Uint8Array(bytes.length + 16);
    larger.set(bytes, offset);
    const index = openIndex(larger.subarray(offset, offset + bytes.length));
    expect(searchIndex(index, "read a file", 1).hits[0]?.tool).toBe(3);
  });

  test.each([
    ["nothing", new Uint8Array(0), /too few/u],
    ["a cut file", bytes.slice(0, bytes.length - 8), /cut off/u],
    ["a cut header", bytes.slice(0, 20), /too few/u],
    ["another format", new Uint8Array(400), /byte order/u],
    ["another byte order", bytes.slice().fill(1, 8, 9), /byte order/u],
    ["another version", bytes.slice().fill(99, 4, 5), /version 99/u],
    ["a section outside", bytes.slice().fill(255, 36, 39), /outside|cut off/u],
  ])("throws a RangeError for %s", (_, broken, message) => {
    expect(() => openIndex(broken)).toThrow(RangeError);
    expect(() => openIndex(broken)).toThrow(message);
  });

  test("an empty catalog opens and finds nothing", () => {
    expect(searchIndex(openIndex(buildIndex([])), "read_file", 5)).toEqual({
      hits: [],
      unmatched: ["read", "file"],
    });
  });
});

test("every term is found by its spelling, by prefix, and in order", () => {
  const index = openIndex(bytes);
  const terms = Array.from({ length: index.termCount }, (_, term) =>
    stringAt(index.termStart, index.termChars, term),
  );
  expect(terms).toEqual([...terms].sort((a, b) => (a < b ? -1 : 1)));
  terms.forEach((term, id) => {
    expect(findTerm(index, term)).toBe(id);
  });
  expect(findTerm(index, "zzqqy")).toBe(-1);
  const { first, end } = prefixRange(index, "re");
  expect(terms.slice(first, end)).toEqual(terms.filter((term) => term.startsWith("re")));
});
