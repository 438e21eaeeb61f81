/** Owns: URI templates expanded with values of a model, and the values read back from a URI. */
import { describe, expect, it, test } from "vitest";
import { parseUriTemplate } from "../../../../../workers/connection/tools/uri-template.ts";

/** The variables of RFC 6570, 3.2.1 that are texts or lists. */
const VALUES = {
  var: "value",
  hello: "Hello World!",
  half: "50%",
  path: "/foo/bar",
  list: ["red", "green", "blue"],
  empty: "",
  x: "1024",
  y: "768",
};

describe("expand: as RFC 6570 says", () => {
  it.each([
    ["{var}", "value"],
    ["{hello}", "Hello%20World%21"],
    ["{half}", "50%25"],
    ["O{empty}X", "OX"],
    ["O{undef}X", "OX"],
    ["{x,y}", "1024,768"],
    ["{x,hello,y}", "1024,Hello%20World%21,768"],
    ["?{x,empty}", "?1024,"],
    ["{var:3}", "val"],
    ["{var:30}", "value"],
    ["{list}", "red,green,blue"],
    ["{list*}", "red,green,blue"],
    ["{path}", "%2Ffoo%2Fbar"],
    ["{+hello}", "Hello%20World!"],
    ["{+half}", "50%25"],
    ["{+path}/here", "/foo/bar/here"],
    ["{+path:6}/here", "/foo/b/here"],
    ["X{#var}", "X#value"],
    ["{#path,x}/here", "#/foo/bar,1024/here"],
    ["{.x,y}", ".1024.768"],
    ["X{.list*}", "X.red.green.blue"],
    ["{/var,x}/here", "/value/1024/here"],
    ["{/var:1,var}", "/v/value"],
    ["{/list*}", "/red/green/blue"],
    ["{;x,y,empty}", ";x=1024;y=768;empty"],
    ["{;list*}", ";list=red;list=green;list=blue"],
    ["{?x,y}", "?x=1024&y=768"],
    ["{?x,y,undef}", "?x=1024&y=768"],
    ["{?undef}", ""],
    ["{?list*}", "?list=red&list=green&list=blue"],
    ["?fixed=yes{&x}", "?fixed=yes&x=1024"],
    ["no variables", "no variables"],
  ])("%s -> %s", (template, uri) => {
    expect(parseUriTemplate(template)?.expand(VALUES)).toBe(uri);
  });
});

describe("expand: values that would lead elsewhere", () => {
  it.each<[string, unknown, string]>([
    ["db://t/{id}", "../secret", "db://t/..%2Fsecret"],
    ["db://t/{id}", "1?admin=true#x", "db://t/1%3Fadmin%3Dtrue%23x"],
    ["db://t/{id}", "{id}", "db://t/%7Bid%7D"],
    ["db://t/{id}", "漢", "db://t/%E6%BC%A2"],
    ["db://t/{id}", "a\r\nb", "db://t/a%0D%0Ab"],
    ["db://t/{id}", "\ud800", "db://t/%EF%BF%BD"],
    ["db://t/{id}", 7, "db://t/7"],
    ["db://t/{id}", true, "db://t/true"],
    ["db://t/{id}", null, "db://t/"],
    ["db://t/{id}", { a: 1 }, "db://t/"],
    ["db://t/{+id}", "a b\n[%2F]%", "db://t/a%20b%0A[%2F]%25"],
  ])("%s with %j -> %s", (template, id, uri) => {
    expect(parseUriTemplate(template)?.expand({ id })).toBe(uri);
  });

  test("a name that every object has -> no value", () => {
    expect(parseUriTemplate("x/{constructor}")?.expand({})).toBe("x/");
  });
});

describe("match: values that expand to the URI", () => {
  it.each<[string, string, Record<string, unknown>]>([
    ["db://t/{id}", "db://t/a%2Fb", { id: "a/b" }],
    ["db://{table}/{id}", "db://t/1", { table: "t", id: "1" }],
    ["x/{+path}/end", "x/a/b/end", { path: "a/b" }],
    ["x/{a,b}", "x/1,2", { a: "1", b: "2" }],
    ["x{/a,b}", "x/1/2", { a: "1", b: "2" }],
    ["x{/list*}", "x/a/b", { list: ["a", "b"] }],
    ["x{?q,limit}", "x?q=a%20b&limit=3", { q: "a b", limit: "3" }],
    ["x{?q,limit}", "x?limit=3", { limit: "3" }],
    ["x{?q}", "x", {}],
    ["x", "x", {}],
    ["x{#part}", "x#a/b", { part: "a/b" }],
    ["{a}-{b}", "1-2-3", { a: "1", b: "2-3" }],
  ])("%s and %s", (template, uri, values) => {
    expect(parseUriTemplate(template)?.match(uri)).toEqual(values);
  });

  it.each([
    ["db://t/{id}", "db://u/1"],
    ["db://t/{id}", "db://t/a/b"],
    ["db://t/{id}/x", "db://t/1/y"],
    ["db://t/{id}", "db://t/%"],
    ["x{?q}", "x?other=1"],
    ["x{?q}", "x?__proto__=1"],
    ["{a}{b}", "12"],
    ["{a}-{a}", "1-2"],
    ["db://t/{id}", ""],
  ])("%s and %s -> undefined", (template, uri) => {
    expect(parseUriTemplate(template)?.match(uri)).toBeUndefined();
  });
});

describe("parseUriTemplate", () => {
  it.each([
    "{",
    "}",
    "a{b",
    "a}b{c}",
    "{}",
    "{ }",
    "{a b}",
    "{a,}",
    "{!a}",
    "{a:0}",
    "{a:10000}",
    "{a*:3}",
    "{__proto__}",
    "{é}",
    `{${"x".repeat(65)}}`,
    "x".repeat(10_001),
    Array.from({ length: 51 }, (_, i) => `{v${i}}`).join(""),
  ])("%.40s -> no template", (template) => {
    expect(parseUriTemplate(template)).toBeUndefined();
  });

  test("variables: in order, each once; a variable in a query may be left out", () => {
    expect(parseUriTemplate("x://{a}/{b*}{?c,a}{&d}")?.variables).toEqual([
      { name: "a", isList: false, required: true },
      { name: "b", isList: true, required: true },
      { name: "c", isList: false, required: false },
      { name: "d", isList: false, required: false },
    ]);
  });
});
