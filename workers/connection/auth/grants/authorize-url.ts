/**
 * The authorization request, which the browser sends (RFC 6749, section 4.1.1; RFC 7636; RFC 8707). Owns: its address.
 * PKCE is always used with S256, also where the authorization server does not advertise it.
 */
import { calculatePKCECodeChallenge, generateRandomCodeVerifier, generateRandomState } from "oauth4webapi";
import { type ClientRecord, type Discovered, SignInProblem } from "../model/model.ts";
import type { GrantContext, PendingAuthorization } from "./context.ts";
import { endpointOf } from "./endpoint.ts";

/**
 * Parameters that the configuration may not set, because they decide who gets the code. `request` and `request_uri` can
 * replace all others (RFC 9101), and `response_mode` can send the code elsewhere than to the redirect URI's query.
 */
const PROTOCOL = new Set([
  "client_id",
  "code_challenge",
  "code_challenge_method",
  "redirect_uri",
  "request",
  "request_uri",
  "resource",
  "response_mode",
  "response_type",
  "scope",
  "state",
]);

function checkParameters(parameters: Record<string, string>): void {
  const wrong = Object.keys(parameters).find((name) => PROTOCOL.has(name.toLowerCase()));
  if (wrong === undefined) return;
  const what = `the sign-in sets ${wrong} itself`;
  throw new SignInProblem("bad-settings", { key: "oauth.authorizationParams", what });
}

/** Throws `SignInProblem`: no-endpoint, not-https, bad-settings. */
export async function beginAuthorization(
  asked: { discovered: Discovered; client: ClientRecord; redirectUri: string; scope: string | undefined },
  { plan }: GrantContext,
): Promise<PendingAuthorization> {
  const { discovered, client, redirectUri, scope } = asked;
  const url = endpointOf(discovered.metadata, "authorization_endpoint");
  // State and verifier are 32 random bytes each.
  const [state, verifier] = [generateRandomState(), generateRandomCodeVerifier()];
  const further = plan.authorizationParams ?? {};
  checkParameters(further);
  // The endpoint may have a query of its own (RFC 6749, section 3.1), which must not decide anything either.
  for (const name of [...url.searchParams.keys()])
    if (PROTOCOL.has(name.toLowerCase())) url.searchParams.delete(name);
  const parameters: Record<string, string> = {
    ...further,
    response_type: "code",
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...(scope !== undefined && { scope }),
    ...(discovered.resource !== undefined && { resource: discovered.resource }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  url.hash = "";
  return { url: url.href, state, verifier, redirectUri, scope, client, discovered };
}
