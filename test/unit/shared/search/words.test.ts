/** Text as search terms, actions of verbs, and requests that name tools. */
import { describe, expect, it, test } from "vitest";
import { parseRequest } from "../../../../src/shared/search/search.ts";
import {
  actions,
  CREATE,
  DELETE,
  READ,
  singular,
  stem,
  tokenize,
  UPDATE,
} from "../../../../src/shared/search/words.ts";
import { searcher } from "./catalog.ts";

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
    ["status statuses"],
    ["embed embedded embedding embeddings"],
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

describe("actions: words -> the actions that they ask for", () => {
  test.each([
    ["delete_user", DELETE],
    ["removing old rows", DELETE],
    ["create or update a file", CREATE | UPDATE],
    ["which branches are there", READ],
    ["renamed", UPDATE],
    ["user profile", 0],
    ["", 0],
    ["__proto__ constructor", 0],
  ])("%j -> %i", (text, expected) => expect(actions(tokenize(text).map(({ term }) => term))).toBe(expected));
});

test("tools that differ only by their verb -> the one with the wanted action comes first", () => {
  const tools = ["create", "delete", "update", "get"].map((verb) => ({
    server: "crm",
    name: `${verb}_contact`,
    description: `The contact API: ${verb}.`,
  }));
  const search = searcher(tools);
  expect(search("remove a contact").ids[0]).toBe("crm/delete_contact");
  expect(search("show the contact").ids[0]).toBe("crm/get_contact");
  expect(search("modify a contact").ids[0]).toBe("crm/update_contact");
  expect(search("new contact").ids[0]).toBe("crm/create_contact");
});

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
