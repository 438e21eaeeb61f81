/** Owns: which cookies of an answer are kept, for how long, and where they go. */
import { describe, expect, test } from "vitest";
import { Cookies } from "../../../../../workers/connection/web/cookies.ts";

const URL_OF_SERVER = new URL("https://mcp.example.com/mcp");

/** The header `cookie` of the next request, after answers with these `set-cookie` headers. */
function next(answers: string[][], { url = URL_OF_SERVER, headers = {} } = {}): string | undefined {
  const cookies = new Cookies();
  for (const lines of answers) cookies.take(URL_OF_SERVER, { "set-cookie": lines });
  const sent = cookies.addedTo(headers, url);
  return Object.entries(sent).find(([name]) => name.toLowerCase() === "cookie")?.[1];
}

test.each<[string, string[][], string | undefined]>([
  ["nothing", [[]], undefined],
  ["one", [["AWSALB=a1; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Path=/"]], "AWSALB=a1"],
  ["several", [["AWSALB=a1", "AWSALBCORS=a1; SameSite=None; Secure"]], "AWSALB=a1; AWSALBCORS=a1"],
  ["another domain and path", [["a=1; Domain=elsewhere.test; Path=/login; HttpOnly"]], "a=1"],
  ["the same once more", [["a=1", "b=1"], ["a=2"]], "b=1; a=2"],
  ["a value with signs of its own", [["a=b=c d"]], "a=b=c d"],
  ["an empty value", [["a="]], "a="],
  [
    "a time that is over",
    [
      ["a=1", "b=1"],
      ["a=; Max-Age=0", "b=; expires=Thu, 01 Jan 1970 00:00:00 GMT"],
    ],
    undefined,
  ],
  [
    "a length of life that counts before the time",
    [["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"]],
    "a=1",
  ],
  ["a time that is none", [["a=1; Expires=soon; Max-Age=long"]], "a=1"],
  ["no pair", [["a", "", ";", "=1"]], undefined],
  ["a name that is no token", [["a b=1", "a,b=1", "ä=1"]], undefined],
  ["characters that no header can hold", [["a=1\u0000", "b=ä", "c=\t1\u007f"]], undefined],
])("a server sets %s -> what is sent", (_name, answers, sent) => {
  expect(next(answers)).toBe(sent);
});

test.each([
  ["http in place of https", "http://mcp.example.com/mcp"],
  ["another port", "https://mcp.example.com:8443/mcp"],
  ["a host below it", "https://a.mcp.example.com/mcp"],
  ["a host above it", "https://example.com/mcp"],
])("%s -> gets none", (_name, url) => {
  expect(next([["a=1; Domain=example.com"]], { url: new URL(url) })).toBeUndefined();
});

test.each([
  [{ Cookie: "key=1" }, "key=1; a=1"],
  [{ cookie: "key=1; a=own" }, "key=1; a=own"],
])("the configuration has %j -> it comes first, and wins", (headers, sent) => {
  expect(next([["a=1"]], { headers })).toBe(sent);
});

describe("the bounds", () => {
  test("ten cookies -> all; one more -> the oldest goes", () => {
    const lines = Array.from({ length: 11 }, (_, index) => `c${index}=1`);
    expect(next([lines.slice(0, 10)])?.split("; ")).toHaveLength(10);
    expect(
      next([lines])
        ?.split("; ")
        .map((pair) => pair.split("=")[0]),
    ).toEqual(lines.slice(1).map((line) => line.split("=")[0]));
  });

  test("4,096 characters -> they fit; one more -> the oldest goes, or what is too long by itself", () => {
    expect(next([[`a=${"x".repeat(4_095)}`]])).toHaveLength(4_097);
    expect(next([["b=1", `a=${"x".repeat(4_095)}`]])?.startsWith("a=")).toBe(true);
    expect(next([["b=1", `a=${"x".repeat(4_096)}`]])).toBe("b=1");
  });

  test("the end of the session -> none is left", () => {
    const cookies = new Cookies();
    cookies.take(URL_OF_SERVER, { "set-cookie": ["a=1"] });
    cookies.clear();
    expect(cookies.addedTo({}, URL_OF_SERVER)).toEqual({});
  });
});
