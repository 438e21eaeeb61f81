import { describe, expect, test } from "vitest";
import { singular, stem, tokenize } from "../../../../../src/shared/search/words.ts";

const parts = (text: string): string =>
  tokenize(text)
    .filter(({ kind }) => kind === "part")
    .map(({ written }) => written)
    .join(" ");
const joined = (text: string): string =>
  tokenize(text)
    .filter(({ kind }) => kind === "joined")
    .map(({ written }) => written)
    .join(" ");

describe("tokenize: text -> parts, joined", () => {
  test.each([
    ["read_file", "read file", "readfile"],
    ["get-crypto-price", "get crypto price", "getcrypto cryptoprice"],
    ["getHTTPResponse", "get http response", "gethttp httpresponse"],
    ["GitHub and MySQL", "git hub and my sql", "github mysql"],
    ["a/b.c", "a b c", "ab bc"],
    ["s3 base64 v2", "s3 base64 v2", ""],
    ["IPv4Address2", "i pv4 address2", "ipv4 pv4address2"],
    ["Ｒｅａｄ　ﬁle", "read file", ""],
    ["list files, then stop.", "list files then stop", ""],
    ["don't", "don t", "dont"],
    ["café naïve ÉCOLE", "café naïve école", ""],
    ["天気予報", "天気 気予 予報", ""],
    ["查 12306余票", "查 12306 余票", ""],
    ["서울 날씨", "서울 날씨", ""],
    ["MySQLデータ", "my sql デー ータ", "mysql"],
    ["__proto__ constructor", "proto constructor", ""],
    ["", "", ""],
    ["--- ___ ...", "", ""],
  ])("%j -> %j, %j", (text, expectedParts, expectedJoined) => {
    expect(parts(text)).toBe(expectedParts);
    expect(joined(text)).toBe(expectedJoined);
  });

  test("a run of letters that is too long for a word is dropped; its neighbours stay", () => {
    expect(parts(`key ${"a".repeat(100)} value`)).toBe("key value");
  });

  test("stops near maxTokens", () => {
    expect(tokenize("word ".repeat(10_000), 50)).toHaveLength(50);
  });

  test("characters beyond the basic plane and lone surrogates cause no error", () => {
    expect(parts("𠮷野家 😀 \uD800 ok")).toBe("𠮷野 野家 ok");
  });
});

describe("stem: word -> term", () => {
  test.each([
    ["repositories", "repository"],
    ["branches", "branch"],
    ["boxes", "box"],
    ["classes", "class"],
    ["status", "status"],
    ["statuses", "status"],
    ["analysis", "analysis"],
    ["people", "person"],
    ["s3", "s3"],
    ["dns", "dns"],
    ["bus", "bus"],
    ["__proto__", "__proto__"],
  ])("singular of %s is %s", (word, expected) => expect(singular(word)).toBe(expected));

  test.each([
    ["create creates created creating"],
    ["tag tags tagged tagging"],
    ["add adds added adding"],
    ["database databases"],
    ["rate rated rating"],
    ["delete deletes deleting"],
    ["cache caches cached caching"],
    ["index indexes indices"],
    ["price prices pricing"],
    ["movie movies"],
  ])("%s become one term", (words) => expect(new Set(words.split(" ").map(stem)).size).toBe(1));

  test.each([
    ["train", "training"],
    ["set", "setting"],
    ["list", "listing"],
    ["new", "news"],
    ["speed", "spe"],
    ["string", "str"],
  ])("%s and %s stay different terms", (a, b) => expect(stem(a)).not.toBe(stem(b)));
});
