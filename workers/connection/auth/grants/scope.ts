/**
 * Which scope is asked for, and which words of a scope count. The order is that of MCP 2025-11-25, "Scope Selection
 * Strategy": the challenge, else `scopes_supported` of the protected resource, else none. Pure.
 */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type Discovered, SignInProblem } from "../model/model.ts";

/** A server's list can be of any length, and it becomes part of an address that the browser opens. */
const MOST_SCOPES = 100;
const SCOPE_CHARS = 2_000;
/** RFC 6749, section 3.3. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

const wordsOf = (text: string | undefined): string[] =>
  text?.split(/\s+/).filter((word) => word !== "") ?? [];

/** Each scope once, in their order, separated by spaces. What is too much or no scope is left out. */
export function joinScopes(scopes: readonly string[]): string | undefined {
  const kept: string[] = [];
  let chars = 0;
  for (const scope of new Set(scopes)) {
    if (!SCOPE_TOKEN.test(scope) || chars + scope.length > SCOPE_CHARS) continue;
    if (kept.length === MOST_SCOPES) break;
    kept.push(scope);
    chars += scope.length + 1;
  }
  return kept.length === 0 ? undefined : kept.join(" ");
}

/** The scope of a token response, bounded. */
export const grantedScope = (scope: string | undefined): string | undefined => joinScopes(wordsOf(scope));

function configuredScopes(scope: string): string[] {
  const words = wordsOf(scope);
  const wrong = words.find((word) => !SCOPE_TOKEN.test(word));
  if (wrong === undefined) return words;
  throw new SignInProblem("bad-settings", {
    key: "oauth.scope",
    what: `"${wrong}" has characters of no scope`,
  });
}

/** Without `offline_access`, many authorization servers issue no refresh token (MCP 2026-07-28, SEP-2207). */
const offline = (plan: OAuthPlan, { metadata }: Discovered): string[] =>
  plan.grantType === "authorization_code" && metadata.scopes_supported?.includes("offline_access")
    ? ["offline_access"]
    : [];

/**
 * The scope to ask for; undefined: none is named, and the authorization server decides. With `requested` or `granted`
 * the answer is the union of both and the challenge. Throws `SignInProblem` "bad-settings".
 */
export function chooseScope(known: {
  plan: OAuthPlan;
  discovered: Discovered;
  /** Scope of the last challenge. */
  challenged: string | undefined;
  /** Of the stored sign-in, for a step-up. */
  requested: string | undefined;
  granted: string | undefined;
}): string | undefined {
  const { plan, discovered } = known;
  const earlier = [...wordsOf(known.requested), ...wordsOf(known.granted)];
  const challenged = wordsOf(known.challenged);
  if (plan.scope !== undefined) {
    return joinScopes([...configuredScopes(plan.scope), ...challenged, ...earlier]);
  }
  const stepUp = [...challenged, ...earlier];
  const wanted = stepUp.length > 0 ? stepUp : (discovered.resourceScopes ?? []);
  // To name `offline_access` alone would take away the scopes that the authorization server gives by default.
  return wanted.length === 0 ? undefined : joinScopes([...wanted, ...offline(plan, discovered)]);
}
