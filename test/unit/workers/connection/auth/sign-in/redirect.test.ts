/** Owns: to which address the browser brings its answer, and on which ports this process tries to listen. */

import { describe, expect, test } from "vitest";
import { isLoopback } from "../../../../../../src/shared/text/reading.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  chooseRedirect,
  type RedirectWish,
  withLocalhost,
  withPort,
} from "../../../../../../workers/connection/auth/sign-in/redirect.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";

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

  test.each<[string, Partial<OAuthPlan>, boolean, string]>([
    ["the answer names its issuer", {}, true, FREE],
    ["the answer does not", {}, false, OWN_PATH],
    ["it does not, and the client is configured", { clientId: "c" }, false, FREE],
    ["it does not, and there is a metadata document", { clientMetadataUrl: "https://a.test/c" }, false, FREE],
    [
      "it does not, and the document is not used",
      { clientMetadataUrl: "https://a.test/c", clientRegistration: "dcr" },
      false,
      OWN_PATH,
    ],
  ])("%s -> the path", (_title, plan, sendsIssuer, uri) => {
    expect(choose(plan, { sendsIssuer })).toMatchObject({ tries: [{ uri }] });
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

  test.each(["no url", "https://me.test:{port}/cb"])(
    "%s -> bad-settings that name the key",
    (redirectUri) => {
      const failure = (() => {
        try {
          return choose({ redirectUri });
        } catch (error) {
          return error;
        }
      })();
      expect(failure).toBeInstanceOf(SignInProblem);
      expect(failure).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.redirectUri" } });
    },
  );
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
