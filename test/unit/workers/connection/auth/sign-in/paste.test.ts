/** Owns: which pasted texts are the answer to a sign-in, and the sentence for those that are not. */
import { describe, expect, test } from "vitest";
import { readPaste } from "../../../../../../workers/connection/auth/sign-in/redirect.ts";

const REDIRECT = "http://127.0.0.1:4711/callback/0123456789abcdef";
const STATE = "state-of-this-sign-in";
const CODE = "code-1234567890";
const QUERY = `code=${CODE}&state=${STATE}`;
const WHOLE = `${REDIRECT}?${QUERY}`;

const read = (text: string, { redirectUri = REDIRECT, needsIssuer = false } = {}) => {
  const result = readPaste(text, { redirectUri, state: STATE, needsIssuer });
  return "parameters" in result ? Object.fromEntries(result.parameters) : result;
};
const wrapped = (text: string, columns: number, between: string): string =>
  (text.match(new RegExp(`.{1,${columns}}`, "g")) ?? []).join(between);

describe("the whole answer", () => {
  test.each<[string, string]>([
    ["the address", WHOLE],
    ["with spaces and a line end", `  ${WHOLE}\n`],
    ["in quotes", `"${WHOLE}"`],
    ["in single quotes", `'${WHOLE}'`],
    ["in angle brackets", `<${WHOLE}>`],
    ["in typographic quotes", `“${WHOLE}”`],
    ["wrapped by a terminal", wrapped(WHOLE, 40, "\n")],
    ["wrapped with an indent", wrapped(WHOLE, 40, "\r\n    ")],
    ["wrapped in a frame", `│ ${wrapped(WHOLE, 40, " │\n│ ")} │`],
    ["with escape sequences", `\u001b[200~${WHOLE}\u001b[201~`],
    ["with characters that nobody sees", `\u200b${WHOLE}\ufeff`],
    ["with a fragment", `${WHOLE}#`],
    ["at localhost", WHOLE.replace("127.0.0.1", "localhost")],
    ["without its scheme", WHOLE.replace("http://", "")],
    ["path and query", `/callback/0123456789abcdef?${QUERY}`],
    ["the query with ?", `?${QUERY}`],
    ["the query", QUERY],
    ["the query in another order", `state=${STATE}&code=${CODE}`],
    ["code#state", `${CODE}#${STATE}`],
  ])("%s -> code and state", (_title, text) => {
    expect(read(text)).toEqual({ code: CODE, state: STATE });
  });

  test("further parameters -> all of them are passed on", () => {
    expect(read(`${WHOLE}&iss=https%3A%2F%2Fas.test&x=1`)).toEqual({
      code: CODE,
      state: STATE,
      iss: "https://as.test",
      x: "1",
    });
  });

  test("an error with the right state -> it is the answer", () => {
    expect(read(`${REDIRECT}?error=access_denied&state=${STATE}`)).toEqual({
      error: "access_denied",
      state: STATE,
    });
  });

  test("a redirect URI with https -> its address is taken", () => {
    const redirectUri = "https://me.test/cb";
    expect(read(`${redirectUri}?${QUERY}`, { redirectUri })).toEqual({ code: CODE, state: STATE });
  });

  test("the answer must name its issuer, and does -> it is taken", () => {
    expect(read(`${WHOLE}&iss=https%3A%2F%2Fas.test`, { needsIssuer: true })).toMatchObject({
      iss: "https://as.test",
    });
  });
});

describe("a code alone", () => {
  test.each([
    ["a code", CODE, CODE],
    ["with quotes and spaces", ` "${CODE}" `, CODE],
    ["wrapped", wrapped(CODE, 6, "\n  "), CODE],
    ["copied out of an address", "4%2F0Abc_def-ghi", "4/0Abc_def-ghi"],
    ["with padding", "abcdefghij==", "abcdefghij=="],
    ["named", `code=${CODE}`, CODE],
  ])("%s -> the code", (_title, text, bareCode) => {
    expect(read(text)).toEqual({ bareCode });
  });
});

describe("what is not the answer", () => {
  const other = WHOLE.replace("/0123456789abcdef", "/fedcba9876543210");
  test.each<[string, string, RegExp, boolean?]>([
    ["nothing", "", /^Nothing was pasted/],
    ["only quotes and spaces", ' "" \n', /^Nothing was pasted/],
    ["more than 8 KB", "x".repeat(8_193), /too long/],
    ["a word", "yes", /There is no code/],
    ["characters that no code has", "código-secreto", /There is no code/],
    [
      "the address that the browser opened first",
      `https://as.test/authorize?client_id=1&state=${STATE}`,
      /does not begin with http:\/\/127/,
    ],
    ["the address of another server's sign-in", other, /does not begin with/],
    ["the address at another port", WHOLE.replace("4711", "4712"), /does not begin with/],
    ["the address with https", WHOLE.replace("http:", "https:"), /does not begin with/],
    ["the address at another host", WHOLE.replace("127.0.0.1", "me.test"), /does not begin with/],
    ["a broken address", "http://[", /does not begin with/],
    ["the address without a query", REDIRECT, /There is no code/],
    ["the address with an empty code", `${REDIRECT}?code=&state=${STATE}`, /There is no code/],
    ["another state", WHOLE.replace(STATE, "other"), /another sign-in/],
    ["another state behind the code", `${CODE}#other`, /another sign-in/],
    ["an address without state", `${REDIRECT}?code=${CODE}&x=1`, /another sign-in/],
    ["an error without state", `${REDIRECT}?error=access_denied`, /another sign-in/],
    ["two codes", `${WHOLE}&code=2`, /twice/],
    ["two states", `${WHOLE}&state=2`, /twice/],
    ["the address pasted twice", `${WHOLE}\n${WHOLE}`, /another sign-in|twice/],
    ["a code, where the answer must name its issuer", CODE, /needs more than the code/, true],
    ["a named code, where it must", `code=${CODE}`, /needs more than the code/, true],
    ["code#state, where it must", `${CODE}#${STATE}`, /needs more than the code/, true],
    ["an address without iss, where it must", WHOLE, /needs more than the code/, true],
  ])("%s -> a sentence", (_title, text, problem, needsIssuer = false) => {
    expect(read(text, { needsIssuer })).toEqual({ problem: expect.stringMatching(problem) });
  });

  test("a sentence -> nothing of the pasted text is in it", () => {
    const pasted = `https://evil.test/callback?code=${CODE}&state=${STATE}`;
    expect(JSON.stringify(read(pasted))).not.toMatch(new RegExp(`evil|${CODE}|${STATE}`));
  });
});
