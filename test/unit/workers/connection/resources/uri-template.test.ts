/** Owns: URI templates filled in with what a model gives. */
import { describe, expect, it, test } from "vitest";
import { parseUriTemplate } from "../../../../../workers/connection/resources/uri-template.ts";

/** RFC 6570, 3.2.1, as far as it is text. */
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

  test("variables: in order, each once; what stands in a query may be left out", () => {
    expect(parseUriTemplate("x://{a}/{b*}{?c,a}{&d}")?.variables).toEqual([
      { name: "a", isList: false, required: true },
      { name: "b", isList: true, required: true },
      { name: "c", isList: false, required: false },
      { name: "d", isList: false, required: false },
    ]);
  });
});
