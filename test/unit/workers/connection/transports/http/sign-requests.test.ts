/** Owns: which output of a program that signs requests is taken as headers. */
import { expect, test } from "vitest";
import { readHeaders } from "../../../../../../workers/connection/transports/http/sign-requests.ts";

test.each<[string, string, Record<string, string>]>([
  ["no header", "{}", {}],
  ["headers", '{"Authorization":"AWS4 a","X-Amz-Date":"1"}', { authorization: "AWS4 a", "x-amz-date": "1" }],
  ["blanks around a value", '{"x-a":"  b\\t"}', { "x-a": "b" }],
  ["an empty header", '{"x-a":"","x-b":"c"}', { "x-b": "c" }],
  ["a digest of the body", '{"Content-Digest":"sha-256=:a:"}', { "content-digest": "sha-256=:a:" }],
  ["a header that is called wrong", '{"wrong":"a"}', { wrong: "a" }],
])("%s -> taken", (_what, printed, headers) => {
  expect(readHeaders(printed)).toEqual({ headers });
});

const MANY = JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, "a"])));

test.each<[string, string, RegExp]>([
  ["nothing", " \n", /^printed nothing$/],
  ["no JSON", "Authorization: a", /no JSON$/],
  ["a list", '[["a","b"]]', /no JSON object/],
  ["null", "null", /no JSON object/],
  ["a number", '{"x-a":1}', /x-a with a value that is no text/],
  ["a list of values", '{"x-a":["b"]}', /no text/],
  [
    "a line break in a value",
    '{"x-a":"SECRET\\r\\nx-evil: 1"}',
    /x-a with characters that a header cannot hold/,
  ],
  ["a line feed at the end of a value", '{"x-a":"SECRET\\n"}', /cannot hold/],
  ["a NUL", '{"x-a":"SECRET\\u0000"}', /cannot hold/],
  ["letters beyond ASCII", '{"x-a":"SECRETé"}', /cannot hold/],
  ["a line break in a name", '{"x-a\\r\\nx-evil":"SECRET"}', /name HTTP does not allow/],
  ["an empty name", '{"":"SECRET"}', /name HTTP does not allow/],
  ["a name without end", JSON.stringify({ ["x".repeat(200)]: "SECRET" }), /name HTTP does not allow/],
  ["Host", '{"Host":"SECRET"}', /the header Host, which belongs to the message/],
  ["Content-Length", '{"content-length":"1"}', /belongs to the message/],
  ["Transfer-Encoding", '{"Transfer-Encoding":"chunked"}', /belongs to the message/],
  ["Connection", '{"connection":"x-a"}', /belongs to the message/],
  ["a header for proxies", '{"Proxy-Authorization":"SECRET"}', /belongs to the message/],
  ["the session of MCP", '{"Mcp-Session-Id":"SECRET"}', /belongs to the message/],
  ["one name twice", '{"x-a":"SECRET","X-A":"b"}', /X-A twice/],
  ["10,000 headers", MANY, /10,000 headers, at most 50/],
])("%s -> refused without its values", (_what, printed, wrong) => {
  const read = readHeaders(printed);
  expect(read).toEqual({ wrong: expect.stringMatching(wrong) });
  expect(JSON.stringify(read)).not.toContain("SECRET");
  expect(JSON.stringify(read)).not.toMatch(/\\[rn]/);
});
