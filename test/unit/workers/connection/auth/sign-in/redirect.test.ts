/** Owns: to which address the browser brings its answer, and on which ports this process tries to listen. */

import { describe, expect, test } from "vitest";
import { isLoopback } from "../../../../../../src/shared/text/reading.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  chooseRedirect,
  listenAndRegister,
  type RedirectWish,
  readPaste,
  withLocalhost,
  withPort,
} from "../../../../../../workers/connection/auth/sign-in/redirect.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";

const FREE = "http://127.0.0.1:{port}/callback";
/** First 16 hex of the SHA-256 of `["linear","https://as.test"]`. */
const OWN_PATH = "http://127.0.0.1:{port}/callback/64dcdbf993df231b";

const choose = (plan: Partial<OAuthPlan>, wish: Partial<RedirectWish> = {}) =>
  chooseRedirect({
    plan: { grantType: "authorization_code", clientRegistration: "auto", ...plan },
    server: "linear",
    issuer: "https://as.test",
    stored: undefined,
    sendsIssuer: true,
    hasDocument: false,
    ...wish,
  });

const dynamic = (...redirectUris: string[]): Partial<RedirectWish> => ({
  stored: { id: "c", method: "none", kind: "dynamic", redirectUris },
});

describe("an address that nothing configures", () => {
  const STORED = "http://127.0.0.1:4711/callback";
  test.each<[string, Partial<OAuthPlan>, Partial<RedirectWish>, { uri: string; port?: number }[]]>([
    ["nothing is known", {}, {}, [{ uri: FREE }]],
    ["a callbackPort", { callbackPort: 8080 }, {}, [{ uri: FREE, port: 8080 }]],
    ["a stored dynamic client", {}, dynamic(STORED), [{ uri: STORED, port: 4711 }, { uri: FREE }]],
    [
      "a stored client at localhost",
      {},
      dynamic("http://localhost:1/callback"),
      [{ uri: "http://localhost:1/callback", port: 1 }, { uri: FREE }],
    ],
    [
      "a stored client and a callbackPort",
      { callbackPort: 8080 },
      dynamic(STORED),
      [{ uri: FREE, port: 8080 }],
    ],
    ["a stored client with another path", {}, dynamic("http://127.0.0.1:4711/other"), [{ uri: FREE }]],
    ["a stored client with https", {}, dynamic("https://127.0.0.1:4711/callback"), [{ uri: FREE }]],
    ["a stored client at a foreign host", {}, dynamic("http://a.test:4711/callback"), [{ uri: FREE }]],
    ["a stored client whose address is broken", {}, dynamic("http://"), [{ uri: FREE }]],
    [
      "a stored client without addresses",
      {},
      { stored: { id: "c", method: "none", kind: "dynamic" } },
      [{ uri: FREE }],
    ],
    [
      "a stored configured client",
      {},
      {
        stored: { id: "c", method: "none", kind: "configured", redirectUris: [STORED] },
      },
      [{ uri: FREE }],
    ],
  ])("%s -> the tries in order", (_title, plan, wish, tries) => {
    expect(choose(plan, wish)).toEqual({ listens: true, tries, isConfigured: false });
  });

  test.each<[string, Partial<OAuthPlan>, Partial<RedirectWish>, string]>([
    ["the answer names its issuer", {}, { sendsIssuer: true }, FREE],
    ["the answer does not", {}, {}, OWN_PATH],
    ["it does not, and the client is configured", { clientId: "c" }, {}, FREE],
    ["it does not, and a metadata document describes the client", {}, { hasDocument: true }, FREE],
    ["it does not, and the document is not used", { clientMetadataUrl: "https://a.test/c" }, {}, OWN_PATH],
  ])("%s -> the path", (_title, plan, wish, uri) => {
    expect(choose(plan, { sendsIssuer: false, ...wish })).toMatchObject({ tries: [{ uri }] });
  });

  test("two servers whose answers name no issuer -> two paths", () => {
    const [one, other] = ["a", "b"].map((server) => choose({}, { server, sendsIssuer: false }));
    expect(one).not.toEqual(other);
  });
});

describe("a configured redirectUri", () => {
  const listening = (uri: string, port?: number) => ({
    listens: true,
    tries: [{ uri, ...(port === undefined ? {} : { port }) }],
    isConfigured: true,
  });
  test.each<[string, number | undefined, object]>([
    ["http://127.0.0.1:3000/cb", undefined, listening("http://127.0.0.1:3000/cb", 3000)],
    ["http://localhost:3000/", undefined, listening("http://localhost:3000/", 3000)],
    ["http://[::1]:3000/cb", undefined, listening("http://[::1]:3000/cb", 3000)],
    ["http://localhost/cb", undefined, listening("http://localhost/cb", 80)],
    ["http://localhost/cb", 8080, listening("http://localhost/cb", 8080)],
    ["http://localhost:{port}/cb", undefined, listening("http://localhost:{port}/cb")],
    ["http://localhost:{port}/cb", 8080, listening("http://localhost:{port}/cb", 8080)],
    ["https://localhost:3000/cb", undefined, { listens: false, uri: "https://localhost:3000/cb" }],
    ["https://me.test/cb", undefined, { listens: false, uri: "https://me.test/cb" }],
    ["https://me.test/cb", 8080, { listens: false, uri: "https://me.test/cb" }],
    ["https://me.test:{port}/cb", 8080, { listens: false, uri: "https://me.test:8080/cb" }],
    ["http://me.test/cb", undefined, { listens: false, uri: "http://me.test/cb" }],
    ["http://127.0.0.1.me.test/cb", undefined, { listens: false, uri: "http://127.0.0.1.me.test/cb" }],
  ])("%s with callbackPort %s", (redirectUri, callbackPort, expected) => {
    expect(
      choose({ redirectUri, ...(callbackPort ? { callbackPort } : {}) }, { sendsIssuer: false }),
    ).toEqual(expected);
  });

  test.each<[string, number | undefined]>([
    ["no url", undefined],
    ["https://me.test:{port}/cb", undefined],
    // What the check of the entry takes, since it tries one port.
    ["http://127.0.0.1:{port}{port}/cb", 8080],
  ])("%s with callbackPort %s -> bad-settings that name the key", (redirectUri, callbackPort) => {
    const failure = (() => {
      try {
        return choose({ redirectUri, ...(callbackPort ? { callbackPort } : {}) });
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(SignInProblem);
    expect(failure).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.redirectUri" } });
  });
});

test.each([
  ["http://127.0.0.1:1/callback", "http://localhost:1/callback"],
  ["http://127.0.0.1:{port}/callback", "http://localhost:{port}/callback"],
  ["http://localhost:1/callback", undefined],
  ["https://me.test/cb?u=http://127.0.0.1:1/", undefined],
])("withLocalhost: %s -> %s", (uri, expected) => {
  expect(withLocalhost(uri)).toBe(expected);
});

test.each([
  ["localhost", true],
  ["127.0.0.1", true],
  ["127.8.9.10", true],
  ["[::1]", true],
  ["localhost.me.test", false],
  ["127.0.0.1.me.test", false],
  ["me.test", false],
  ["0.0.0.0", false],
])("isLoopback: %s -> %s", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

test("withPort: each {port} is the port", () => {
  expect(withPort("http://a:{port}/{port}", 80)).toBe("http://a:80/80");
});

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

const PLAN: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

const refusing = (code: string) => ({
  open: () => Promise.reject(Object.assign(new Error(code), { code })),
});

test.each<[string, Partial<OAuthPlan>, string]>([
  ["a free port", {}, "http://127.0.0.1:49152/callback"],
  ["a port below 1024", { callbackPort: 80 }, "http://127.0.0.1:80/callback"],
  ["a configured address", { redirectUri: "http://localhost/cb" }, "http://localhost/cb"],
])("the system refuses %s -> the user pastes the address, and a note says why", async (_title, plan, uri) => {
  const notes: string[] = [];
  const registered = await listenAndRegister(
    {
      plan: { ...PLAN, ...plan },
      server: "linear",
      issuer: "https://as.test",
      stored: undefined,
      sendsIssuer: true,
      hasDocument: false,
    },
    {
      listeners: refusing("EACCES"),
      signal: new AbortController().signal,
      onNote: (note) => notes.push(note),
    },
    async (redirectUri) => ({ id: "c", method: "none", kind: "dynamic", redirectUris: [redirectUri] }),
  );
  expect(registered).toEqual({ redirectUri: uri, client: expect.objectContaining({ redirectUris: [uri] }) });
  expect(notes).toEqual([expect.stringContaining("EACCES")]);
});
