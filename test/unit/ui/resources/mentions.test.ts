/** Owns: which resources a text names. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { mentionsIn } from "../../../../src/ui/resources/read-mentions.ts";

const SERVERS = ["docs", "docs:v2", "my server", "__proto__"];
const long = `docs:x://${"a".repeat(LIMITS.mentionChars)}`;

test.each<[string, string[]]>([
  ["look at @docs:file:///a%20b.md please", ["docs file:///a%20b.md"]],
  ["@docs:x://a", ["docs x://a"]],
  [
    '(@docs:x://a), [@docs:x://b]; "@docs:x://c" and @docs:x://d.',
    ["a", "b", "c", "d"].map((c) => `docs x://${c}`),
  ],
  ["twice @docs:x://a @docs:x://a", ["docs x://a"]],
  ["@docs:v2:x://a", ["docs:v2 x://a"]],
  ["@my server:x://a b", ["my server x://a"]],
  ["@__proto__:x://a", ["__proto__ x://a"]],
  ["@docs:x://a?b=c#d@e", ["docs x://a?b=c#d@e"]],
  ["@docs:urn:isbn:1\n@docs:x://b", ["docs urn:isbn:1", "docs x://b"]],
  ["mail me@docs:x://a", []],
  ["@docs: x://a", []],
  ["@docs:no-scheme", []],
  ["@docs:x:", []],
  ["@other:x://a", []],
  ["@Docs:x://a", []],
  [`@${long}`, []],
  ["@src/index.ts", []],
])("%j -> %j", (text, found) => {
  expect(mentionsIn(text, SERVERS).map(({ server, uri }) => `${server} ${uri}`)).toEqual(found);
});

test("a megabyte of almost mentions -> read in linear time, and none is found", () => {
  expect(mentionsIn("@docs:x:".repeat(120_000), SERVERS)).toEqual([]);
  expect(mentionsIn(" @docs:".repeat(140_000), SERVERS)).toEqual([]);
  const signs = `'@docs:x:${"!".repeat(LIMITS.mentionChars)}a `;
  expect(mentionsIn(signs.repeat(500), SERVERS)).toEqual([]);
});
