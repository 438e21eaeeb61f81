/** Owns: which endpoints of a sign-in belong together. test/oauth/mix-up.test.ts tries what follows from that. */
import { describe, expect, test } from "vitest";
import {
  checkSecretTarget,
  isSameSite,
} from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import type { Discovered } from "../../../../../../workers/connection/auth/model/model.ts";
import { mixUpOf } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";

test.each<[a: string, b: string, isSame: boolean]>([
  ["https://a.example/x", "https://a.example/y", true],
  ["https://a.example", "https://a.example:8443", true],
  ["https://a.example.", "https://a.example", true],
  ["https://cf.mcp.a.example", "https://mcp.a.example", true],
  ["https://a.example", "https://login.a.example", true],
  ["https://api.a.example", "https://www.a.example", false],
  ["https://evil.workers.dev", "https://bank.workers.dev", false],
  ["https://evil.example", "https://accounts.bank.example", false],
  ["https://evil-a.example", "https://a.example", false],
  ["https://a.example.evil.test", "https://a.example", false],
  ["https://a.com", "https://com", false],
  ["http://127.0.0.1:1", "http://127.0.0.1:1", true],
  ["http://127.0.0.1:1", "http://127.0.0.1:2", false],
  ["http://localhost:1", "http://localhost:2", false],
  ["http://localhost:1", "http://127.0.0.1:1", false],
  ["http://a.localhost:1", "http://localhost:1", false],
  ["https://[2001:db8::1]:1", "https://[2001:db8::1]:2", false],
  ["https://1.2.3.4", "https://9.1.2.3.4.example", false],
])("%s and %s -> the same site: %s", (a, b, isSame) => {
  expect(isSameSite(new URL(a), new URL(b))).toBe(isSame);
  expect(isSameSite(new URL(b), new URL(a))).toBe(isSame);
});

const PLAN: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };
const PAGE = "https://accounts.bank.example/authorize";
const found = (
  metadata: Partial<Discovered["metadata"]> = {},
  more: Partial<Discovered> = {},
): Discovered => ({
  metadata: {
    issuer: "https://evil.example",
    authorization_endpoint: PAGE,
    token_endpoint: "https://evil.example/token",
    ...metadata,
  },
  foundAt: "https://evil.example/.well-known/oauth-authorization-server",
  legacy: false,
  ...more,
});
const asked = (discovered: Discovered, plan: Partial<OAuthPlan> = {}, isOwnPlan = true) =>
  mixUpOf(discovered, { server: "docs", plan: { ...PLAN, ...plan }, isOwnPlan });

describe("mixUpOf", () => {
  test("the page is of another site -> who shows it, who gets the code, and who says so", () => {
    expect(asked(found({ token_endpoint: "https://t.evil.example/token" }))).toEqual({
      page: new URL(PAGE),
      question: {
        about: "endpoints",
        endpoints: "https://evil.example https://accounts.bank.example https://t.evil.example",
        text: "docs sends you to sign in at accounts.bank.example, and the code of that sign-in goes to t.evil.example, as evil.example says. Whoever gets the code can act as you at accounts.bank.example. Go on only if you know that they belong together.",
      },
    });
  });

  test.each<[string, Discovered, Partial<OAuthPlan>, isOwnPlan: boolean, isAsked: boolean]>([
    ["its own page", found({ authorization_endpoint: "https://evil.example/authorize" }), {}, true, false],
    [
      "its own page, the token endpoint elsewhere (Google)",
      found({
        authorization_endpoint: "https://evil.example/authorize",
        token_endpoint: "https://api.example/token",
      }),
      {},
      true,
      false,
    ],
    ["page and token endpoint of one other site", found({ token_endpoint: `${PAGE}/token` }), {}, true, true],
    ["the name of the other site", found({ issuer: "https://accounts.bank.example" }), {}, true, true],
    ["an issuer that the user names", found(), { issuer: "https://evil.example" }, true, false],
    ["an issuer that a project's file names", found(), { issuer: "https://evil.example" }, false, true],
    [
      "an issuer that the user names, found elsewhere",
      found({ issuer: "https://bank.example" }, { acceptedIssuer: "https://bank.example" }),
      { issuer: "https://bank.example" },
      true,
      true,
    ],
    [
      "metadata that the user names",
      found(),
      { authServerMetadataUrl: "https://evil.example/m" },
      true,
      false,
    ],
    [
      "metadata that a project's file names",
      found(),
      { authServerMetadataUrl: "https://evil.example/m" },
      false,
      true,
    ],
    ["no check of the issuer", found(), { skipIssuerMetadataValidation: true }, true, true],
  ])("%s -> asked: %$4", (_name, discovered, plan, isOwnPlan, isAsked) => {
    expect(asked(discovered, plan, isOwnPlan) !== undefined).toBe(isAsked);
  });
});

describe("checkSecretTarget", () => {
  const ISSUER = "https://evil.example";
  const KEY = { privateKeyFile: "/key.pem" };
  const OTHER = { acceptedIssuer: ISSUER };
  test.each<
    [title: string, token: string, plan: Partial<OAuthPlan>, more: Partial<Discovered>, key?: string]
  >([
    ["the server's own site", "https://docs.example/token", {}, {}],
    ["a name below the server's", "https://auth.docs.example/token", {}, {}],
    ["another site", "https://evil.example/token", {}, {}, "issuer"],
    ["a neighbour below one name", "https://auth.example/token", {}, {}, "issuer"],
    ["this machine, for a server elsewhere", "http://127.0.0.1:8080/token", {}, {}, "issuer"],
    ["another site, whose issuer is named", "https://evil.example/token", { issuer: ISSUER }, {}],
    ["wherever the named issuer says", "https://tokens.example/token", { issuer: ISSUER }, {}],
    [
      "another site, that calls itself the named issuer",
      "https://tokens.example/token",
      { issuer: ISSUER },
      OTHER,
      "authServerMetadataUrl",
    ],
    ["the named issuer's site, whoever says so", "https://evil.example/token", { issuer: ISSUER }, OTHER],
    [
      "another site, any issuer accepted",
      "https://evil.example/token",
      { skipIssuerMetadataValidation: true },
      OTHER,
      "issuer",
    ],
    [
      "wherever the named metadata say",
      "https://tokens.example/token",
      { authServerMetadataUrl: `${ISSUER}/m` },
      {},
    ],
    ["another site, proof by a key", "https://evil.example/token", KEY, {}],
    [
      "another site that calls itself another, proof by a key",
      "https://evil.example/token",
      KEY,
      OTHER,
      "issuer",
    ],
    [
      "another site, proof by a ready assertion",
      "https://evil.example/token",
      { assertionFile: "/a" },
      {},
      "issuer",
    ],
  ])("%s -> refused: %$4", (_title, token, plan, more, key) => {
    const check = () =>
      checkSecretTarget(found({ issuer: ISSUER, token_endpoint: token }, more), {
        plan: { ...PLAN, ...plan },
        url: new URL("https://docs.example/mcp"),
      });
    if (key === undefined) return expect(check()).toBeUndefined();
    return expect(check).toThrow(
      expect.objectContaining({
        kind: "secret-elsewhere",
        facts: expect.objectContaining({ key, url: token }),
      }),
    );
  });

  test("the server and the token endpoint are on this machine -> one site, whatever the ports", () => {
    const discovered = found({ token_endpoint: "http://localhost:8080/token" });
    expect(
      checkSecretTarget(discovered, { plan: PLAN, url: new URL("http://127.0.0.1:3000/mcp") }),
    ).toBeUndefined();
  });
});
