/** Names, texts and queries are cut into terms. */
import { expect, it } from "vitest";
import { nameParts, weightedTerms, words } from "../../../../../src/shared/search/weighted.ts";

it.each([
  ["fs__read_file", ["fs", "read", "file"]],
  ["read-file.now/then:later", ["read", "file", "now", "then", "later"]],
  ["readFile", ["read", "file"]],
  ["parseHTTPResponse", ["parse", "http", "response"]],
  ["getURL", ["get", "url"]],
  ["v2Api", ["v2", "api"]],
  ["base64", ["base64"]],
  ["__", []],
  ["", []],
  ["Größe", ["größe"]],
  ["ﬁle", ["file"]],
  ["検索_tool", ["検索", "tool"]],
])("nameParts: %j -> %j", (name, parts) => {
  expect(nameParts(name)).toEqual(parts);
});

it.each([
  ["Reads a file, then writes it.", ["reads", "a", "file", "then", "writes", "it"]],
  ["camelCase stays", ["camelcase", "stays"]],
  ["snake_case is cut", ["snake", "case", "is", "cut"]],
  ["`code` — dash", ["code", "dash"]],
  ["", []],
  ["...", []],
  ["Dateï 漢字", ["dateï", "漢字"]],
])("words: %j -> %j", (text, expected) => {
  expect(words(text)).toEqual(expected);
});

it.each([
  ["read file", ["read", "file"]],
  ["read_file", ["read_file"]],
  ["Read, FILE;read", ["read", "file"]],
  ["  spaced\tout\n", ["spaced", "out"]],
  ['"quoted" (bracketed)', ["quoted", "bracketed"]],
  ["github__create_issue", ["github__create_issue"]],
  ["... , ;", []],
  ["", []],
  ["ＦＩＬＥ", ["file"]],
])("weightedTerms: %j -> %j", (query, terms) => {
  expect(weightedTerms(query)).toEqual(terms);
});
