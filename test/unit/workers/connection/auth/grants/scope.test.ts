/** Owns: which scope is asked for. */
import { describe, expect, test } from "vitest";
import { chooseScope } from "../../../../../../workers/connection/auth/grants/authorize.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";
import { discoveredOf } from "./support.ts";

interface Known {
  scope?: string;
  grantType?: OAuthPlan["grantType"];
  challenged?: string;
  requested?: string;
  granted?: string;
  resourceScopes?: string[];
  /** `scopes_supported` of the authorization server. */
  supported?: string[];
}

function chosen({ scope, grantType = "authorization_code", resourceScopes, supported, ...known }: Known) {
  const metadata = { issuer: "https://as.example", ...(supported && { scopes_supported: supported }) };
  return chooseScope({
    plan: { grantType, clientRegistration: "auto", ...(scope !== undefined && { scope }) },
    discovered: discoveredOf(metadata, resourceScopes ? { resourceScopes } : {}),
    challenged: known.challenged,
    requested: known.requested,
    granted: known.granted,
  });
}

const many = Array.from({ length: 150 }, (_, i) => `s${i}`);

const ROWS: [condition: string, known: Known, outcome: string | undefined][] = [
  ["nothing is known", {}, undefined],
  ["the resource names scopes", { resourceScopes: ["a", "b"] }, "a b"],
  ["the resource names none", { resourceScopes: [] }, undefined],
  ["a challenge", { challenged: "c", resourceScopes: ["a", "b"] }, "c"],
  ["a configured scope", { scope: "mine", resourceScopes: ["a"] }, "mine"],
  ["a configured scope and a challenge", { scope: "mine", challenged: "c mine" }, "mine c"],
  ["a configured scope that is empty", { scope: "", resourceScopes: ["a"] }, undefined],
  ["a step-up", { challenged: "write", requested: "read list", granted: "read" }, "write read list"],
  [
    "a step-up with a configured scope",
    { scope: "mine", challenged: "write", requested: "read" },
    "mine write read",
  ],
  [
    "the authorization server lists offline_access",
    { challenged: "c", supported: ["c", "offline_access"] },
    "c offline_access",
  ],
  [
    "offline_access is asked for already",
    { challenged: "offline_access c", supported: ["offline_access"] },
    "offline_access c",
  ],
  ["offline_access is listed and no scope is known", { supported: ["offline_access"] }, undefined],
  ["offline_access is not listed", { challenged: "c", supported: ["c"] }, "c"],
  [
    "offline_access is listed, the scope is configured",
    { scope: "mine", supported: ["offline_access"] },
    "mine",
  ],
  [
    "offline_access is listed, no user is needed",
    { grantType: "client_credentials", challenged: "c", supported: ["offline_access"] },
    "c",
  ],
  ["a server names what is no scope", { challenged: 'ok "quoted" back\\slash ümlaut' }, "ok"],
  ["tabs and newlines in a challenge", { challenged: "a\tb\nc" }, "a b c"],
  ["a server names 150 scopes", { resourceScopes: many }, many.slice(0, 100).join(" ")],
  ["a server names a scope of 3,000 characters", { resourceScopes: ["x".repeat(3_000), "a"] }, "a"],
];

describe("chooseScope", () => {
  test.each(ROWS)("%s -> the scope", (_condition, known, outcome) => {
    expect(chosen(known)).toBe(outcome);
  });

  test("a configured scope with a quotation mark -> bad-settings names the key", () => {
    expect(() => chosen({ scope: 'a "b"' })).toThrow(SignInProblem);
    try {
      chosen({ scope: 'a "b"' });
    } catch (error) {
      expect(error).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.scope" } });
    }
  });
});
