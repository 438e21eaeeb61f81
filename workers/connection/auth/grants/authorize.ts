/**
 * The authorization request, which the browser sends (RFC 6749, section 4.1.1; RFC 7636; RFC 8707), and its answer. Owns:
 * the scope (MCP 2025-11-25, "Scope Selection Strategy"), the address, and the checks of `state`, `iss` and `error`, in this
 * order: what a wrong sender says is never shown (RFC 9207, section 2.4). PKCE is always used with S256, also where the
 * authorization server does not advertise it.
 */
import {
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
  skipStateCheck,
  validateAuthResponse,
} from "oauth4webapi";
import { type OAuthPlan, OWN_PARAMETER } from "../../config/entry/oauth-keys.ts";
import { createRedactor } from "../../secrets/redact.ts";
import { type ClientRecord, type Discovered, isSameState, needsUser, SignInProblem } from "../model/model.ts";
import { authorizationProblem, endpointOf, type GrantContext, type PendingAuthorization } from "./ask.ts";

/** A server's list can be of any length, and it becomes part of an address that the browser opens. */
const MOST_SCOPES = 100;
const SCOPE_CHARS = 2_000;
/** RFC 6749, section 3.3. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

const wordsOf = (text: string | undefined): string[] =>
  text?.split(/\s+/).filter((word) => word !== "") ?? [];

/** Each scope once, in their order, separated by spaces. What is too much or no scope is left out. */
function joinScopes(scopes: readonly string[]): string | undefined {
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

export const grantedScope = (scope: string | undefined): string | undefined => joinScopes(wordsOf(scope));

/** Without `offline_access`, many authorization servers issue no refresh token (MCP 2026-07-28, SEP-2207). */
const offline = (plan: OAuthPlan, { metadata }: Discovered): string[] =>
  needsUser(plan) && metadata.scopes_supported?.includes("offline_access") ? ["offline_access"] : [];

/**
 * The scope to ask for; undefined: none is named, and the authorization server decides. With `requested` or `granted`
 * the answer is the union of both and the challenge.
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
    return joinScopes([...wordsOf(plan.scope), ...challenged, ...earlier]);
  }
  const stepUp = [...challenged, ...earlier];
  const wanted = stepUp.length > 0 ? stepUp : (discovered.resourceScopes ?? []);
  // To name `offline_access` alone would take away the scopes that the authorization server gives by default.
  return wanted.length === 0 ? undefined : joinScopes([...wanted, ...offline(plan, discovered)]);
}

/** Throws `SignInProblem`: no-endpoint, not-https. */
export async function beginAuthorization(
  asked: { discovered: Discovered; client: ClientRecord; redirectUri: string; scope: string | undefined },
  { plan }: GrantContext,
): Promise<PendingAuthorization> {
  const { discovered, client, redirectUri, scope } = asked;
  const url = endpointOf(discovered.metadata, "authorization_endpoint");
  // State and verifier are 32 random bytes each.
  const [state, verifier] = [generateRandomState(), generateRandomCodeVerifier()];
  const binding = discovered.bindsTokens ? await import("../requests/dpop.ts") : undefined;
  const dpopKey = binding?.createKey();
  // The endpoint may have a query of its own (RFC 6749, section 3.1), which must not decide anything either.
  for (const name of [...url.searchParams.keys()])
    if (OWN_PARAMETER.test(name)) url.searchParams.delete(name);
  const parameters: Record<string, string> = {
    ...plan.authorizationParams,
    response_type: "code",
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...(scope !== undefined && { scope }),
    ...(discovered.resource !== undefined && { resource: discovered.resource }),
    // RFC 9449, section 10: the code is good for this key alone.
    ...(binding && dpopKey && { dpop_jkt: binding.thumbprintOf(dpopKey) }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  url.hash = "";
  return { url: url.href, state, verifier, redirectUri, scope, client, discovered, dpopKey };
}

export type AuthorizationAnswer = { parameters: URLSearchParams } | { bareCode: string };

/** A code of Entra has about 1,500 characters. */
const CODE_CHARS = 8_000;
const ERROR_CHARS = 100;
const WORDS_CHARS = 1_000;

/** An authorization gets one answer: a second one with the same state is somebody else's. */
const answered = new WeakSet<PendingAuthorization>();

/** The only value of the parameter; undefined if there is none, or more than one (RFC 6749, section 3.1). */
function only(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = parameters.getAll(name);
  return more.length === 0 && value !== "" ? value : undefined;
}

/** Of an issuer that a wrong sender may have chosen, no more than this is told. */
function shownIssuer(issuer: string | undefined): string {
  const { protocol, origin } = issuer !== undefined && URL.canParse(issuer) ? new URL(issuer) : {};
  return origin !== undefined && /^https?:$/.test(protocol ?? "") ? origin : "no server";
}

/** RFC 9207: compared character by character, without any normalization. */
function checkIssuer(parameters: URLSearchParams, { url, discovered }: PendingAuthorization): void {
  const { issuer, authorization_response_iss_parameter_supported: isDue } = discovered.metadata;
  if (!parameters.has("iss")) {
    if (isDue === true) throw new SignInProblem("response-issuer-absent", { url: new URL(url).origin });
    return;
  }
  const named = only(parameters, "iss");
  if (named === issuer) return;
  const [expected, found] = [shownIssuer(issuer), shownIssuer(named)];
  const another = found === expected ? `another address of ${found}` : found;
  throw new SignInProblem("response-issuer-wrong", { expected, found: another });
}

function checkError(parameters: URLSearchParams, { state, verifier, scope }: PendingAuthorization): void {
  if (!parameters.has("error")) return;
  const redact = createRedactor({ values: [], named: [state, verifier] });
  const what = redact(parameters.get("error_description") ?? "").slice(0, WORDS_CHARS);
  const error = redact(parameters.get("error") ?? "").slice(0, ERROR_CHARS);
  // The status is none of HTTP: a browser brings the answer.
  throw authorizationProblem({ status: 0, error, ...(what !== "" && { what }) }, scope);
}

/** The parameters as oauth4webapi wants them for the exchange of the code. Throws `SignInProblem`. */
export function checkedAnswer(pending: PendingAuthorization, answer: AuthorizationAnswer): URLSearchParams {
  const { client, discovered } = pending;
  if (answered.has(pending)) throw new SignInProblem("state-wrong");
  const parameters =
    "bareCode" in answer ? new URLSearchParams({ code: answer.bareCode }) : answer.parameters;
  if (!("bareCode" in answer) && !isSameState(only(parameters, "state") ?? "", pending.state)) {
    throw new SignInProblem("state-wrong");
  }
  checkIssuer(parameters, pending);
  answered.add(pending);
  checkError(parameters, pending);
  const code = only(parameters, "code");
  if (code === undefined || code.length > CODE_CHARS) throw new SignInProblem("code-refused");
  const checked = new URLSearchParams({ code });
  // oauth4webapi looks for it again.
  if (parameters.has("iss")) checked.set("iss", discovered.metadata.issuer);
  return validateAuthResponse(discovered.metadata, { client_id: client.id }, checked, skipStateCheck);
}
